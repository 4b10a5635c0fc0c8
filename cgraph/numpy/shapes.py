"""Shape functions: the same elements in another arrangement."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import join, shape
from cgraph.ops.family import broadcast
from cgraph.ops.index import atleast_1d as with_one_axis
from cgraph.ops.leaf import ConstOp, as_node
from cgraph.ops.shape import (
    axes_of,
    axis_of,
    broadcast_to,
    expand_dims,
    moveaxis,
    squeeze,
    swapaxes,
)
from cgraph.ops.shape import reshape as in_c_order
from cgraph.ops.shape import transpose as any_transpose
from cgraph.ops.slicing import flip
from cgraph.ops.sliding import sliding
from cgraph.ops.take import take

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "expand_dims", "flip", "fliplr",
    "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "repeat", "reshape", "resize", "roll",
    "rollaxis", "rot90", "sliding_window_view", "squeeze", "swapaxes", "tile", "transpose",
]  # fmt: skip

broadcast_to, flip = of(np.broadcast_to)(broadcast_to), of(np.flip)(flip)
moveaxis, squeeze, swapaxes = of(np.moveaxis)(moveaxis), of(np.squeeze)(squeeze), of(np.swapaxes)(swapaxes)
expand_dims, roll, tile = of(np.expand_dims)(expand_dims), of(np.roll)(join.roll), of(np.tile)(join.tile)


def whole_order(order: str) -> bool:
    """Return True if elements are counted with the first axis fastest."""
    if order not in ("C", "F", "A", "K"):
        raise ShapeError(f"order is {order!r}. Use 'C' or 'F'")
    return order == "F"


@of(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Node:
    """Return the same elements under another shape; one axis may be -1. In order "F" the first axis is the fastest."""
    if not whole_order(order):
        return in_c_order(a, shape)
    turned = in_c_order(any_transpose(a), tuple(np.atleast_1d(shape).tolist())[::-1])
    return any_transpose(turned)


@of(np.ravel)
def ravel(a: Any, order: str = "C") -> Node:
    """Return all elements along one axis."""
    return shape.ravel(any_transpose(a) if whole_order(order) else a)


@of(np.transpose)
def transpose(a: Any, axes: Sequence[int] | None = None) -> Node:
    """Return axes in another order, reversed by default."""
    return any_transpose(a) if axes is None else any_transpose(a, tuple(axes))


permute_dims = transpose


@of(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Node:
    """Return the last two axes exchanged."""
    return swapaxes(x, -1, -2)


@of(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Node:
    """Return an axis moved to before another one."""
    a = as_node(a)
    axis = axis_of(axis, a.ndim)
    start = axis_of(start, a.ndim + 1) if start >= 0 else axis_of(start, a.ndim)
    return moveaxis(a, axis, start - 1 if axis < start else start)


@of(np.broadcast_arrays)
def broadcast_arrays(*args: Any) -> tuple[Node, ...]:
    """Return all broadcast to one shape."""
    return tuple(broadcast(*map(as_node, args)))


@of(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Return operands with at least one axis; a tuple for several."""
    return one_or_all(with_one_axis(x) for x in arys)


@of(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Return operands with at least two axes, new ones in front; a tuple for several."""
    return one_or_all(expand_dims(x, list(range(2 - x.ndim))) if x.ndim < 2 else x for x in map(as_node, arys))


@of(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Return operands with at least three axes: ``[1, n, 1]``, ``[m, n, 1]``; a tuple for several."""
    new = {0: [0, 1, 2], 1: [0, 2], 2: [2]}
    return one_or_all(expand_dims(x, new[x.ndim]) if x.ndim < 3 else x for x in map(as_node, arys))


def one_or_all(arrays: Any) -> Any:
    arrays = tuple(arrays)
    return arrays[0] if len(arrays) == 1 else arrays


@of(np.fliplr)
def fliplr(m: Any) -> Node:
    """Return the second axis reversed."""
    return flip(m, 1)


@of(np.flipud)
def flipud(m: Any) -> Node:
    """Return the first axis reversed."""
    return flip(m, 0)


@of(np.rot90)
def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Node:
    """Rotate by quarter turns, from the first of two axes to the second."""
    m = as_node(m)
    first, second = (axis_of(a, m.ndim) for a in axes)
    if first == second:
        raise ShapeError(f"axes {list(axes)} of {m.name} {m.spec} are not two axes; choose two different ones")
    if k % 4 == 2:
        return flip(m, (first, second))
    if k % 4 == 0:
        return m
    return swapaxes(flip(m, second), first, second) if k % 4 == 1 else flip(swapaxes(m, first, second), second)


@of(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Node:
    """Repeat each element; the counts must be constant."""
    constant = repeats.op.array if isinstance(repeats, Node) and isinstance(repeats.op, ConstOp) else repeats
    if isinstance(constant, Node):
        raise NoMeaningError(
            f"counts {constant.spec} have no value yet, so the shape of the result is unknown; "
            "use np.take(x, positions) with as many positions as the result shall have"
        )
    counts = np.asarray(constant)
    if counts.ndim == 0:
        return join.repeat(a, int(counts), axis)
    a = shape.ravel(a) if axis is None else as_node(a)
    axis = axis_of(axis or 0, a.ndim)
    return take(a, np.repeat(np.arange(a.shape[axis]), counts), axis)


@of(np.resize)
def resize(a: Any, new_shape: Any) -> Node:
    """Return elements in C order, from the start again when there are too few. Pictures are resized by
    `cgraph.resize`."""
    flat, new = shape.ravel(a), tuple(np.atleast_1d(new_shape).tolist())
    count = int(np.prod(new, dtype=np.int64))
    if not flat.size or not count:
        return shape.zeros(new, flat.dtype)
    return in_c_order(tile(flat, -(-count // flat.size))[:count], new)


@of(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Node:
    """Return every window of the operand, as new last axes: a view of overlapping elements without bytes of its own."""
    x = as_node(x)
    lengths = np.atleast_1d(window_shape).tolist()
    axes = list(axes_of(None, x.ndim)) if axis is None else [axis_of(a, x.ndim) for a in np.atleast_1d(axis).tolist()]
    if len(axes) != len(lengths):
        raise ShapeError(
            f"{len(lengths)} window lengths for {len(axes)} axes of {x.name} {x.spec}; give one for each axis"
        )
    for a, n in zip(axes, lengths):
        x = sliding(x, n, a)
    return x
