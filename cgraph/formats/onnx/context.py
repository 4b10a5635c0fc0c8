"""What an importer is given: one ONNX node, its operands as values of the graph being built, and its attributes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.constants import Evaluator
from cgraph.formats.onnx.dynamic.bounds import Length, LengthBounds, Size
from cgraph.formats.onnx.dynamic.value import Array, Ragged
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.record import Record, replace

Value = Any
"""A Node, a Ragged, a list of them (a sequence), or None (an optional that is empty)."""
Importer = Callable[["Context"], Value]
OBJECT = 60  # bytes of a text of Python; also elements that could be computed while one is made
OPERATORS: dict[str, Importer] = {}


def operator(*names: str) -> Callable[[Importer], Importer]:
    """List an importer under the names of ONNX operators."""

    def register(importer: Importer) -> Importer:
        OPERATORS.update(dict.fromkeys(names, importer))
        return importer

    return register


class Context(Record, eq=False):
    """One ONNX node on its way to nodes of this library.

    Fields
        kind, name: operator and node name, for messages
        read, written: the names of operands and results, empty where there is none
        operands: values in the operator's order, None where an optional one is absent
        attributes: AttributeProto by name
        opset: version of the operator's domain
        read_results: for each result, whether anything reads it
        evaluator: values of inputs that are known while building
        limits: how large whole numbers can be that are known only when run
        build: makes a sub-graph's results from values for its inputs
        named: a value of the graph by its name
        arrays: how a TensorProto becomes an array
    """

    kind: str
    name: str
    read: Sequence[str]
    written: Sequence[str]
    operands: tuple[Value, ...]
    attributes: Mapping[str, Any]
    opset: int
    read_results: tuple[bool, ...]
    evaluator: Evaluator
    limits: LengthBounds
    build: Callable[[Any, Sequence[Value]], list[Value]]
    named: Callable[[str], Value]
    arrays: Callable[[Any], np.ndarray]

    def __getitem__(self, i: int) -> Node:
        """Operand i, which must be there and of known shape."""
        x = self.value(i)
        if isinstance(x, Ragged):
            reason = f"operand {i} is {x.text}, of a length known only when run, which it does not take"
            raise UnknownError(reason, constants=self.evaluator.missing(x.node))
        if not isinstance(x, Node):
            raise FormatError(f"operand {i} is {'missing' if x is None else 'a sequence'}")
        return x

    def value(self, i: int) -> Value:
        """Operand i, or None."""
        return self.operands[i] if i < len(self.operands) else None

    def get(self, i: int, default: Any = None) -> Any:
        """Operand i as a Node, or `default` where it is absent."""
        return default if self.value(i) is None else self[i]

    # -- what is known only when run ---------------------------------------------------------------------------------
    @property
    def is_ragged(self) -> bool:
        """An operand has an axis of open length."""
        return any(isinstance(x, Ragged) for x in self.operands)

    @property
    def unequal(self) -> str:
        """What is said where lengths differ when run."""
        return f"in {self.kind} {self.name!r} -> {', '.join(self.written)}: lengths known only when run do not fit"

    def array(self, i: int) -> Array:
        """Operand i, which must be there; its axes may be of open length."""
        x = self.value(i)
        return x if isinstance(x, Ragged) else self[i]

    def reading(self, nodes: Mapping[int, Value]) -> "Context":
        """The same with other operands."""
        return replace(self, operands=tuple(nodes.get(i, x) for i, x in enumerate(self.operands)))

    def is_open(self, *places: int) -> bool:
        """One of these operands that are there has a value that is known only when run, or an axis of open length."""
        values = [self.value(i) for i in places if self.value(i) is not None]
        return any(isinstance(x, Ragged) or self.evaluator.lacks(x) for x in values)

    def lengths(self, i: int, default: Any = None) -> Any:
        """Operand i's elements as lengths, or `default` where it is absent."""
        if self.value(i) is None:
            return default
        if not self.is_open(i):
            return self.ints(i)
        return self.limits.lengths(self[i] if self[i].dtype.kind in "iu" else self[i].astype("int64"))

    def length(self, i: int, default: Any = None) -> Any:
        """Operand i's only element as a length, or `default` where it is absent."""
        numbers = self.lengths(i)
        if numbers is not None and len(numbers) != 1:
            raise FormatError(f"operand {i} has {len(numbers)} elements; one is expected")
        return default if numbers is None else numbers[0]

    def room(self, length: Length, places: Sequence[int], axis: int = 0) -> int:
        """The greatest number of elements along an axis. UnknownError where nothing bounds it.

        Parameters
            places: the operands that decide it
        """
        if not isinstance(length, Size):
            return max(length, 0)
        most = min(length.high, self.maximum)
        if most >= np.iinfo(np.int32).max:
            names = [self.read[i] for i in places if self.value(i) is not None and self.is_open(i)]
            missing = self.evaluator.missing(length.node)
            reason = f"nothing bounds axis {axis}, whose length is known only when run"
            raise UnknownError(reason, {}, missing, [*names, *self.written[:1]])
        if length.node in self.limits.trusting:
            self.limits.check(length.node <= int(most), f"{self.unequal}: axis {axis} is longer than {most:.0f}")
        return max(int(most), 0)

    @property
    def maximum(self) -> float:
        """The greatest length that the user gave to the first result; infinite where there is none."""
        return self.limits.maximum.get(self.written[0], np.inf) if self.written else np.inf

    def constant(self, i: int) -> np.ndarray:
        """Operand i's value, which must be known now."""
        return self.evaluator.array(self[i], f"operand {i}")

    def ints(self, i: int, default: Any = None) -> Any:
        """Operand i's values as a list of int, or `default` where it is absent."""
        return default if self.value(i) is None else [int(n) for n in self.constant(i).reshape(-1)]

    def number(self, i: int, default: Any = None) -> Any:
        """Operand i's only value, or `default` where it is absent."""
        if self.value(i) is None:
            return default
        array = self.constant(i)
        if array.size != 1:
            raise FormatError(f"operand {i} has {array.size} elements; one is expected")
        return array.reshape(()).item()

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute in Python's types: int, float, str, array, lists of them; `default` where it is absent."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return default
        self.evaluator.allowance.spend(f"attribute {name}", *attribute_cost(attribute))
        return self.arrays(attribute.t) if attribute.type == attribute.TENSOR else attribute_value(attribute)

    def required(self, name: str) -> Any:
        """An attribute that must be there."""
        if name not in self.attributes:
            raise FormatError(f"attribute {name} is missing")
        return self.attribute(name)

    def axes(self, i: int, default: Any = None) -> Any:
        """Axes from operand i, or from the attribute `axes` of older opsets."""
        return self.ints(i, self.attribute("axes", default))

    @property
    def nodes(self) -> list[Node]:
        """All operands, which must all be there."""
        return [self[i] for i in range(len(self.operands))]

    def spend(self, nbytes: float = 0, work: float = 0, nodes: float = 0) -> None:
        """Say what this operator is about to make. FormatError when it is more than its file may cost."""
        self.evaluator.allowance.spend("it", nbytes, work, nodes)

    def asks(self, i: int) -> bool:
        """Is result i read?"""
        return i < len(self.read_results) and self.read_results[i]


def attribute_cost(proto: Any) -> tuple[int, int]:
    """Bytes and work that reading an attribute takes, beside what a tensor or graph in it takes."""
    count = len(proto.floats) + len(proto.ints) + len(proto.strings) + len(proto.graphs)
    letters = len(proto.s) + (sum(map(len, proto.strings)) if proto.strings else 0)
    return OBJECT * count + letters if proto.type == proto.STRINGS else letters, OBJECT * count + letters


def attribute_value(proto: Any) -> Any:
    """An AttributeProto in Python's types; sub-graphs and types stay protos."""
    kind = proto.type
    if kind == proto.STRING:
        return proto.s.decode("utf-8", "replace")
    if kind == proto.STRINGS:
        return [s.decode("utf-8", "replace") for s in proto.strings]
    plain = {
        proto.FLOAT: "f", proto.INT: "i", proto.GRAPH: "g", proto.FLOATS: "floats", proto.INTS: "ints",
        proto.TYPE_PROTO: "tp", proto.GRAPHS: "graphs",
    }  # fmt: skip
    if kind not in plain:
        raise FormatError(f"attribute {proto.name} is of a kind that is not supported")
    value = getattr(proto, plain[kind])
    return list(value) if kind in (proto.FLOATS, proto.INTS, proto.GRAPHS) else value
