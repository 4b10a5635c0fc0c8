"""Sums of integers with a zero point that a run computes, as ``MatMulInteger`` and ``ConvInteger`` are read.

``sum((x - zero) * y)`` is a product of bytes minus the contribution of the zero point. If `y` does not fit int8, such
as uint8 numbers minus 119, it is ``y8 + shift``, and the sums of `x` times the shift are added.
"""

from math import prod

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.arithmetic import Cast, Subtract
from cgraph.ops.compare import where
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Const
from cgraph.ops.linear import Matmul
from cgraph.ops.pad import pad
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul
from cgraph.ops.shape import BroadcastTo, Reshape, broadcast_to, reshape, unbroadcast
from cgraph.passes.integers.patterns import EIGHT_BITS, PIXELS, SIGN, constant
from cgraph.record import Record, replace

MOST_RANGE = 255  # of numbers that fit int8 after a shift
MATRIX, FILTERS = 2, 4  # axes


class Right(Record, eq=False):
    """A constant right side ``y + shift`` of sums. Products that read one constant share these nodes.

    Fields
        numbers: int8: a matrix ``[k, n]``, or filters
        totals: int32, the sum of `numbers` for each column or filter
        bias, scale: of sums that stay as they are
        shift: int32, for each column or filter
    """

    numbers: Node
    totals: np.ndarray
    bias: Node
    scale: Node
    shift: np.ndarray


Rights = dict[tuple[Node, int], Right | None]  # of the nodes that were looked at, by their number of axes


class Sums(Record, eq=False):
    """Sums of products ``(x - zero) * right``.

    Fields
        op: Matmul or Conv2d
        x: of 8 bits
        zero: one number of any dtype; None for 0
    """

    op: Matmul | Conv2d
    x: Node
    zero: Node | None
    right: Right


def sums_of(node: Node, rights: Rights) -> Sums | None:
    """Return the sums of products that a node of int32 is; None for others. `rights` grows."""
    if not isinstance(node.op, Matmul | Cast) or node.dtype != np.int32 or node.size == 0:
        return None
    if isinstance(node.op, Matmul):
        return sums_with(node.op, node.operands[0], unbroadcast(node.operands[1]), rights)
    core = node.operands[0]
    if not isinstance(core.op, Conv2d) or core.dtype != np.float64:
        return None
    x = core.operands[0]
    return sums_with(core.op, x.operands[0], core.operands[1], rights) if isinstance(x.op, Cast) else None


def sums_with(op: Matmul | Conv2d, x: Node, y: Node, rights: Rights) -> Sums | None:
    """Return the sums of a node's operands: int32 numbers, and a constant."""
    zero: Node | None = None
    if isinstance(x.op, Subtract):
        x, zero = x.operands
    if not isinstance(x.op, Cast) or x.operands[0].dtype.name not in EIGHT_BITS:
        return None
    key = y, MATRIX if isinstance(op, Matmul) else FILTERS
    if key not in rights:
        rights[key] = right_of(*key)
    right = rights[key]
    while zero is not None and isinstance(zero.op, BroadcastTo | Reshape):
        zero = zero.operands[0]
    if right is None or (zero is not None and zero.size != 1) or (zero is None and isinstance(op, Matmul)):
        return None
    return Sums(op, x.operands[0], zero, right)


def right_of(node: Node, axes: int) -> Right | None:
    """Return a constant with so many axes as a right side; None if there is none, or its range is too large."""
    y = constant(node)
    if y is None or y.ndim != axes or not y.size:
        return None
    inner = (0,) if axes == MATRIX else (1, *PIXELS)
    low, high = y.min(inner), y.max(inner)
    if (high - low).max() > MOST_RANGE or (y != np.rint(y)).any():
        return None
    shift = np.zeros_like(low) if low.min() >= -SIGN and high.max() < SIGN else low + SIGN
    numbers = (y - (shift if axes == MATRIX else shift.reshape(-1, 1, 1, 1))).astype("int8")
    bias, scale = Const(np.zeros(len(shift), "int32")), Const(np.ones(len(shift), "float32"))
    return Right(Const(numbers, copy=False), numbers.sum(inner, dtype="int32"), bias, scale, shift.astype("int32"))


def byte_sums(sums: Sums, x: Node, zero_point: Node | None) -> Node:
    """Return the sums of products as int32.

    Parameters
        x: the bytes of `sums.x`
        zero_point: the zero point of these bytes as int32, one number; None for 0
    """
    return (matrix_sums if isinstance(sums.op, Matmul) else image_sums)(sums, x, zero_point)


def matrix_sums(sums: Sums, x: Node, zero_point: Node | None) -> Node:
    """Return the sums of a product of matrices."""
    right, depth = sums.right, sums.right.numbers.shape[0]
    total = apply(IntegerMatmul(0, Result("i4")), x, right.numbers, right.bias, right.scale)
    if zero_point is not None:
        total = total - zero_point * Const(right.totals)
    if right.shift.any():
        rows = x.astype("int32").sum(-1, keepdims=True).astype("int32")
        total = total + (rows if zero_point is None else rows - zero_point * np.int32(depth)) * Const(right.shift)
    return total


def image_sums(sums: Sums, x: Node, zero_point: Node | None) -> Node:
    """Return the sums of a convolution, whose images are padded with their zero point first."""
    conv, right = sums.op, sums.right
    assert isinstance(conv, Conv2d)
    if any(conv.pad):
        x, conv = padded(x, conv.pad, zero_point), replace(conv, pad=(0, 0, 0, 0))
    total = apply(IntegerConv(conv, 0, Result("i4")), x, right.numbers, right.bias, right.scale)
    if zero_point is not None:
        total = total - zero_point * Const(right.totals[:, None, None])
    if not right.shift.any():
        return total
    window = window_sums(conv, x, right.numbers.shape[1:])
    if zero_point is not None:
        window = window - zero_point * np.int32(prod(right.numbers.shape[1:]))
    n, k, h, w = total.shape
    each = broadcast_to(reshape(window, (n, conv.groups, 1, h, w)), (n, conv.groups, k // conv.groups, h, w))
    return total + reshape(each, total.shape) * Const(right.shift[:, None, None])


def window_sums(conv: Conv2d, x: Node, window: tuple[int, ...]) -> Node:
    """Return the sum of the bytes in each window, for each group."""
    ones = np.ones((conv.groups, *window), "int8")
    constants = ones, np.zeros(conv.groups, "int32"), np.ones(conv.groups, "float32")
    return apply(IntegerConv(conv, 0, Result("i4")), x, *map(Const, constants))


def padded(x: Node, pads: tuple[int, ...], zero_point: Node | None) -> Node:
    """Return images of bytes with their zero point around them."""
    top, left, bottom, right = pads
    widths = [(0, 0), (0, 0), (top, bottom), (left, right)]
    whole = pad(x, widths)
    if zero_point is None:
        return whole
    inside = np.pad(np.ones((1, 1, *x.shape[2:]), bool), widths)
    return where(Const(inside), whole, reshape(zero_point.astype("uint8"), (1, 1, 1, 1)))
