"""Batching rules: how one op computes the results of all examples, which lie along a new first axis.

A rule takes the op, its operands, which of them are batched, and the number of examples. It returns the batched node,
or None where a loop over the examples has to do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, Op, apply
from cgraph.ops.attention import Attention
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.bitcast import Bitcast
from cgraph.ops.complex import AsPairs
from cgraph.ops.conv import Conv1d, Conv2d, Conv3d, ConvTranspose
from cgraph.ops.diagonal import Diagonal, Triangle
from cgraph.ops.factors import Eig, Eigh, Qr, Svd
from cgraph.ops.fourier import Fourier, InverseRealFourier, RealFourier
from cgraph.ops.index import OneHot, flat_position
from cgraph.ops.join import Concat
from cgraph.ops.linalg import Cholesky, Det, Inv, Slogdet, Solve
from cgraph.ops.linear import Matmul
from cgraph.ops.norm import BatchNorm, GroupNorm, LayerNorm, Lrn, RmsNorm
from cgraph.ops.pad import Pad
from cgraph.ops.pool import MaxPool
from cgraph.ops.reduce import All_, Any_, Argmax, Argmin, Max, Min, Prod, Sum
from cgraph.ops.scan import Cumprod, Cumsum
from cgraph.ops.shape import BroadcastTo, Contiguous, Reshape, Transpose, broadcast_to, moveaxis, reshape
from cgraph.ops.slicing import SetSlice, Slice
from cgraph.ops.sliding import Sliding
from cgraph.ops.softmax import LogSoftmax, Logsumexp, Softmax
from cgraph.ops.sort import Argsort, Sort, TopK
from cgraph.ops.stop import StopGradient
from cgraph.ops.take import PutAlongAxis, Scatter, Take, TakeAlongAxis
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


def batch_reshape(op: Reshape, xs: list[Node], flags: list[bool], size: int) -> Node:
    return reshape(xs[0], (size, *op.shape))


def batch_transpose(op: Transpose, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(Transpose((0, *[a + 1 for a in op.axes])), xs[0])


def batch_broadcast(op: BroadcastTo, xs: list[Node], flags: list[bool], size: int) -> Node:
    x = xs[0]
    ones = (1,) * (len(op.shape) - x.ndim + 1)
    return broadcast_to(reshape(x, (size, *ones, *x.shape[1:])), (size, *op.shape))


def batch_slice(op: Slice, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(Slice((0, *op.starts), (1, *op.steps), (size, *op.lengths)), xs[0])


def batch_set_slice(op: SetSlice, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(SetSlice((0, *op.starts), (1, *op.steps)), *all_batched(xs, flags, size))


def batch_pad(op: Pad, xs: list[Node], flags: list[bool], size: int) -> Node:
    return apply(Pad(((0, 0), *op.widths), op.value), xs[0])


def batch_layer_norm(op: LayerNorm | RmsNorm, xs: list[Node], flags: list[bool], size: int) -> Node | None:
    return None if any(flags[1:]) else apply(op, *xs)


def batch_matmul(op: Matmul, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Multiply matrices; rows of all examples times one matrix are one product."""
    x, y = xs
    if x.ndim == 3 and not flags[1]:
        return reshape(apply(op, reshape(x, (size * x.shape[1], x.shape[2])), y), (size, x.shape[1], y.shape[1]))
    return same_op(op, xs, flags, size)


def batch_attention(op: Attention, xs: list[Node], flags: list[bool], size: int) -> Node | None:
    """Join examples and batch elements, unless a mask broadcasts over the latter."""
    if op.has_mask:
        return None
    batched = all_batched(xs, flags, size)
    merged = [reshape(x, (size * x.shape[1], *x.shape[2:])) for x in batched]
    return reshape(apply(op, *merged), (*batched[0].shape[:4], merged[2].shape[3]))


def batch_take(op: Take, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Take along an axis; where positions differ, from the rows of all examples as one axis."""
    x, positions = xs
    if not flags[1]:
        return apply(Take(op.axis + 1), x, positions)
    if not flags[0]:
        return moveaxis(apply(op, x, positions), op.axis, 0)
    rows, flat = joined_rows(moveaxis(x, op.axis + 1, 1), positions, size)
    rank = positions.ndim - 1
    return moveaxis(apply(Take(0), rows, flat), range(1, 1 + rank), range(1 + op.axis, 1 + op.axis + rank))


def batch_scatter(op: Scatter, xs: list[Node], flags: list[bool], size: int) -> Node:
    """Write at positions along an axis; where positions differ, into the rows of all examples as one axis."""
    if not flags[1]:
        x, updates = all_batched([xs[0], xs[2]], [flags[0], flags[2]], size)
        return apply(Scatter(op.axis + 1, op.how), x, xs[1], updates)
    x, positions, updates = all_batched(xs, flags, size)
    rank = positions.ndim - 1
    updates = moveaxis(updates, range(1 + op.axis, 1 + op.axis + rank), range(1, 1 + rank))
    front = moveaxis(x, op.axis + 1, 1)
    rows, flat = joined_rows(front, positions, size)
    written = apply(Scatter(0, op.how), rows, flat, updates)
    return moveaxis(reshape(written, front.shape), 1, op.axis + 1)


def joined_rows(x: Node, positions: Node, size: int) -> tuple[Node, Node]:
    """Return rows ``[size, n, ...]`` as one axis, and positions in it; a position outside n stays outside."""
    numbers = np.arange(size).reshape(size, *[1] * (positions.ndim - 1))
    flat = flat_position([numbers, positions], x.shape[:2], positions.shape)
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), flat


RULES: dict[type[Op], Rule] = {
    Reshape: batch_reshape,
    Transpose: batch_transpose,
    BroadcastTo: batch_broadcast,
    Slice: batch_slice,
    SetSlice: batch_set_slice,
    Pad: batch_pad,
    LayerNorm: batch_layer_norm,
    RmsNorm: batch_layer_norm,
    Matmul: batch_matmul,
    Attention: batch_attention,
    Take: batch_take,
    Scatter: batch_scatter,
    **dict.fromkeys(
        (
            AsPairs, Bitcast, Cholesky, Contiguous, Det, Diagonal, Eig, Eigh, Inv, Qr, Slogdet, Solve,
            StopGradient, Svd, Triangle,
        ),
        same_op,
    ),
    **dict.fromkeys(
        (
            Argsort, Concat, Cumprod, Cumsum, InverseRealFourier, LogSoftmax, Logsumexp, OneHot, PutAlongAxis,
            RealFourier, Sliding, Softmax, Sort, TakeAlongAxis, TopK,
        ),
        next_axis,
    ),
    **dict.fromkeys((All_, Any_, Argmax, Argmin, Fourier, Max, Min, Prod, Sum), next_axes),
}  # fmt: skip
"""The rule of each op; pointwise ops need none."""
SAMPLEWISE = (AvgPool, BatchNorm, Conv1d, Conv2d, Conv3d, ConvTranspose, GroupNorm, Lrn, MaxPool)
"""Ops that treat the images along the first axis of their first operand alike."""
