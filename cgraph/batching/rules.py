"""Batching rules: how one op computes the results of all examples, which lie along a new first axis.

A rule takes the op, its operands, which of them are batched, and the number of examples. It returns the batched node,
or None where a loop over the examples has to do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, Op, apply
from cgraph.ops import (
    attention,
    bitcast,
    conv,
    diagonal,
    factors,
    fourier,
    index,
    join,
    linalg,
    linear,
    norm,
    pad,
    pool,
    reduce,
    scan,
    slicing,
    sliding,
    softmax,
    sort,
    stop,
    take,
    whole,
)
from cgraph.ops import complex as complex_ops
from cgraph.ops import shape as shapes
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.index import flat_position
from cgraph.ops.shape import broadcast_to, moveaxis, reshape
from cgraph.record import replace

Rule = Callable[[Any, list[Node], list[bool], int], Node | None]


def expand(x: Node, size: int) -> Node:
    """Return a value that is equal for all examples, repeated along a new first axis."""
    return broadcast_to(reshape(x, (1, *x.shape)), (size, *x.shape))


def all_batched(xs: list[Node], flags: list[bool], size: int) -> list[Node]:
    """Return the operands, each with the axis of examples."""
    return [x if flag else expand(x, size) for x, flag in zip(xs, flags)]


def same_op(op: Op, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Apply an op that works on the last axes, or on each element, and takes any leading axes."""
    return apply(op, *all_batched(xs, flags, size))


def next_axis(op: Any, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Apply an op of one axis, which moves by one."""
    return apply(replace(op, axis=op.axis + 1), *all_batched(xs, flags, size))


def next_axes(op: Any, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Apply an op of several axes, which move by one."""
    return apply(replace(op, axes=tuple(a + 1 for a in op.axes)), *xs)


def batch_reshape(op: shapes.Reshape, xs: list[Node], flags: list[bool], size: int) -> Node:
    return reshape(xs[0], (size, *op.shape))


def batch_transpose(op: shapes.Transpose, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(shapes.Transpose((0, *[a + 1 for a in op.axes])), xs[0])


def batch_broadcast(op: shapes.BroadcastTo, xs: list[Node], flags: list[bool], size: int) -> Node:
    x = xs[0]
    ones = (1,) * (len(op.shape) - x.ndim + 1)
    return broadcast_to(reshape(x, (size, *ones, *x.shape[1:])), (size, *op.shape))


def batch_slice(op: slicing.Slice, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(slicing.Slice((0, *op.starts), (1, *op.steps), (size, *op.lengths)), xs[0])


def batch_set_slice(op: slicing.SetSlice, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(slicing.SetSlice((0, *op.starts), (1, *op.steps)), *all_batched(xs, flags, size))


def batch_pad(op: pad.Pad, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(pad.Pad(((0, 0), *op.widths), op.value), xs[0])


def batch_layer_norm(op: norm.LayerNorm, xs: list[Node], flags: list[bool], size: int) -> Node | None:
    return None if any(flags[1:]) else apply(op, *xs)


def batch_matmul(op: linear.Matmul, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Multiply matrices; rows of all examples times one matrix are one product."""
    x, y = xs
    if x.ndim == 3 and not flags[1]:
        return reshape(apply(op, reshape(x, (size * x.shape[1], x.shape[2])), y), (size, x.shape[1], y.shape[1]))
    return same_op(op, xs, flags, size)


def batch_attention(op: attention.Attention, xs: list[Node], flags: list[bool], size: int) -> Node | None:
    """Join examples and batch elements, unless a mask broadcasts over the latter."""
    if op.has_mask:
        return None
    merged = [reshape(x, (size * x.shape[1], *x.shape[2:])) for x in all_batched(xs, flags, size)]
    return reshape(apply(op, *merged), (size, -1, *merged[0].shape[1:3], merged[2].shape[3]))


def batch_take(op: take.Take, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Take along an axis; where positions differ, from the rows of all examples as one axis."""
    x, positions = xs
    if not flags[1]:
        return apply(take.Take(op.axis + 1), x, positions)
    if not flags[0]:
        return moveaxis(apply(op, x, positions), op.axis, 0)
    rows, flat = joined_rows(moveaxis(x, op.axis + 1, 1), positions, size)
    rank = positions.ndim - 1
    return moveaxis(apply(take.Take(0), rows, flat), range(1, 1 + rank), range(1 + op.axis, 1 + op.axis + rank))


def batch_scatter(op: take.Scatter, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Write at positions along an axis; where positions differ, into the rows of all examples as one axis."""
    if not flags[1]:
        x, updates = all_batched([xs[0], xs[2]], [flags[0], flags[2]], size)
        return apply(take.Scatter(op.axis + 1, op.how), x, xs[1], updates)
    x, positions, updates = all_batched(xs, flags, size)
    rank = positions.ndim - 1
    updates = moveaxis(updates, range(1 + op.axis, 1 + op.axis + rank), range(1, 1 + rank))
    front = moveaxis(x, op.axis + 1, 1)
    rows, flat = joined_rows(front, positions, size)
    written = apply(take.Scatter(0, op.how), rows, flat, updates)
    return moveaxis(reshape(written, front.shape), 1, op.axis + 1)


def joined_rows(x: Node, positions: Node, size: int) -> tuple[Node, Node]:
    """Return rows ``[size, n, ...]`` as one axis, and positions in it; a position outside n stays outside."""
    numbers = np.arange(size).reshape(size, *[1] * (positions.ndim - 1))
    flat = flat_position([numbers, positions], x.shape[:2], positions.shape)
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), flat


RULES: dict[type[Op], Rule] = {
    shapes.Reshape: batch_reshape,
    shapes.Transpose: batch_transpose,
    shapes.BroadcastTo: batch_broadcast,
    slicing.Slice: batch_slice,
    slicing.SetSlice: batch_set_slice,
    pad.Pad: batch_pad,
    norm.LayerNorm: batch_layer_norm,
    linear.Matmul: batch_matmul,
    attention.Attention: batch_attention,
    take.Take: batch_take,
    take.Scatter: batch_scatter,
    **dict.fromkeys(
        (
            bitcast.Bitcast, complex_ops.AsPairs, diagonal.Diagonal, diagonal.Triangle, factors.Eig, factors.Eigh,
            factors.Qr, factors.Svd, linalg.Cholesky, linalg.Det, linalg.Inv, linalg.Slogdet, linalg.Solve,
            shapes.Contiguous, stop.StopGradient, whole.Gcd,
        ),
        same_op,
    ),
    **dict.fromkeys(
        (
            fourier.InverseRealFourier, fourier.RealFourier, index.OneHot, join.Concat, scan.Cumprod, scan.Cumsum,
            sliding.Sliding, softmax.LogSoftmax, softmax.Logsumexp, softmax.Softmax, sort.Argsort, sort.Sort,
            sort.TopK, take.PutAlongAxis, take.TakeAlongAxis,
        ),
        next_axis,
    ),
    **dict.fromkeys(
        (
            fourier.Fourier, reduce.All_, reduce.Any_, reduce.Argmax, reduce.Argmin, reduce.Max, reduce.Min,
            reduce.Prod, reduce.Sum,
        ),
        next_axes,
    ),
}  # fmt: skip
"""The rule of each op; pointwise ops need none."""
SAMPLEWISE = (
    conv.Conv1d, conv.Conv2d, conv.Conv3d, conv.ConvTranspose, pool.MaxPool, AvgPool, norm.BatchNorm, norm.GroupNorm,
    norm.Lrn,
)  # fmt: skip
"""Ops that treat the images along the first axis of their first operand alike."""
