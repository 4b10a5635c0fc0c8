"""TfliteContext: the argument of an importer, an operator with its operands and options."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.names import cg
from cgraph.formats.tflite.schema import OPTIONS
from cgraph.formats.tflite.source import TensorFacts
from cgraph.formats.tflite.value import PLACE, QuantisedFormat, TfliteValue
from cgraph.formats.tflite.variables import Variables
from cgraph.formats.tflite.wire import PackedNumbers, Table
from cgraph.ir.graph import Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops.leaf import Const, ConstOp
from cgraph.record import Record

ImportedValue = Node | TfliteValue | Sequence[Node | TfliteValue]
"""The result of an importer; a Node has the file's order of axes."""
Importer = Callable[["TfliteContext"], ImportedValue]
OPERATORS: dict[str, Importer] = {}
ON_BYTES: dict[str, bool] = {}
ON_WORDS: set[str] = set()


def operator(*names: str, on_bytes: bool | None = None, on_words: bool = False) -> Callable[[Importer], Importer]:
    """Register an importer for operators.

    Parameters
        on_bytes: True if it computes with quantised values, False if it only moves them, None if it refuses them
        on_words: True if it also computes with int16; those that move values always do
    """

    def register(importer: Importer) -> Importer:
        OPERATORS.update(dict.fromkeys(names, importer))
        if on_bytes is not None:
            ON_BYTES.update(dict.fromkeys(names, on_bytes))
        if on_words or on_bytes is False:
            ON_WORDS.update(names)
        return importer

    return register


def images(x: Node) -> TfliteValue:
    """Return a result ``[n, c, h, w]``."""
    return TfliteValue(x, first=True)


class TfliteContext(Record, eq=False):
    """One TFLite operator that is being imported.

    Fields
        kind: its name
        operands: values in the operator's order, None for an absent optional one
        options: its options in the file, or None
        results: the file's description of its results
        allowance: the remaining cost of reading the file
        build: builds another graph of the file, by its number, from the values of its inputs
        assign: gives an operand that is a variable, by its index, a new value in the file's order of axes
        variables: the state of the file
        is_inner: True in a graph that an operator of another one contains
        tensors: the file's description of its operands
    """

    kind: str
    operands: tuple[TfliteValue | None, ...]
    options: Table | PackedNumbers | None
    results: tuple[TensorFacts, ...]
    allowance: Allowance
    build: Callable[[int, Sequence[TfliteValue]], list[TfliteValue]]
    assign: Callable[[int, Node], None]
    variables: Variables
    is_inner: bool = False
    tensors: tuple[TensorFacts | None, ...] = ()

    def __getitem__(self, i: int) -> TfliteValue:
        """Return operand i, which must exist."""
        x = self.get(i)
        if x is None:
            raise FormatError(f"operand {i} is missing")
        return x

    def get(self, i: int) -> TfliteValue | None:
        """Return operand i, or None."""
        return self.operands[i] if i < len(self.operands) else None

    @property
    def nodes(self) -> list[Node]:
        """Return all operands in the file's order of axes."""
        return [self[i].plain for i in range(len(self.operands))]

    @property
    def dtypes(self) -> tuple[np.dtype, ...]:
        """Return the dtypes of the results."""
        return tuple(x.dtype for x in self.results)

    @property
    def is_quantised(self) -> bool:
        """Return True if the first result is quantised."""
        return self.results[0].quantised is not None

    @property
    def result(self) -> QuantisedFormat:
        """Return the quantisation of the first result."""
        quantised = self.results[0].quantised
        if quantised is None:
            raise FormatError("quantised operands or results mixed with others are not supported. Quantise all or none")
        return quantised

    def option(self, name: str) -> Any:
        """Return a field of the options, or its default."""
        option, table = OPTIONS[self.kind].fields[name], self.options
        if option.kind == "V":
            values = table.vector(option.field, "int32") if isinstance(table, Table) else None
            return None if values is None else self.few(values)
        if option.kind == "F":
            return table.vector(option.field, "float32") if isinstance(table, Table) else None
        if option.kind == "T":
            return table.text(option.field) if isinstance(table, Table) else ""
        return option.default if table is None else table.number(option.field, option.kind, option.default)

    def sizes(self, name: str) -> tuple[int, int]:
        """Return the options ``name_h`` and ``name_w``, each at least 1."""
        pair = self.option(f"{name}_h"), self.option(f"{name}_w")
        if min(pair) < 1:
            raise FormatError(f"{name} is {pair[0]} x {pair[1]}")
        return pair

    def constant(self, i: int) -> np.ndarray:
        """Return the value of operand i, which must be constant."""
        x = self[i]
        if x.array is not None:
            return x.array
        if not isinstance(x.node.op, ConstOp):  # small values computed from constants have been folded
            raise FormatError(f"operand {i} must be constant, but depends on an input of the graph")
        return x.node.op.array

    def ints(self, i: int) -> list[int]:
        """Return the value of operand i as a list."""
        return self.few(self.constant(i))

    def few(self, values: np.ndarray) -> list[int]:
        """Return the integers of an array that describes axes."""
        if values.size > 64 or values.dtype.kind not in "iu":
            raise FormatError(f"{values.size} numbers of {values.dtype} cannot describe axes: give a few integers")
        return [int(n) for n in values.reshape(-1)]

    def filters(self, i: int, axes: tuple[int, ...]) -> Node:
        """Return operand i with permuted axes; a constant is copied, piece by piece if the file is mapped."""
        x = self[i]
        if x.ndim != len(axes):
            raise FormatError(f"operand {i} {list(x.shape)} does not have {len(axes)} axes")
        if x.array is None:
            return x.plain.transpose(axes)
        if x.array.dtype == np.float16:
            raise FormatError("filters of float16 are not supported here. Convert them with DEQUANTIZE")
        self.spend(nbytes=x.array.nbytes)
        return Const(in_c_order(x.array.transpose(axes)), copy=False)

    def alike(self, *values: TfliteValue | None) -> tuple[list[Node], bool]:
        """Return operands (all by default) in one order of axes, and whether this is n, c, h, w."""
        operands = [x for x in (values or self.operands) if x is not None]
        first = any(x.first for x in operands) and all(x.ndim <= 4 for x in operands)
        for x in operands:
            if first and x.array is not None:
                self.spend(nbytes=x.array.nbytes)
        return [x.images if first else x.plain for x in operands], first

    def axis(self, axis: int, x: TfliteValue) -> int:
        """Convert an axis in the file's order to one of the value's node."""
        if not -x.ndim <= axis < x.ndim:
            raise FormatError(f"axis {axis} is outside a tensor of {x.ndim} axes")
        axis %= x.ndim
        return PLACE[axis] if x.first else axis

    def spend(self, nbytes: float = 0, work: float = 0) -> None:
        """Charge what this operator is about to create. FormatError if it exceeds the allowance of the file."""
        self.allowance.spend("it", nbytes, work)

    def activated(self, x: Node) -> Node:
        """Apply the operator's fused activation to a result."""
        number = self.option("activation")
        if number not in ACTIVATIONS:
            raise FormatError(f"the activation {number} is not supported")
        return ACTIVATIONS[number](x)


ACTIVATIONS: dict[int, Callable[[Node], Node]] = {
    0: lambda x: x,
    1: lambda x: cg.relu(x),
    2: lambda x: cg.clip(x, -1.0, 1.0),
    3: lambda x: cg.relu6(x),
    4: lambda x: cg.tanh(x),
}
