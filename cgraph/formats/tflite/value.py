"""A tensor on its way to a node: in which order its axes are, and what its numbers stand for.

TFLite keeps images as ``[n, h, w, c]``. What a convolution makes is ``[n, c, h, w]`` here, and stays so as long as
operators read it that can; an order is changed where somebody asks for the other one, so changes do not pile up.
"""

from functools import cached_property

import numpy as np

from cgraph.errors import FormatError
from cgraph.ir.graph import Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops.leaf import Const
from cgraph.ops.shape import Transpose, transpose
from cgraph.record import Record

SIGN = 128  # what a number of int8 is larger by as a byte
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # axes of [n, h, w, c] as [n, c, h, w], and back
PLACE = (0, 2, 3, 1)  # where the axes of [n, h, w, c] are in [n, c, h, w]


class QuantisedFormat(Record, eq=False):
    """How numbers of 8 bits stand for floats: ``(number - zero) * scale``.

    Fields
        scales, zeros: one, or one for each element of an axis; zeros as the file has them
        axis: that axis
        is_signed: of int8, which are bytes 128 larger here
    """

    scales: np.ndarray
    zeros: np.ndarray
    axis: int
    is_signed: bool

    @property
    def scale(self) -> np.float32:
        """The one scale."""
        if self.scales.size != 1:
            raise FormatError(f"{self.scales.size} scales, one is expected")
        return self.scales[0]

    @property
    def zero(self) -> int:
        """The byte that means 0."""
        if self.zeros.size != 1:
            raise FormatError(f"{self.zeros.size} zero points, one is expected")
        return int(self.zeros[0]) + self.sign

    @property
    def sign(self) -> int:
        """What bytes are larger by than the file's numbers."""
        return SIGN if self.is_signed else 0

    def equals(self, other: "QuantisedFormat") -> bool:
        """The same byte stands for the same float."""
        return self.scale == other.scale and self.zero == other.zero


class TfliteValue(Record, eq=False):
    """A tensor.

    Fields
        expression: what computes it; None of one that the file holds
        array: what the file holds, in its own order of axes
        first: of four axes, which the node has in the order n, c, h, w
        quantised: what its bytes stand for; None of all other values
    """

    expression: Node | None = None
    array: np.ndarray | None = None
    first: bool = False
    quantised: QuantisedFormat | None = None

    @cached_property
    def stored(self) -> np.ndarray:
        """What the file holds, int8 as bytes."""
        assert self.array is not None
        if self.array.dtype == np.float16:
            raise FormatError("numbers of float16 are read by DEQUANTIZE alone")
        if self.quantised is None or not self.quantised.is_signed:
            return self.array
        return self.array.view("uint8") ^ np.uint8(SIGN)

    @cached_property
    def node(self) -> Node:
        """The value in the order of axes that it has."""
        if self.expression is not None:
            return self.expression
        return Const(self.stored, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """In the file's order."""
        shape = self.node.shape if self.array is None else self.array.shape
        return tuple(shape[i] for i in LAST) if self.first else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def bytes(self) -> QuantisedFormat:
        """What its bytes stand for."""
        if self.quantised is None:
            raise FormatError("quantised values beside others are not supported")
        return self.quantised

    @property
    def plain(self) -> Node:
        """The node in the file's order of axes."""
        return permute(self.node, LAST) if self.first else self.node

    @property
    def images(self) -> Node:
        """The node ``[n, c, h, w]``; of fewer axes, with axes of one element in front."""
        if self.first:
            return self.node
        if self.ndim > 4:
            raise FormatError(f"a tensor of {self.ndim} axes is no image")
        if self.array is not None:
            wide = self.stored.reshape((1,) * (4 - self.ndim) + self.array.shape)
            return Const(in_c_order(wide.transpose(FIRST)), copy=False)
        return permute(self.node.reshape((1,) * (4 - self.ndim) + self.node.shape), FIRST)


def permute(x: Node, axes: tuple[int, ...]) -> Node:
    """A transposed node; what undoes a transpose is what that has read."""
    undone = isinstance(x.op, Transpose) and tuple(x.op.axes[i] for i in axes) == (0, 1, 2, 3)
    return x.operands[0] if undone else transpose(x, axes)
