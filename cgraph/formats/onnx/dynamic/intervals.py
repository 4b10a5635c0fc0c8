"""Interval arithmetic: bounds of the elements of values from which shapes are computed.

A rule maps bounds of the operands of an op to bounds of its result: a pair of float64 arrays of its shape, or of two
scalars if the value is large. Without a rule, the bounds are those of the dtype.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.activation import Relu
from cgraph.ops.arithmetic import (
    Abs,
    Add,
    Cast,
    FloorDivide,
    Maximum,
    Minimum,
    Multiply,
    Negative,
    Remainder,
    Rounding,
    Sign,
    Subtract,
    TrueDivide,
)
from cgraph.ops.compare import BitwiseAnd, BitwiseOr, Comparison, Invert, Where
from cgraph.ops.index import Nonzero
from cgraph.ops.join import Concat
from cgraph.ops.leaf import ConstOp
from cgraph.ops.prefix import Prefix
from cgraph.ops.reduce import All_, Any_, Argmax, Argmin, Max, Min, Prod, Sum
from cgraph.ops.scan import Cumsum
from cgraph.ops.shape import BroadcastTo, Full, Item, Reshape, Transpose
from cgraph.ops.slicing import Slice
from cgraph.ops.sort import Argsort, Unique
from cgraph.ops.take import Take

SMALL = 4096  # in values of at most this many elements, each element has its own bounds
Pair = tuple[np.ndarray, np.ndarray]
MOVES = (Reshape, Transpose, BroadcastTo, Slice, Concat)


def dtype_range(dtype: np.dtype) -> tuple[float, float]:
    """Return the range of a dtype; infinite where it exceeds any size."""
    if dtype.kind == "b":
        return 0.0, 1.0
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    return (0.0 if dtype.kind == "u" else -np.inf), np.inf


# -- leaves of a computation ------------------------------------------------------------------------------------------


def item_bounds(node: Node) -> tuple[float, float] | None:
    """Return bounds of the results of Nonzero and Unique: indices and counts."""
    producer, index = node.operands[0], node.op.index  # type: ignore[attr-defined]
    x = producer.operands[0] if producer.operands else None
    if isinstance(producer.op, Nonzero) and x is not None:
        return (0.0, float(x.size)) if index else (0.0, float(max(*x.shape, 1) - 1))
    if isinstance(producer.op, Unique) and x is not None and index:
        return float(min(x.size, 1)), float(x.size)
    return None


def index_bounds(node: Node) -> tuple[float, float]:
    """Return the range of indices into an axis."""
    return 0.0, float(max(node.operands[0].size - 1, 0))


LEAVES: dict[type, Callable[[Node], tuple[float, float] | None]] = {
    Item: item_bounds,
    Argmax: index_bounds,
    Argmin: index_bounds,
    Argsort: index_bounds,
}

# -- rules: from the node and the bounds of its operands --------------------------------------------------------------


def rising(node: Node, *pairs: Pair) -> Pair:
    """Bound an op that is monotonic in each operand."""
    low, high = zip(*pairs)
    return node.op.meaning(*low), node.op.meaning(*high)


def reduction(node: Node, x: Pair) -> Pair:
    """Bound sums, products of nonnegative elements, and extremes; the sum of n elements of one bound is n times it."""
    large = x[0].ndim != node.operands[0].ndim
    x = truth(x) if isinstance(node.op, All_ | Any_) else x
    if isinstance(node.op, Prod) and (large or (x[0] < 0).any()):
        return unknown(node)
    if not large:
        return rising(node, x)
    count = node.operands[0].size / max(node.size, 1) if isinstance(node.op, Sum) else 1
    return x[0] * count, x[1] * count


def truth(x: Pair) -> Pair:
    """Bound the truth of elements: 1 if they cannot be 0, 0 if they must be."""
    return ((x[0] > 0) | (x[1] < 0)).astype(np.float64), ((x[0] != 0) | (x[1] != 0)).astype(np.float64)


def unknown(node: Node) -> Pair:
    low, high = dtype_range(node.dtype)
    return np.array(low), np.array(high)


def logic(node: Node, x: Pair, y: Pair) -> Pair:
    """Bound and, or of bool; other dtypes are unbounded."""
    if node.dtype.kind != "b":
        return unknown(node)
    function = np.minimum if isinstance(node.op, BitwiseAnd) else np.maximum
    return function(x[0], y[0]), function(x[1], y[1])


def inversion(node: Node, x: Pair) -> Pair:
    return (1 - x[1], 1 - x[0]) if node.dtype.kind == "b" else unknown(node)


def hull(*candidates: np.ndarray) -> Pair:
    """Return the lowest and highest of some arrays, ignoring NaN (0 times infinity)."""
    return np.fmin.reduce(candidates), np.fmax.reduce(candidates)


def product(node: Node, x: Pair, y: Pair) -> Pair:
    low, high = hull(*(a * b for a in x for b in y))
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def quotient(node: Node, x: Pair, y: Pair) -> Pair:
    """Bound a quotient whose divisor is positive."""
    if not (y[0] > 0).all():
        return unknown(node)
    low, high = hull(*(a / b for a in x for b in y))
    return (np.floor(low), np.floor(high)) if isinstance(node.op, FloorDivide) else (low, high)


def remainder(node: Node, x: Pair, y: Pair) -> Pair:
    if not (y[0] > 0).all() or node.dtype.kind not in "iu":
        return unknown(node)
    small = (x[0] >= 0) & (x[1] < y[0])
    return np.where(small, x[0], 0), np.where(small, x[1], y[1] - 1)


def magnitude(node: Node, x: Pair) -> Pair:
    size = np.abs(x[0]), np.abs(x[1])
    return np.where((x[0] <= 0) & (x[1] >= 0), 0, np.minimum(*size)), np.maximum(*size)


def comparison(node: Node, x: Pair, y: Pair) -> Pair:
    """Bound a comparison: 1 if it must hold, 0 if it cannot. Floats may be NaN, so both must be constant."""
    name = type(node.op).__name__
    if node.operands[0].dtype.kind == "f" and ((x[0] != x[1]).any() or (y[0] != y[1]).any()):
        return unknown(node)
    if name.startswith("Greater"):
        x, y = y, x
    if name in ("Less", "Greater"):
        surely, perhaps = x[1] < y[0], x[0] < y[1]
    elif name in ("LessEqual", "GreaterEqual"):
        surely, perhaps = x[1] <= y[0], x[0] <= y[1]
    else:
        surely = (x[0] == x[1]) & (y[0] == y[1]) & (x[0] == y[0])
        perhaps = (x[0] <= y[1]) & (y[0] <= x[1])
        if name == "NotEqual":
            surely, perhaps = ~perhaps, ~surely
    return surely.astype(np.float64), perhaps.astype(np.float64)


def selection(node: Node, condition: Pair, x: Pair, y: Pair) -> Pair:
    """Bound a Where: one of two values, or the hull of both."""
    low = np.where(condition[0] == 1, x[0], np.where(condition[1] == 0, y[0], np.minimum(x[0], y[0])))
    return low, np.where(condition[0] == 1, x[1], np.where(condition[1] == 0, y[1], np.maximum(x[1], y[1])))


def cast(node: Node, x: Pair) -> Pair:
    """Bound a cast: integers round towards 0; bounds outside the dtype become its range.

    This does not hold for NaN: see `trusts_floats`.
    """
    if node.dtype.kind == "f":
        return x
    if node.dtype.kind == "b":
        return truth(x)
    least, most = dtype_range(node.dtype)
    if node.operands[0].dtype.kind != "f":
        fits = (x[0] >= least) & (x[1] <= most)
        return np.where(fits, x[0], least), np.where(fits, x[1], most)
    if node.dtype not in (np.int32, np.int64):
        return unknown(node)
    # a float that does not fit becomes the smallest integer, which is below any upper bound
    high = np.where(x[1] < min(most, 2.0**53), np.trunc(x[1]), most)
    return np.where((x[0] > max(least, -(2.0**53))) & (x[1] < 2.0**53), np.trunc(x[0]), least), high


def trusts_floats(node: Node) -> bool:
    """Return True if the bounds of a node do not hold for an operand that is NaN."""
    return isinstance(node.op, Cast) and node.dtype.kind in "iu" and node.operands[0].dtype.kind == "f"


def movement(node: Node, *pairs: Pair) -> Pair:
    """Bound a shape op; for large values, by the hull of all elements."""
    if any(low.ndim != x.ndim for (low, _), x in zip(pairs, node.operands)) or node.size > SMALL:
        lows, highs = zip(*map(ends, pairs))
        return np.min(lows), np.max(highs)
    return rising(node, *pairs)


def gathering(node: Node, x: Pair, index: Pair) -> Pair:
    """Bound a Take: elements at constant indices, else all elements."""
    if x[0].ndim != node.operands[0].ndim or index[0].shape != node.operands[1].shape or (index[0] != index[1]).any():
        return ends(x)
    places = index[0].astype(np.int64)
    return node.op.meaning(x[0], places), node.op.meaning(x[1], places)


RULES: dict[type, Callable[..., Pair]] = {
    **dict.fromkeys((Add, Maximum, Minimum, Relu, Sign), rising),
    Cumsum: lambda node, x: rising(node, x) if x[0].ndim else unknown(node),
    **dict.fromkeys((Sum, Prod, Max, Min, Any_, All_), reduction),
    **dict.fromkeys((BitwiseAnd, BitwiseOr), logic),
    **dict.fromkeys((TrueDivide, FloorDivide), quotient),
    **dict.fromkeys(MOVES, movement),
    Invert: inversion,
    Multiply: product,
    Remainder: remainder,
    Abs: magnitude,
    Where: selection,
    Cast: cast,
    Take: gathering,
    Prefix: lambda node, x, count: x,
    Subtract: lambda node, x, y: (x[0] - y[1], x[1] - y[0]),
    Negative: lambda node, x: (-x[1], -x[0]),
}


def rule_of(node: Node) -> Callable[..., Pair] | None:
    """Return the rule of a node, or None."""
    family = rising if isinstance(node.op, Rounding) else comparison if isinstance(node.op, Comparison) else None
    return RULES.get(type(node.op), family)


def bounds_of(node: Node, pairs: Sequence[Pair]) -> Pair:
    """Return the bounds of a node from those of its operands."""
    pair: Any = None
    with np.errstate(all="ignore"):
        if isinstance(node.op, ConstOp):
            pair = (node.op.array, node.op.array) if node.size <= SMALL and node.dtype.kind in "biuf" else None
        elif isinstance(node.op, Full):
            pair = node.op.value, node.op.value
        elif type(node.op) in LEAVES:
            pair = LEAVES[type(node.op)](node)
        elif pairs:
            large = node.size > SMALL or any(x.size > SMALL for x in node.operands)
            pair = rule_of(node)(node, *map(ends, pairs) if large else pairs)  # type: ignore[misc]
        return fit_to_node(node, dtype_range(node.dtype) if pair is None else pair)


def ends(pair: Pair) -> Pair:
    """Return one pair of bounds for all elements."""
    return np.array(pair[0].min(initial=np.inf)), np.array(pair[1].max(initial=-np.inf))


def fit_to_node(node: Node, pair: Any) -> Pair:
    """Convert bounds to float64 arrays of the node's shape, or scalars if it is large.

    NaN becomes unbounded; bounds outside the dtype become its range, since integers wrap around.
    """
    low, high = (np.asarray(v, np.float64) for v in pair)
    if node.dtype == np.float32:  # rounding preserves monotonicity
        low, high = (v.astype(np.float32).astype(np.float64) for v in (low, high))
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    least, most = dtype_range(node.dtype)
    wraps = (low < least) | (high > most)
    low, high = np.where(wraps, least, low), np.where(wraps, most, high)
    if node.size > SMALL:
        return np.asarray(low.min(initial=np.inf)), np.asarray(high.max(initial=-np.inf))
    return np.broadcast_to(low, node.shape), np.broadcast_to(high, node.shape)
