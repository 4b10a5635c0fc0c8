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
from cgraph.formats.tflite.schema import DTYPE, NAMES, OPTIONS

NUMBER = {name: number for number, name in DTYPE.items()}
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

    def op(self, kind: str, operands: Sequence[int], *results: Any, **options: Any) -> Any:
        """The result, or results where several dtypes (with scales) are given."""
        made = [self.tensor((), x) if isinstance(x, str) else self.tensor((), **x) for x in results or ("float32",)]
        number = NAMES.index(kind)
        self.codes.append(Table({0: ("b", min(number, 127)), 2: ("i", VERSIONS.get(kind, 1)), 3: ("i", number)}))
        table = Table({0: ("I", len(self.codes) - 1), 1: ints(*operands), 2: ints(*made)})
        if options:
            fields = OPTIONS[kind].fields
            table[3] = ("B", OPTIONS[kind].number)
            table[4] = Table(
                {
                    fields[k].field: ints(*x) if fields[k].kind == "V" else (fields[k].kind, x)
                    for k, x in options.items()
                }
            )
        self.operators.append(table)
        return made[0] if len(made) == 1 else made

    def graph(self, *outputs: int) -> Table:
        return Table({0: self.tensors, 1: ints(*self.inputs), 2: ints(*outputs), 3: self.operators})

    def root(self, *outputs: int) -> Table:
        self.graphs[0].update(self.graph(*outputs))
        return Table({0: ("I", 3), 1: self.codes, 2: self.graphs, 3: "test", 4: self.buffers})

    def bytes(self, *outputs: int) -> bytes:
        return written(self.root(*outputs))


def results_of(net: Network, results: Sequence[int], *values: np.ndarray) -> list[np.ndarray]:
    """What the library computes of a model."""
    model = load(net.bytes(*results))
    return evaluate(list(model.outputs), dict(zip(model.inputs, values, strict=True)))


def reference(model: bytes, *values: np.ndarray, kinds: str = "BUILTIN_REF") -> list[np.ndarray]:
    """What TFLite's reference kernels compute, or `kinds` of others."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    kind = litert.OpResolverType[kinds]
    interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]).copy() for details in interpreter.get_output_details()]
