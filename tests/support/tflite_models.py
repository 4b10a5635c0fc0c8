"""TFLite models written for tests: a small writer of FlatBuffers, and what the reference kernels compute of a model.

Facts of the schema are those of `cgraph.formats.tflite.schema`; that they are right is what the reference says.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.formats.tflite import load
from cgraph.formats.tflite.schema import DTYPE, NAMES, OPTIONS, RESOURCE, OptionFields

NUMBER = {name: number for number, name in DTYPE.items()} | {"resource": RESOURCE}
VERSIONS = {"BROADCAST_TO": 2}  # of operators that never were of version 1


class Table(dict):
    """Fields by number: a pair of a kind of `struct` and a number, an array, a text, a Table, a list of Tables."""


def written(root: Table, identifier: bytes = b"TFL3") -> bytes:
    """A file: each table behind its vtable, what it points to behind it. What stands twice lies there once."""
    out = bytearray(struct.pack("<I4s", 0, identifier))
    places: dict[int, int] = {}
    waiting: list[tuple[int, Any]] = [(0, root)]  # where an offset stands, and what to
    while waiting:
        at, content = waiting.pop()
        place = places.get(id(content), 0)
        if place <= at:  # offsets lead forward alone
            place = (put_table if isinstance(content, Table) else put_vector)(out, content, waiting)
            places[id(content)] = place
        struct.pack_into("<I", out, at, place - at)
    return bytes(out)


def align(out: bytearray, nbytes: int, behind: int = 0) -> None:
    """Zeros, so that what begins so many bytes further on is aligned."""
    out += bytes(-(len(out) + behind) % nbytes)


def put_table(out: bytearray, table: Table, waiting: list) -> int:
    """A vtable and its table; offsets are noted."""
    count = max(table, default=-1) + 1
    vtable = [0] * count
    align(out, 8, 4 + 2 * count + 4)  # fields begin at a multiple of 8
    body, fields = bytearray(4), []
    for number, content in table.items():
        kind, value = content if isinstance(content, tuple) else ("I", None)
        body += bytes(-(len(body) - 4) % struct.calcsize("<" + kind))
        vtable[number] = len(body)
        if value is None:
            fields.append((len(body), content))
        body += struct.pack("<" + kind, value or 0)
    at = len(out) + 4 + 2 * count
    struct.pack_into("<i", body, 0, at - len(out))
    out += struct.pack(f"<{2 + count}H", 4 + 2 * count, len(body), *vtable) + body
    waiting += [(at + place, content) for place, content in fields]
    return at


def put_vector(out: bytearray, content: Any, waiting: list) -> int:
    """A text, numbers or offsets of tables."""
    if isinstance(content, str):
        raw, count = content.encode() + b"\0", len(content.encode())
    elif isinstance(content, np.ndarray):
        raw, count = content.tobytes(), content.size
    else:
        raw, count = bytes(4 * len(content)), len(content)
    align(out, 16, 4)
    at = len(out)
    out += struct.pack("<I", count) + raw
    if isinstance(content, list):
        waiting += [(at + 4 + 4 * i, table) for i, table in enumerate(content)]
    return at


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, "int32")


class Network:
    """A model that is being written, or another graph of one. Changes: tensors and operators are added; tensors are
    their numbers.
    """

    def __init__(self, outer: "Network | None" = None) -> None:
        self.tensors: list[Table] = []
        self.buffers: list[Table] = [Table()] if outer is None else outer.buffers
        self.operators: list[Table] = []
        self.codes: list[Table] = [] if outer is None else outer.codes
        self.graphs: list[Table] = [Table()] if outer is None else outer.graphs
        self.inputs: list[int] = []

    def subgraph(self, build: Callable[["Network"], Sequence[int]]) -> int:
        """Add the graph that a function writes, which returns its outputs; return its number."""
        self.graphs.append(Table())
        number, inner = len(self.graphs) - 1, Network(self)
        self.graphs[number].update(inner.graph(*build(inner)))
        return number

    def tensor(self, shape: Sequence[int], dtype: str, buffer: int = 0, scale: Any = None, zero: Any = 0) -> int:
        """A tensor; scales, one or one for each element of axis `zero[1]`."""
        number = len(self.tensors)
        table = Table({0: ints(*shape), 1: ("b", NUMBER[dtype]), 2: ("I", buffer), 3: f"t{number}"})
        if scale is not None:
            zero, axis = zero if isinstance(zero, tuple) else (zero, 0)
            scales = np.atleast_1d(np.array(scale, "float32"))
            zeros = np.broadcast_to(np.array(zero, "int64"), scales.shape).copy()
            table[4] = Table({2: scales, 3: zeros, 6: ("i", axis)})
        self.tensors.append(table)
        return number

    def input(self, shape: Sequence[int], dtype: str = "float32", **scale: Any) -> int:
        self.inputs.append(self.tensor(shape, dtype, **scale))
        return self.inputs[-1]

    def constant(self, value: Any, **scale: Any) -> int:
        array = np.asarray(value)
        self.buffers.append(Table({0: np.frombuffer(array.tobytes(), "uint8")}))
        return self.tensor(array.shape, array.dtype.name, len(self.buffers) - 1, **scale)

    def sparse(self, values: np.ndarray) -> int:
        """A constant of which the rows are stored densely, and in each of them the elements that are not 0."""
        array = np.asarray(values)
        rows, columns = np.nonzero(array)
        ends = np.searchsorted(rows, np.arange(array.shape[0] + 1)).astype("int32")
        levels = [Table({0: ("b", 0), 1: ("i", array.shape[0])})]
        lists = [Table({0: ends}), Table({0: columns.astype("uint8")})]
        levels.append(Table({0: ("b", 1), 2: ("B", 1), 3: lists[0], 4: ("B", 3), 5: lists[1]}))
        number = self.constant(array[rows, columns])
        self.tensors[number] |= {0: ints(*array.shape), 6: Table({0: ints(0, 1), 2: levels})}
        return number

    def variable(self, shape: Sequence[int], dtype: str = "float32", **scale: Any) -> int:
        """A variable tensor, which an operator reads and writes."""
        number = self.tensor(shape, dtype, **scale)
        self.tensors[number][5] = ("?", True)
        return number

    def handle(self, name: str) -> int:
        """The handle of a resource variable."""
        return self.op("VAR_HANDLE", [], "resource", name=name)

    def op(self, kind: str, operands: Sequence[int], *results: Any, **options: Any) -> Any:
        """The result, or results where several dtypes (with scales, or shapes) are given."""
        forms = [{"dtype": x} if isinstance(x, str) else x for x in results or ("float32",)]
        made = [self.tensor(**{"shape": (), **x}) for x in forms]
        self.act(kind, operands, *made, **options)
        return made[0] if len(made) == 1 else made

    def act(self, kind: str, operands: Sequence[int], *results: int, **options: Any) -> None:
        """Add an operator whose results, if any, are tensors that there are."""
        custom = kind.removeprefix("CUSTOM ").strip("'") if kind.startswith("CUSTOM") else ""
        number = NAMES.index("CUSTOM" if custom else kind)
        code = Table({0: ("b", min(number, 127)), 2: ("i", VERSIONS.get(kind, 1)), 3: ("i", number)})
        self.codes.append(Table(code | {1: custom}) if custom else code)
        table = Table({0: ("I", len(self.codes) - 1), 1: ints(*operands), 2: ints(*results)})
        if custom:
            packed = ints(*(options.get(name, 0) for name in OPTIONS[kind].fields))
            table[5] = np.frombuffer(packed.tobytes(), "uint8")
        elif options:
            places = (11, 12) if OPTIONS[kind].is_newer else (3, 4)
            table[places[0]] = ("B", OPTIONS[kind].number)
            table[places[1]] = options_table(OPTIONS[kind], options)
        self.operators.append(table)

    def graph(self, *outputs: int) -> Table:
        return Table({0: self.tensors, 1: ints(*self.inputs), 2: ints(*outputs), 3: self.operators})

    def root(self, *outputs: int) -> Table:
        self.graphs[0].update(self.graph(*outputs))
        return Table({0: ("I", 3), 1: self.codes, 2: self.graphs, 3: "test", 4: self.buffers})

    def bytes(self, *outputs: int) -> bytes:
        return written(self.root(*outputs))


def options_table(of: OptionFields, options: dict[str, Any]) -> Table:
    """The options of an operator by their names."""
    kinds = {name: of.fields[name].kind for name in options}
    values = {
        name: x if kinds[name] in "TF" else ints(*x) if kinds[name] == "V" else (kinds[name], x)
        for name, x in options.items()
    }
    return Table({of.fields[name].field: x for name, x in values.items()})


def results_of(net: Network, results: Sequence[int], *values: np.ndarray) -> list[np.ndarray]:
    """What the library computes of a model."""
    model = load(net.bytes(*results))
    return evaluate(list(model.outputs), dict(zip(model.inputs, values, strict=True)))


def reference(model: bytes, *values: np.ndarray, kinds: str = "BUILTIN_REF") -> list[np.ndarray]:
    """What TFLite's reference kernels compute, or `kinds` of others."""
    return successive(model, [values], kinds)[0]


def successive(
    model: bytes, rows: Sequence[Sequence[np.ndarray]], kinds: str = "BUILTIN_REF"
) -> list[list[np.ndarray]]:
    """What TFLite's kernels compute in one run after another, with the state that is left in between."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    kind = litert.OpResolverType[kinds]
    interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    results = []
    for values in rows:
        for details, value in zip(interpreter.get_input_details(), values):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        results.append([interpreter.get_tensor(x["index"]).copy() for x in interpreter.get_output_details()])
    return results
