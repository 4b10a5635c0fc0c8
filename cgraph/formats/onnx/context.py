"""Context: the argument of an importer, an ONNX node with its operands and attributes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.constants import Evaluator
from cgraph.formats.onnx.dynamic.bounds import Length, LengthBounds, Size
from cgraph.formats.onnx.dynamic.value import Array, Ragged
from cgraph.formats.onnx.lists import LongList, fits_int32, unknown_option
from cgraph.formats.onnx.vocabulary import CodedStrings, Tokens, Vocabulary
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.record import Record, replace

Value = Any
"""A Node, a Ragged, a list of them (a sequence), or None (an empty optional)."""
Importer = Callable[["Context"], Value]
OBJECT = 60  # bytes of a Python string; also its cost in computed elements
INTEGERS = 7  # the type of an AttributeProto that lists integers
OPERATORS: dict[str, Importer] = {}


def operator(*names: str) -> Callable[[Importer], Importer]:
    """Register an importer for ONNX operators."""

    def register(importer: Importer) -> Importer:
        OPERATORS.update(dict.fromkeys(names, importer))
        return importer

    return register


class Context(Record, eq=False):
    """One ONNX node that is being imported.

    Fields
        kind, name: operator and node name, for messages
        read, written: the names of operands and results, empty for an absent one
        operands: values in the operator's order, None for an absent optional one
        attributes: AttributeProto by name
        opset: version of the domain of the operator
        read_results: for each result, whether a consumer exists
        evaluator: computes constants while the graph is built
        limits: bounds of dynamic lengths
        build: builds a sub-graph from values for its inputs
        named: returns a value of the graph by its name
        arrays: converts a TensorProto to an array
        listed: returns the list of an AttributeProto that stays in the file, or None
        vocabulary: the strings of the file
        few: ONNX's dtype numbers of the values that no array has, by name (`cgraph.formats.onnx.small`)
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
    listed: Callable[[Any], LongList | None]
    vocabulary: Vocabulary
    few: Mapping[str, int]

    def __getitem__(self, i: int) -> Node:
        """Return operand i, which must exist and have a fixed shape."""
        x = self.value(i)
        if isinstance(x, Ragged):
            reason = f"operand {i} is {x.text}, of a length known only at run time, which it does not take"
            raise UnknownError(reason, constants=self.evaluator.missing(x.node))
        if isinstance(x, CodedStrings | Tokens):
            raise not_of_strings(i, x)
        if not isinstance(x, Node):
            raise FormatError(f"operand {i} is {'missing' if x is None else 'a sequence'}")
        return x

    def value(self, i: int) -> Value:
        """Return operand i, or None."""
        return self.operands[i] if i < len(self.operands) else None

    def get(self, i: int, default: Any = None) -> Any:
        """Return operand i as a Node, or `default` if absent."""
        return default if self.value(i) is None else self[i]

    # -- dynamic lengths and values ----------------------------------------------------------------------------------
    @property
    def is_ragged(self) -> bool:
        """Return True if an operand has an axis of dynamic length."""
        return any(isinstance(x, Ragged) for x in self.operands)

    @property
    def unequal(self) -> str:
        """Return the message for lengths that differ at run time."""
        return f"{self.node_text}: lengths known only at run time do not fit"

    @property
    def node_text(self) -> str:
        """Return the operator, its name and its results, for messages of a run."""
        return f"in {self.kind} {self.name!r} -> {', '.join(self.written)}"

    def array(self, i: int) -> Array:
        """Return operand i, which must exist and may have axes of dynamic length."""
        x = self.value(i)
        return x if isinstance(x, Ragged) else self[i]

    def reading(self, nodes: Mapping[int, Value]) -> "Context":
        """Return a copy with other operands."""
        return replace(self, operands=tuple(nodes.get(i, x) for i, x in enumerate(self.operands)))

    def is_open(self, *places: int) -> bool:
        """Return True if the value or a length of one of these operands is known only at run time."""
        values = [self.value(i) for i in places if self.value(i) is not None]
        for i in places:
            if isinstance(self.value(i), CodedStrings | Tokens):
                raise not_of_strings(i, self.operands[i])
        return any(isinstance(x, Ragged) or self.evaluator.lacks(x) for x in values)

    def lengths(self, i: int, default: Any = None) -> Any:
        """Return the elements of operand i as lengths, or `default` if absent."""
        if self.value(i) is None:
            return default
        if not self.is_open(i):
            return self.ints(i)
        return self.limits.lengths(self[i] if self[i].dtype.kind in "iu" else self[i].astype("int64"))

    def length(self, i: int, default: Any = None) -> Any:
        """Return the only element of operand i as a length, or `default` if absent."""
        numbers = self.lengths(i)
        if numbers is not None and len(numbers) != 1:
            raise FormatError(f"operand {i} has {len(numbers)} elements; give exactly one")
        return default if numbers is None else numbers[0]

    def room(self, length: Length, places: Sequence[int], axis: int = 0) -> int:
        """Return the maximum of a length. UnknownError if nothing bounds it.

        Parameters
            places: the operands that determine it
        """
        if not isinstance(length, Size):
            return max(length, 0)
        most = min(length.high, self.maximum)
        if most >= np.iinfo(np.int32).max:
            names = [self.read[i] for i in places if self.value(i) is not None and self.is_open(i)]
            missing = self.evaluator.missing(length.node)
            reason = f"nothing bounds axis {axis}, whose length is known only at run time"
            raise UnknownError(reason, {}, missing, [*names, *self.written_names[:1]])
        if length.node in self.limits.trusting:
            self.limits.check(length.node <= int(most), f"{self.unequal}: axis {axis} is longer than {most:.0f}")
        return max(int(most), 0)

    @property
    def maximum(self) -> float:
        """Return the user's maximum for the first result; infinite if there is none."""
        names = self.written_names
        return self.limits.maximum.get(names[0], np.inf) if names else np.inf

    @property
    def written_names(self) -> list[str]:
        """Return the names of the results that have one."""
        return [name for name in self.written if name]

    def constant(self, i: int) -> np.ndarray:
        """Return the value of operand i, which must be constant."""
        return self.evaluator.array(self[i], f"operand {i}")

    def ints(self, i: int, default: Any = None) -> Any:
        """Return the value of operand i as a list of int, or `default` if absent."""
        return default if self.value(i) is None else [int(n) for n in self.constant(i).reshape(-1)]

    def number(self, i: int, default: Any = None) -> Any:
        """Return the only element of operand i, or `default` if absent."""
        if self.value(i) is None:
            return default
        array = self.constant(i)
        if array.size != 1:
            raise FormatError(f"operand {i} has {array.size} elements; give exactly one")
        return array.reshape(()).item()

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute as int, float, str, array or a list of them, or `default` if absent."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return default
        items = self.listed(attribute)
        if items is not None:
            return items.tolist()
        self.evaluator.allowance.spend(f"attribute {name}", *attribute_cost(attribute))
        return self.arrays(attribute.t) if attribute.type == attribute.TENSOR else attribute_value(attribute)

    def long_list(self, name: str) -> LongList | None:
        """Return the list of an attribute if it stays in the file."""
        return self.listed(self.attributes[name]) if name in self.attributes else None

    def numbers(self, name: str, default: Any = None) -> Any:
        """Return an attribute that lists numbers as an array, or `default` if absent; no number takes an object.

        Returns
            one axis: floats; or int32, or int64 if an integer does not fit
        """
        items = self.long_list(name)
        if items is not None and items.is_numeric:
            return items.array()
        values = self.attribute(name)
        if values is None:
            return default
        is_empty_of_ints = isinstance(values, list) and not values and self.attributes[name].type == INTEGERS
        array = np.asarray(values, np.int64 if is_empty_of_ints else None)
        if array.ndim != 1 or array.dtype.kind not in "if":
            raise FormatError(f"attribute {name} is not a list of numbers")
        if array.dtype.kind == "i":
            return array.astype(np.int32 if fits_int32(array) else np.int64)
        return array.astype(np.float32) if isinstance(values, list) else array

    def required_numbers(self, name: str) -> np.ndarray:
        """Return an attribute that lists numbers, which must exist, as an array."""
        array = self.numbers(name)
        return self.required(name) if array is None else array

    def indices(self, name: str, options: Sequence[str]) -> np.ndarray:
        """Return for each string of an attribute, which must exist, its index in `options`, as uint8."""
        items = self.long_list(name)
        if items is not None and not items.is_numeric:
            return items.indices(options)
        values = self.required(name)
        if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
            raise FormatError(f"attribute {name} is not a list of strings")
        index_of = {option: i for i, option in enumerate(options)}
        unknown = [text for text in values if text not in index_of]
        if unknown:
            raise unknown_option(name, unknown[0], options)
        return np.array([index_of[text] for text in values], np.uint8)

    def text(self, i: int) -> "Context":
        """Return a copy in which operand i, which must hold strings, is their codes."""
        x = self.value(i)
        if isinstance(x, Tokens):
            raise not_of_strings(i, x)
        if not isinstance(x, CodedStrings):
            raise FormatError(f"operand {i} holds no strings, but attributes do: use the attributes for its dtype")
        return self.reading({i: x.node})

    def required(self, name: str) -> Any:
        """Return an attribute, which must exist."""
        if name not in self.attributes:
            raise FormatError(f"attribute {name} is missing: export the model again with it")
        return self.attribute(name)

    def axes(self, i: int, default: Any = None) -> Any:
        """Return axes from operand i, or from the attribute `axes` of older opsets."""
        return self.ints(i, self.attribute("axes", default))

    @property
    def nodes(self) -> list[Node]:
        """Return all operands, none of which may be absent."""
        return [self[i] for i in range(len(self.operands))]

    def spend(self, nbytes: float = 0, work: float = 0, nodes: float = 0) -> None:
        """Charge what this operator is about to create. FormatError if it exceeds the allowance of the file."""
        self.evaluator.allowance.spend("it", nbytes, work, nodes)

    def scratch(self) -> AbstractContextManager[None]:
        """Return a context at whose end the bytes charged within it count as freed."""
        return self.evaluator.allowance.scratch()

    def asks(self, i: int) -> bool:
        """Return True if result i has a consumer."""
        return i < len(self.read_results) and self.read_results[i]


def not_of_strings(i: int, x: CodedStrings | Tokens) -> FormatError:
    """Return the error for an operand of strings."""
    if isinstance(x, Tokens):
        return FormatError(
            f"operand {i} is {x.text}, tokens whose number a run decides: only TfIdfVectorizer, Flatten of the texts' "
            "axes and Identity take them. Do its work in Python, and pass its result"
        )
    return FormatError(
        f"operand {i} is {x.text}, which it does not take: strings can only be moved, compared with those of the file "
        "and returned. Do its work in Python, and pass its result"
    )


def attribute_cost(proto: Any) -> tuple[int, int]:
    """Return the bytes and work of reading an attribute, besides those of a tensor or graph in it."""
    count = len(proto.floats) + len(proto.ints) + len(proto.strings) + len(proto.graphs)
    letters = len(proto.s) + (sum(map(len, proto.strings)) if proto.strings else 0)
    return OBJECT * count + letters if proto.type == proto.STRINGS else letters, OBJECT * count + letters


def attribute_value(proto: Any) -> Any:
    """Convert an AttributeProto to Python types; sub-graphs and types stay protos."""
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
        raise FormatError(f"attribute {proto.name} is of kind {kind}, which is not supported")
    value = getattr(proto, plain[kind])
    return list(value) if kind in (proto.FLOATS, proto.INTS, proto.GRAPHS) else value
