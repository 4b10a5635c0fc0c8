"""TfliteValue: a TFLite tensor with its order of axes and its quantisation.

TFLite stores images as ``[n, h, w, c]``. Here, results of convolutions are ``[n, c, h, w]`` and stay so while operators
support it. A value is transposed only when an operator reads the other order, so transposes do not accumulate.
"""

from functools import cached_property

import numpy as np

from cgraph.errors import FormatError
from cgraph.ir.graph import Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops.leaf import Const
from cgraph.ops.shape import Transpose, transpose
from cgraph.record import Record

BYTE = np.dtype("uint8")
SIGN = 128  # offset of an int8 number as a byte
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # axes of [n, h, w, c] as [n, c, h, w], and back
PLACE = (0, 2, 3, 1)  # where the axes of [n, h, w, c] are in [n, c, h, w]


class QuantisedFormat(Record, eq=False):
    """The quantisation of integers, which represent ``(number - zero) * scale``: of bytes, or of 16 or 32 bits.

    Fields
        scales, zeros: one, or one per element of an axis; zeros as in the file
        axis: that axis
        is_signed: True for int8, stored here as bytes with an offset of 128
        dtype: of the numbers as they are stored here: uint8, int16 or int32
    """

    scales: np.ndarray
    zeros: np.ndarray
    axis: int
    is_signed: bool
    dtype: np.dtype = BYTE

    @property
    def is_wide(self) -> bool:
        """Return True if the numbers have more than 8 bits."""
        return self.dtype != BYTE

    @property
    def limits(self) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        return int(np.iinfo(self.dtype).min), int(np.iinfo(self.dtype).max)

    @property
    def scale(self) -> np.float32:
        """Return the only scale."""
        if self.scales.size != 1:
            raise FormatError(f"{self.scales.size} scales, one is expected")
        return self.scales[0]

    @property
    def zero(self) -> int:
        """Return the byte that represents 0."""
        if self.zeros.size != 1:
            raise FormatError(f"{self.zeros.size} zero points, one is expected")
        return int(self.zeros[0]) + self.sign

    @property
    def sign(self) -> int:
        """Return the offset of bytes from the numbers of the file."""
        return SIGN if self.is_signed else 0

    def equals(self, other: "QuantisedFormat") -> bool:
        """Return True if the same number represents the same float."""
        return self.scale == other.scale and self.zero == other.zero and self.dtype == other.dtype


def have_one_format(x: QuantisedFormat | None, y: QuantisedFormat | None) -> bool:
    """Return True if two values are both plain, or quantised in the same way."""
    return x is y if x is None or y is None else x.equals(y)


class TfliteValue(Record, eq=False):
    """A tensor.

    Fields
        expression: the node that computes it; None for a constant of the file
        array: the constant of the file, in its order of axes
        first: True if the node has four axes in the order n, c, h, w
        quantised: the quantisation of its bytes, or None
    """

    expression: Node | None = None
    array: np.ndarray | None = None
    first: bool = False
    quantised: QuantisedFormat | None = None

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the node; bytes if the file has int8."""
        if self.array is None:
            return self.node.dtype
        return self.array.dtype if self.quantised is None else self.quantised.dtype

    @cached_property
    def stored(self) -> np.ndarray:
        """Return the constant of the file, int8 as bytes."""
        assert self.array is not None
        if self.array.dtype == np.float16:
            raise FormatError("float16 is not supported here. Convert it with DEQUANTIZE")
        if self.quantised is None or not self.quantised.is_signed:
            return self.array
        return self.array.view("uint8") ^ np.uint8(SIGN)

    @cached_property
    def node(self) -> Node:
        """Return the value in its current order of axes."""
        if self.expression is not None:
            return self.expression
        return Const(self.stored, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape in the file's order."""
        shape = self.node.shape if self.array is None else self.array.shape
        return tuple(shape[i] for i in LAST) if self.first else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def bytes(self) -> QuantisedFormat:
        """Return the quantisation of its bytes."""
        if self.quantised is None:
            raise FormatError("quantised operands or results mixed with others are not supported. Quantise all or none")
        return self.quantised

    @property
    def plain(self) -> Node:
        """Return the node in the file's order of axes."""
        return permute(self.node, LAST) if self.first else self.node

    @property
    def images(self) -> Node:
        """Return the node ``[n, c, h, w]``; fewer axes get leading axes of one element."""
        if self.first:
            return self.node
        if self.ndim > 4:
            raise FormatError(f"a tensor of {self.ndim} axes is not an image")
        if self.array is not None:
            wide = self.stored.reshape((1,) * (4 - self.ndim) + self.array.shape)
            return Const(in_c_order(wide.transpose(FIRST)), copy=False)
        return permute(self.node.reshape((1,) * (4 - self.ndim) + self.node.shape), FIRST)


def permute(x: Node, axes: tuple[int, ...]) -> Node:
    """Transpose a node; the inverse of a transpose returns its operand."""
    undone = isinstance(x.op, Transpose) and tuple(x.op.axes[i] for i in axes) == (0, 1, 2, 3)
    return x.operands[0] if undone else transpose(x, axes)
