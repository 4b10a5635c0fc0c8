"""Region features: means of bilinear samples of images of several sizes, and the gradient for those of one size.

The samples of a cell are located once for all planes: a block of channels, or one channel of plain images.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.indexing import set_error
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.regions.signature import IMAGES

Taps = list[tuple[Val, Val]]
"""Offset and weight of every pixel that a cell reads."""
Span = tuple[Val, Val]
"""The beginning of the samples of a box along one axis, and their extent."""
Pair = list[tuple[Val, Val]]
"""The two pixels around a sample along one axis, and their weights."""


def align(k: Builder, dtype: str, samples: int, grid: str, is_blocked: bool, is_apart: bool) -> None:
    """``cells[box, plane, p, q]`` is the mean of its samples in the image of the box. Task: one box.

    `is_apart`: images are channel-blocked, but each channel of the cells has a plane of its own.
    """
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    a = k.args()
    with k.task_loop() as box:
        x, source = source_of(k, a, box, dtype)
        with each_cell(k, a, x, box, samples, grid) as (cell, taps), k.loop(0, a.planes) as plane:
            total, here = k.const(0, dtype, lanes), source + plane * x.plane
            for offset, weight in taps:
                total = add_weighted(k, here.load(offset, lanes), weight, total)
            if is_apart:
                store_apart(k, cell, a.plane, total, plane * lanes, a.channels)
            else:
                cell.store(total, plane * a.plane)


def source_of(k: Builder, a: SimpleNamespace, box: Val, dtype: str) -> tuple[SimpleNamespace, Ptr]:
    """Return the images of a box's size, and its image; an invalid one sets the error word and becomes the first."""
    level, image = a.level.load(box), a.batch.load(box)
    outside = (level < 0) | (level >= a.sizes) | (image < 0) | (image >= a.n)
    set_error(k, outside, a.error)
    level, image = k.select(outside, 0, level), k.select(outside, 0, image)
    x = images_at(a.images + level * len(IMAGES))
    return x, k.pointer(x.at, dtype) + image * x.image


def store_apart(k: Builder, at: Ptr, step: Val, x: Val, first: Val, count: Val) -> None:
    """Store the lanes of `x` as channels `first` and following, of `count`, at a stride of `step`."""
    for i in range(x.lanes):
        with k.if_(first + i < count, likely=True):
            at.store(k.lane(x, i), (first + i) * step)


def spread(k: Builder, dtype: str, samples: int, grid: str, is_blocked: bool) -> None:
    """Add every cell to its samples in the images of one size. Task: one plane of one image, all boxes."""
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    a = k.args()
    x = images_at(a.images)
    with k.task_loop() as task:
        image, plane = divmod_of(task, a.planes)
        out = k.pointer(x.at, dtype) + (image * x.image + plane * x.plane)
        with k.loop(0, x.rows) as row, k.loop(0, x.columns) as column:
            out.store(k.const(0, dtype, lanes), row * x.row + column * x.column)
        with k.loop(0, a.count) as box:
            here = (a.level.load(box) == a.which) & (a.batch.load(box) == image)
            with k.if_(here), each_cell(k, a, x, box, samples, grid) as (cell, taps):
                g = cell.load(plane * a.plane, lanes)
                for offset, weight in taps:
                    out.store(add_weighted(k, g, weight, out.load(offset, lanes)), offset)


def add_weighted(k: Builder, x: Val, weight: Val, total: Val) -> Val:
    """Return ``total + x * weight``, or `total` if the weight is 0, even if x is NaN: a sample outside."""
    return k.select(weight == 0.0, total, k.fma(x, weight, total))


def images_at(entry: Ptr) -> SimpleNamespace:
    """Return the images of one size, whose words begin at `entry`."""
    dtypes = {name: "f8" if kind == "f8" else "i8" for name, kind in IMAGES.items()}
    return SimpleNamespace(**{name: entry.k.bits(entry.load(i), d) for i, (name, d) in enumerate(dtypes.items())})


@contextmanager
def each_cell(
    k: Builder, a: SimpleNamespace, x: SimpleNamespace, box: Val, samples: int, grid: str
) -> Iterator[tuple[Ptr, Taps]]:
    """Yield every cell of a box: its first plane, and its pixels."""
    down, across = spans_of(k, a, x, box, grid)
    with k.loop(0, a.rows) as p, k.loop(0, a.columns) as q:
        rows = axis_taps(k, down, p, a.rows, x.rows, samples, grid)
        columns = axis_taps(k, across, q, a.columns, x.columns, samples, grid)
        taps = [(row * x.row + column * x.column, weight) for row, column, weight in weighted_pixels(rows, columns)]
        yield a.cells + (box * a.box + p * a.row + q * a.column), taps


def spans_of(k: Builder, a: SimpleNamespace, x: SimpleNamespace, box: Val, grid: str) -> tuple[Span, Span]:
    """Return the range of a box's samples, down and across."""
    corner = [(a.boxes + box * 4).load(i) for i in range(4)]
    scale = k.cast(x.scale, corner[0].dtype)
    down, across = (span(k, corner[i] * scale, corner[i + 2] * scale, grid) for i in (1, 0))
    return down, across


def axis_taps(k: Builder, box: Span, cell: Val, cells: Val, n: Val, samples: int, grid: str) -> list[Pair]:
    """Return the two pixels around each sample of a cell along an axis of `n`."""
    return [pixels(k, box, (cell * samples + i, cells * samples), n, grid) for i in range(samples)]


def weighted_pixels(rows: list[Pair], columns: list[Pair]) -> Iterator[tuple[Val, Val, Val]]:
    """Yield row, column and weight of every pixel that a cell reads."""
    for pair in rows:
        for row, share in pair:
            share = share * (1.0 / len(rows) ** 2)
            for other_pair in columns:
                for column, other in other_pair:
                    yield row, column, share * other


def span(k: Builder, low: Val, high: Val, grid: str) -> Span:
    """Return the start and the length of a box's samples along one axis."""
    length = high - low
    if grid == "cells":
        return low, k.larger(length, k.const(1, low.dtype))
    return (low - 0.5 if grid == "aligned" else low), length


def pixels(k: Builder, box: Span, sample: tuple[Val, Val], n: Val, grid: str) -> Pair:
    """Return the two pixels around sample `i` of `count` along an axis of `n`, and their weights; 0 outside."""
    (start, length), (i, count) = box, (k.cast(v, box[0].dtype) for v in sample)
    if grid == "corners":
        at = start + length * k.select(count > 1, i / k.larger(count - 1.0, k.const(1, i.dtype)), k.const(0.5, i.dtype))
    else:
        at = start + length * ((i + 0.5) / count)
    last = k.cast(n - 1, at.dtype)
    inside = (at >= 0.0) & (at <= last) if grid == "corners" else (at >= -1.0) & (at <= k.cast(n, at.dtype))
    at = k.smaller(k.larger(at, k.const(0, at.dtype)), last)
    low = k.cast(at, "i8")
    share = at - k.cast(low, at.dtype)
    zero = k.const(0, at.dtype)
    return [(low, k.select(inside, 1.0 - share, zero)), (k.smaller(low + 1, n - 1), k.select(inside, share, zero))]
