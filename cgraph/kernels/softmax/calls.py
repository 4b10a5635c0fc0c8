"""Calls of softmax, log_softmax and logsumexp along one axis."""

from math import prod

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.order import in_order
from cgraph.kernels.softmax.block_signature import ROWS as BLOCKS
from cgraph.kernels.softmax.signature import COLUMNS, MOST_COLUMNS, ROWS
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import (
    BLOCK_ROWS,
    CHAIN,
    access_of,
    block_columns,
    block_lanes,
    merge_axes,
    outer_table,
    permute_axes,
)
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import replace

gpu_softmax = LateModule("cgraph.kernels.softmax.gpu_calls")

KINDS = ("softmax", "log_softmax", "logsumexp")


def softmax_calls(target: Target, kind: str, out: View, x: View, axis: int) -> list[Call]:
    """Compute ``softmax``, ``log_softmax`` or ``logsumexp`` of `x` along `axis` (>= 0).

    `out` has the shape of `x` (and may be `x`); for logsumexp it lacks `axis` or has one element there.

    Raises
        ValueError: an unknown kind, or `out` of another shape
    """
    if kind not in KINDS:
        raise ValueError(f"there is no function {kind!r} along an axis. Choose one of {', '.join(KINDS)}")
    out = with_axis(out, x, axis) if kind == "logsumexp" else out
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"{kind} of {x.dtype}{x.shape} does not fit {out.dtype}{out.shape}")
    if x.size == 0:
        return []
    kept_axes = [a for a in range(len(x.shape)) if a != axis]
    kept_axes.sort(key=lambda a: -abs(x.strides[a]))
    over_kept = merge_axes(permute_axes((x, out), kept_axes))
    blocks = in_blocks(
        target, gpu_softmax.softmax_calls, kind, over_kept, (x.strides[axis], out.strides[axis]), x.shape[axis]
    )
    if blocks is not None:
        return blocks
    if kind != "logsumexp":
        first, x = in_order(target, out, x, least=0)
        if first:
            return first + softmax_calls(target, kind, out, x, axis)
    lanes, columns = target.lanes_of(x.dtype), over_kept[0].shape[-1] if kept_axes else 0
    is_short = x.shape[axis] < BLOCK_ROWS <= lanes
    if columns >= lanes and (is_short or abs(x.strides[axis]) != x.itemsize):
        return [columns_call(target, kind, over_kept, (x.strides[axis], out.strides[axis]), x.shape[axis])]
    lanes = block_lanes(target, x.dtype, x.shape[axis])
    if lanes and x.strides[axis] == x.itemsize and out.strides[axis] in (0, x.itemsize):
        return [block_call(target, kind, over_kept, lanes, x.shape[axis])]
    return [rows_call(target, kind, over_kept, (x.strides[axis], out.strides[axis]), x.shape[axis])]


def block_call(target: Target, kind: str, over_kept: tuple[View, ...], lanes: int, length: int) -> Call:
    """Return a call with vectors along contiguous rows, for some rows together."""
    x, out = over_kept
    rank, each = len(x.shape), max(1, target.task_elements // (2 * length))
    return BLOCKS.call(
        (kind, x.dtype, lanes, length <= CHAIN * lanes), -(-x.size // each),
        rows=x.size, each=each, columns=length, rank=rank, x=x.at, out=out.at, axes=outer_table(over_kept, rank),
    )  # fmt: skip


def with_axis(out: View, x: View, axis: int) -> View:
    """Return `out` with the shape of `x`: all elements along `axis` are one."""
    if len(out.shape) == len(x.shape):
        out = permute_axes((out,), [a for a in range(len(x.shape)) if a != axis])[0]
    shape = (*out.shape[:axis], x.shape[axis], *out.shape[axis:])
    return replace(out, shape=shape, strides=(*out.strides[:axis], 0, *out.strides[axis:]))


def rows_call(target: Target, kind: str, over_kept: tuple[View, ...], steps: tuple[int, int], length: int) -> Call:
    """Return a call with vectors along the axis."""
    itemsize, count = over_kept[0].itemsize, over_kept[0].size
    access = "".join("v" if step == itemsize else "g" for step in steps)
    each = max(1, target.task_elements // (2 * length))
    x, out = over_kept
    rank = len(x.shape)
    return ROWS.call(
        (kind, x.dtype, access), -(-count // each),
        rows=count, each=each, columns=length, rank=rank,
        x=x.at, x_step=steps[0], out=out.at, out_step=steps[1], axes=outer_table(over_kept, rank),
    )  # fmt: skip


def columns_call(target: Target, kind: str, over_kept: tuple[View, ...], steps: tuple[int, int], length: int) -> Call:
    """Return a call with vectors across the axis; a block of columns stays in the cache between passes."""
    count, kept_rows = over_kept[0].shape[-1], prod(over_kept[0].shape[:-1])
    block = block_columns(count, target, MOST_COLUMNS)
    blocks = -(-count // block)
    access = "".join(access_of(v).replace("s", "g") for v in over_kept)
    x, out = over_kept
    rank = len(x.shape) - 1
    return COLUMNS.call(
        (kind, x.dtype, access), kept_rows * blocks,
        rows=kept_rows, blocks=blocks, block=block, columns=count, length=length,
        x_along=steps[0], out_along=steps[1], rank=rank,
        x=x.at, x_step=x.strides[-1], out=out.at, out_step=out.strides[-1], axes=outer_table(over_kept, rank),
    )  # fmt: skip
