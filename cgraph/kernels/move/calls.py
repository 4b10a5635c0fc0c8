"""Calls that copy and fill arrays of any strides.

Axes are put in the memory order of `out` and merged. Then either items are contiguous in both arrays
(runs), or `x` repeats one item (fill), runs backwards, or is contiguous along another axis (transpose in registers), or
items of a few runs alternate in one array (zips and unzips).
All other copies go item by item, in blocks whose cache lines stay in the L1 cache.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from cgraph.kernels.kernel import Call, Param, Pointer, View
from cgraph.kernels.move.signature import BACKWARD, FILLS, OVERLAPPING, RUNS, STRIDED, TILES, UNZIPS, ZIPS
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import ascending, axis_table, broadcast, merge_axes, outer_table, permute_axes
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import replace

gpu_move = LateModule("cgraph.kernels.move.gpu_calls")

TASK_BYTES = 128 * 1024
STREAM_BYTES = 32 * 1024 * 1024  # larger results are written past the cache
TILE_BYTES = 512  # along each side of a block of a transpose
STRIDED_BLOCK = 1024  # items; this many lines of either side stay in the first cache
ITEM_SIZES = (1, 2, 4, 8)
LEAST_SQUARE = 4  # items
MOST_RUNS = 7  # that alternate, with as many shuffles for each vector; squares are faster for more
MOST_ALTERNATING_LANES = 16


def copy_calls(target: Target, out: View, x: View) -> list[Call]:
    """Copy `x`, broadcast to the shape of `out`, to `out`; only the size of an item matters, not the dtype.

    No two elements of `out` may share bytes, and `out` and `x` may not overlap.

    Raises
        ValueError: `x` does not broadcast to `out`, or their items differ in size
    """
    if out.itemsize != x.itemsize:
        raise ValueError(
            f"items of {out.itemsize} and {x.itemsize} bytes: a copy does not convert. Cast x to {out.dtype} first"
        )
    if out.size == 0:
        return []
    out, x = widen_items(*memory_order(out, broadcast(x, out.shape)))
    blocks = in_blocks(target, gpu_move.copy_calls, out, x)
    if blocks is not None:
        return blocks
    itemsize, step, each = out.itemsize, x.strides[-1], TASK_BYTES // out.itemsize
    if out.strides[-1] == itemsize:
        if step in (itemsize, 0):
            family = RUNS if step else FILLS
            return [run_call(family, (itemsize, streams(out)), {"out": out, "x": x}, each, each)]
        squares = alternating(target, out, x) or tile_calls(target, out, x)
        if squares:
            return squares
        if step == -itemsize:
            return [run_call(BACKWARD, (itemsize,), {"out": out, "x": x}, each, each)]
    out, x = longest_last(out, x)
    return [run_call(STRIDED, (itemsize,), {"out": out, "x": x}, STRIDED_BLOCK, each)]


def moves_in_order(target: Target) -> bool:
    """Return True if `move_calls` may move bytes to a place that overlaps them."""
    return not target.has_blocks


def move_calls(target: Target, out: View, x: View) -> list[Call]:
    """Move `x` to `out`, which may overlap it; both have one layout.

    Raises
        ValueError: they overlap, and their elements do not lie one after the other or not in the same order
    """
    nbytes = x.size * x.itemsize
    if abs(out.at.offset - x.at.offset) >= nbytes or out.at.base is not x.at.base:
        return copy_calls(target, out, x)
    if (out.shape, out.strides) != (x.shape, x.strides) or not memory_order(x)[0].is_contiguous:
        raise ValueError(f"{x} and {out} overlap: only elements in one order, one after the other, can be moved")
    return [OVERLAPPING.call((), 1, out=out.at, x=x.at, nbytes=nbytes)]


def fill_calls(target: Target, out: View, value: int | float | bool) -> list[Call]:
    """Return calls of ``out[...] = value``, converted to the dtype of `out`."""
    return copy_calls(target, out, constant(value, out.dtype))


def constant(value: int | float | bool, dtype: str) -> View:
    """Return one element with `value`, which repeats to any shape."""
    item = np.array([value]).astype("bool" if dtype == "b1" else dtype)
    return View(Pointer(item), (), (), dtype)


def boxes_around(x: View, starts: tuple[int, ...], lengths: tuple[int, ...]) -> list[View]:
    """Return the parts of `x` around a box, before and after it along each axis."""
    boxes = []
    for axis, (start, length) in enumerate(zip(starts, lengths)):
        sides = ((0, start), (start + length, x.shape[axis] - start - length))
        boxes += [part(x, axis, first, count) for first, count in sides if count]
        x = part(x, axis, start, length)
    return boxes


def part(x: View, axis: int, start: int, count: int, step: int = 1) -> View:
    """Return the view ``x[start : start + count * step : step]`` along `axis`; `step` may be negative."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1 :])
    return replace(x.moved(start * x.strides[axis]), shape=shape, strides=strides)


def flip(x: View, axes: tuple[int, ...]) -> View:
    """Return `x` reversed along some axes."""
    for axis in axes:
        x = part(x, axis, max(x.shape[axis] - 1, 0), x.shape[axis], -1)
    return x


def memory_order(*views: View) -> tuple[View, ...]:
    """Return views with axes in the memory order of the first, which ascends, merged to at least two axes."""
    views = ascending(views, 0)
    order = sorted(range(len(views[0].shape)), key=lambda axis: tuple(-abs(v.strides[axis]) for v in views))
    return merge_axes(permute_axes(views, order))


def widen_items(out: View, x: View) -> tuple[View, View]:
    """Merge a short last axis that is contiguous in both views into one wider item."""
    size = out.itemsize * out.shape[-1]
    if (
        size not in ITEM_SIZES
        or (out.strides[-1], x.strides[-1]) != (out.itemsize, out.itemsize)
        or size == out.itemsize
    ):
        return out, x
    wide = (replace(v, shape=v.shape[:-1], strides=v.strides[:-1], dtype=f"u{size}") for v in (out, x))
    return merge_axes(tuple(wide))  # type: ignore[return-value]


def longest_last(out: View, x: View) -> tuple[View, View]:
    """Replace a last axis of few items by the longest one."""
    shape = out.shape
    longest = max(range(len(shape)), key=lambda axis: shape[axis])
    if shape[-1] >= min(16, shape[longest]):
        return out, x
    return permute_axes((out, x), [*(a for a in range(len(shape)) if a != longest), longest])  # type: ignore[return-value]


def alternating(target: Target, out: View, x: View) -> list[Call]:
    """Return a call that copies a few runs whose items alternate in one of the arrays; none for other views.

    `out` is contiguous along its last axis.
    """
    size, columns = out.itemsize, len(out.shape) - 1
    lanes, each = min(target.lanes_of(f"u{size}"), MOST_ALTERNATING_LANES), TASK_BYTES // size
    count = out.shape[-1]
    if 2 <= count <= MOST_RUNS and out.strides[-2] == count * size and x.strides[-2] == size:
        apart, views = x.strides[-1], [without_axis(v, columns) for v in (out, x)]
        return [run_call(ZIPS, (size, count, lanes), dict(zip(("out", "x"), views)), each, each, apart=apart)]
    for axis, count in enumerate(out.shape[:-1]):
        if 2 <= count <= MOST_RUNS and x.strides[axis] == size and x.strides[-1] == count * size:
            apart, views = out.strides[axis], [without_axis(v, axis) for v in (out, x)]
            return [run_call(UNZIPS, (size, count, lanes), dict(zip(("out", "x"), views)), each, each, apart=apart)]
    return []


def without_axis(x: View, axis: int) -> View:
    """Return the view of the first elements along an axis. It has rows, one if no axis is left for them."""
    shape, strides = x.shape[:axis] + x.shape[axis + 1 :], x.strides[:axis] + x.strides[axis + 1 :]
    return replace(
        x, shape=(1, *shape) if len(shape) < 2 else shape, strides=(0, *strides) if len(shape) < 2 else strides
    )


def streams(out: View) -> bool:
    return out.size * out.itemsize >= STREAM_BYTES and out.shape[-1] * out.itemsize >= 4096


def run_call(
    family: Signature,
    params: tuple[Param, ...],
    named: Mapping[str, View],
    limit: int,
    each: int,
    **more: int | Pointer | None,
) -> Call:
    """Return a call of an emitter that uses `each_run`: rows along the last axis of the views.

    Parameters
        named: the views by the names of the family's arrays
        limit: least columns of a block
        each: approximate items of a task
        more: the family's own arguments
    """
    views = tuple(named.values())
    shape = views[0].shape
    columns, rows = shape[-1], prod(shape[:-1])
    block, blocks = cut_axis(columns, limit)
    rows_each = min(rows, max(1, each // block))
    places = {name: v.at for name, v in named.items()} | {f"{name}_step": v.strides[-1] for name, v in named.items()}
    return family.call(
        params, -(-rows // rows_each) * blocks,
        columns=columns, block=block, blocks=blocks, each=rows_each, rows=rows, **places, **more,
        rank=len(shape) - 1, axes=outer_table(views, len(shape) - 1),
    )  # fmt: skip


def cut_axis(count: int, limit: int) -> tuple[int, int]:
    """Return the items of a block and the number of blocks; only a single block has fewer than `limit` items."""
    blocks = max(1, count // limit)
    return -(-count // blocks) if blocks == 1 else count // blocks, blocks


def tile_calls(target: Target, out: View, x: View) -> list[Call]:
    """Return a call that transposes squares in registers, as large as fit into half of them; none if no square fits."""
    lanes = min(target.lanes_of(f"u{out.itemsize}"), target.registers // 2)
    while lanes >= LEAST_SQUARE:
        axis = transposed_axis(out, x, lanes)
        if axis is not None:
            return [tile_call(out, x, axis, lanes)]
        lanes //= 2
    return []


def transposed_axis(out: View, x: View, lanes: int) -> int | None:
    """Return an axis, not the last, along which items of `x` are contiguous, if squares fit."""
    if out.shape[-1] < lanes:
        return None
    fitting = (a for a in range(len(out.shape) - 1) if abs(x.strides[a]) == x.itemsize and out.shape[a] >= lanes)
    return next(fitting, None)


def tile_call(out: View, x: View, axis: int, lanes: int) -> Call:
    """Return the transposes of the last axis and `axis`."""
    if x.strides[axis] < 0:
        out, x = part(out, axis, out.shape[axis] - 1, out.shape[axis], -1), flip(x, (axis,))
    ni, nj, itemsize = out.shape[-1], out.shape[axis], out.itemsize
    side = max(lanes, TILE_BYTES // itemsize)
    (block_i, blocks_i), (block_j, blocks_j) = cut_axis(ni, side), cut_axis(nj, side)
    rows = prod(out.shape[:-1]) // nj
    each = min(rows, max(1, TASK_BYTES // (itemsize * block_i * block_j)))
    outer = [a for a in range(len(out.shape) - 2, -1, -1) if a != axis]
    axes = axis_table((out, x), outer) or [1, 0, 0]
    return TILES.call(
        (itemsize, lanes), -(-rows // each) * blocks_i * blocks_j,
        out=out.at, x=x.at, ni=ni, nj=nj, out_j=out.strides[axis], x_i=x.strides[-1],
        block_i=block_i, blocks_i=blocks_i, block_j=block_j, blocks_j=blocks_j, each=each, rows=rows,
        rank=max(1, len(outer)), axes=axes,
    )  # fmt: skip
