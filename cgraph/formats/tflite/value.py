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

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # axes of [n, h, w, c] as [n, c, h, w], and back
PLACE = (0, 2, 3, 1)  # where the axes of [n, h, w, c] are in [n, c, h, w]


class Value(Record, eq=False):
    """A tensor.

    Fields
        made: what computes it; None of one that the file holds
        array: what the file holds, in its own order of axes
        first: of four axes, which the node has in the order n, c, h, w
    """

    made: Node | None = None
    array: np.ndarray | None = None
    first: bool = False

    @cached_property
    def node(self) -> Node:
        """The value in the order of axes that it has."""
        if self.made is not None:
            return self.made
        assert self.array is not None
        if self.array.dtype == np.float16:
            raise FormatError("numbers of float16 are read by DEQUANTIZE alone")
        return Const(self.array, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """In the file's order."""
        shape = self.node.shape if self.array is None else self.array.shape
        return tuple(shape[i] for i in LAST) if self.first else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def plain(self) -> Node:
        """The node in the file's order of axes."""
        return turned(self.node, LAST) if self.first else self.node

    @property
    def images(self) -> Node:
        """The node ``[n, c, h, w]``; of fewer axes, with axes of one element in front."""
        if self.first:
            return self.node
        if self.ndim > 4:
            raise FormatError(f"a tensor of {self.ndim} axes is no image")
        if self.array is not None and self.array.dtype != np.float16:
            wide = self.array.reshape((1,) * (4 - self.ndim) + self.array.shape)
            return Const(in_c_order(wide.transpose(FIRST)), copy=False)
        return turned(self.node.reshape((1,) * (4 - self.ndim) + self.node.shape), FIRST)


def turned(x: Node, axes: tuple[int, ...]) -> Node:
    """A transposed node; what undoes a transpose is what that has read."""
    undone = isinstance(x.op, Transpose) and tuple(x.op.axes[i] for i in axes) == (0, 1, 2, 3)
    return x.operands[0] if undone else transpose(x, axes)
