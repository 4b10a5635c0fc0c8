"""Patterns of quantised values in a graph: scales, bounds, products with their constants. Creates no nodes."""

from collections.abc import Callable

import numpy as np

from cgraph.ir.graph import Node, Op
from cgraph.ops.activation import Relu
from cgraph.ops.arithmetic import Add, Cast, Maximum, Minimum, Multiply, Subtract, TrueDivide
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.ops.reduce import Sum
from cgraph.ops.shape import BroadcastTo, Reshape, Transpose, unbroadcast
from cgraph.passes.integers.disjoint_windows import is_disjoint
from cgraph.record import Record

SIGN = 128  # difference between an int8 number and its byte
EIGHT_BITS = ("int8", "uint8")
PIXELS = (2, 3)
MOST_STEPS = 16  # ops from a constant in a file to the one that an operator reads
Bounds = tuple[int, int]
IsInner = Callable[[Node], bool]


class Scale(Record):
    """Relation of bytes to float32 numbers: ``(byte - zero) * scale``."""

    scale: float
    zero: int


class Bytes(Record, eq=False):
    """An 8-bit value, and the scale of its floats, taken as bytes."""

    node: Node
    scale: Scale


class Product(Record, eq=False):
    """A convolution or a product of matrices of bytes.

    Fields
        op: Conv2d, Matmul, or a ConvTranspose whose windows do not overlap
        x: its left side
        filters: int8, as the op reads them; bias: int32 for each channel of the result
        factor: float32 for each channel of the result: the factor from sums to floats
    """

    op: Op
    x: Bytes
    filters: np.ndarray
    bias: np.ndarray
    factor: np.ndarray


class ValueProduct(Record, eq=False):
    """A product of two values of bytes: ``x @ y``."""

    x: Bytes
    y: Bytes

    @property
    def scale(self) -> np.float32:
        """The factor from sums to floats; infinite if it overflows."""
        with np.errstate(over="ignore"):
            return np.float32(self.x.scale.scale) * np.float32(self.y.scale.scale)


def constant(node: Node) -> np.ndarray | None:
    """Return the value of a constant after a few steps, as files contain them; None for other nodes."""
    order, leaves = [], [node]
    while leaves:
        x = leaves.pop()
        if not isinstance(x.op, ConstOp | Reshape | BroadcastTo | Transpose | Cast | Subtract | Multiply):
            return None
        order.append(x)
        leaves += x.operands
        if len(order) > MOST_STEPS:
            return None
    values: dict[Node, np.ndarray] = {}
    for x in reversed(order):
        values[x] = x.op.array if isinstance(x.op, ConstOp) else x.op.meaning(*(values[y] for y in x.operands))
    return values[node]


def single(node: Node) -> float | None:
    """Return the one number that fills a constant; None for other nodes."""
    value = constant(unbroadcast(node))
    return value.item() if value is not None and value.size == 1 else None


def scale_of(node: Node) -> Scale | None:
    """Return the scale of the bytes that a Quantize returns or a Dequantize reads; None if they are not 8-bit values of
    one scale.
    """
    x = node if isinstance(node.op, Quantize) else node.operands[0]
    floats = node.operands[0] if isinstance(node.op, Quantize) else node
    scale, zero = map(single, node.operands[1:])
    if x.dtype.name not in EIGHT_BITS or floats.dtype != np.float32 or scale is None or zero is None:
        return None
    if not 0 < scale < np.inf:
        return None
    return Scale(scale, int(zero) + (SIGN if x.dtype.kind == "i" else 0))


def dequantized_bytes(node: Node) -> Bytes | None:
    """Return the bytes that a float represents, if it is dequantised from some."""
    scale = scale_of(node) if isinstance(node.op, Dequantize) else None
    return Bytes(node.operands[0], scale) if scale else None


def byte_of(x: float, scale: Scale) -> int:
    """Return the byte of a float, in float32; for infinities the first and the last one."""
    with np.errstate(over="ignore"):
        level = np.rint(np.float32(x) / np.float32(scale.scale)) + np.float32(scale.zero)
    return int(np.clip(level, 0, 255))


def bounds_of(node: Node, scale: Scale, is_inner: IsInner) -> tuple[Node, Bounds]:
    """Return the operand of a Quantize before bounds that no other node reads, and the bounds as bytes: rounding keeps
    order.
    """
    inside, low, high = node.operands[0], -np.inf, np.inf
    while is_inner(inside) and (limits := bound(inside)):
        x, least, most = limits
        low, high = min(max(least, low), high), max(min(most, high), low)
        inside = x
    return inside, (byte_of(low, scale), byte_of(high, scale))


def bound(node: Node) -> tuple[Node, float, float] | None:
    """Return the operand of a Relu, a Maximum or a Minimum with a constant, and its bounds."""
    if isinstance(node.op, Relu):
        return node.operands[0], 0.0, np.inf
    if isinstance(node.op, Maximum | Minimum):
        for x, y in (node.operands, node.operands[::-1]):
            value = single(y)
            if value is not None and value == value:
                return (x, value, np.inf) if isinstance(node.op, Maximum) else (x, -np.inf, value)
    return None


def product_of(node: Node, is_inner: IsInner) -> Product | None:
    """Return the product of bytes, perhaps with a bias, whose float32 value is a node; else None."""
    if is_product(node):
        return product_with_bias(node, None)
    if isinstance(node.op, Add):
        for core, bias in (node.operands, node.operands[::-1]):
            if is_product(core) and is_inner(core) and (product := product_with_bias(core, bias)):
                return product
    return None


def is_product(node: Node) -> bool:
    return isinstance(node.op, Conv2d | Matmul) or is_disjoint(node)


def product_with_bias(node: Node, bias: Node | None) -> Product | None:
    """Return a product and its addend."""
    axis = 0 if isinstance(node.op, Conv2d) else 1
    behind = 0 if isinstance(node.op, Matmul) else node.ndim - 2
    right = unbroadcast(node.operands[1]) if isinstance(node.op, Matmul) else node.operands[1]
    if isinstance(node.op, Matmul) and right.ndim != 2:
        return None
    x, weights = dequantized_bytes(node.operands[0]), filters_of(right, axis)
    if x is None or weights is None or node.dtype != np.float32 or node.size == 0:
        return None
    filters, scale = weights
    factor = np.float32(x.scale.scale) * scale
    start = np.zeros(len(factor), "int32") if bias is None else bias_of(bias, factor, behind)
    if start is None or not (np.isfinite(factor) & (factor > 0)).all():
        return None
    return Product(node.op, x, filters, start, factor)


def pair_of(node: Node) -> ValueProduct | None:
    """Return the product of bytes of two values, each with one scale, whose float32 value is a node; else None."""
    if not isinstance(node.op, Matmul) or node.dtype != np.float32 or node.size == 0 or node.operands[0].size == 0:
        return None
    x, y = map(dequantized_bytes, node.operands)
    pair = ValueProduct(x, y) if x and y else None
    return pair if pair and 0 < pair.scale < np.inf else None


def filters_of(node: Node, axis: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return filters as int8 and the scale of each along an axis; None if they are not constants around 0."""
    perm = node.op.axes if isinstance(node.op, Transpose) else tuple(range(node.ndim))
    inner = node.operands[0] if isinstance(node.op, Transpose) else node
    if not isinstance(inner.op, Dequantize) or node.ndim not in (2, 4):
        return None
    filters, zero = constant(inner.operands[0]), constant(inner.operands[2])
    scale = vector_of(inner.operands[1], perm[axis])
    if filters is None or zero is None or scale is None or filters.dtype.name not in EIGHT_BITS:
        return None
    if (zero != (0 if filters.dtype.kind == "i" else SIGN)).any():
        return None
    if filters.dtype.kind == "u":
        filters = (filters ^ SIGN).view("int8")
    return np.ascontiguousarray(filters.transpose(perm)), np.broadcast_to(scale, (node.shape[axis],))


def vector_of(node: Node, axis: int) -> np.ndarray | None:
    """Return a constant that is broadcast along all axes except one, as a vector of its elements."""
    value = constant(unbroadcast(node))
    if value is None or value.dtype != np.float32:
        return None
    shape = (1,) * (node.ndim - value.ndim) + value.shape
    return value.reshape(-1) if all(n == 1 or i == axis for i, n in enumerate(shape)) else None


def bias_of(node: Node, factor: np.ndarray, behind: int) -> np.ndarray | None:
    """Return a bias in the unit of the sums, one for each channel, followed by `behind` axes; None for any other
    addend.
    """
    shape = node.shape
    while isinstance(node.op, BroadcastTo | Reshape):
        shape = node.operands[0].shape if isinstance(node.op, BroadcastTo) else shape
        node = node.operands[0]
    if not isinstance(node.op, Dequantize) or shape[-1 - behind :] != (len(factor), *[1] * behind):
        return None
    if node.size != len(factor):
        return None
    bias, scale, zero = map(constant, node.operands)
    if bias is None or bias.dtype != np.int32 or scale is None or zero is None or zero.any():
        return None
    if (scale.reshape(-1) != factor).any():
        return None
    return bias.reshape(-1)


def mean_of(node: Node) -> Bytes | None:
    """Return the bytes ``[n, c, h, w]`` whose mean over pixels is a node; else None."""
    if not isinstance(node.op, TrueDivide):
        return None
    total, count = node.operands[0], single(node.operands[1])
    if isinstance(total.op, Reshape):
        total = total.operands[0]
    x = dequantized_bytes(total.operands[0]) if isinstance(total.op, Sum) and total.op.axes == PIXELS else None
    return x if x and x.node.ndim == 4 and count == x.node.shape[2] * x.node.shape[3] else None
