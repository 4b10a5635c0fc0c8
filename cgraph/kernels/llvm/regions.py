"""Features of boxes: means of bilinear samples of images of several sizes, and the gradient for those of one size.

Where the samples of a cell lie is found once and used for every plane: a block of channels, or one channel of plain
images.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import divided
from cgraph.kernels.llvm.index import complain
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.signatures.regions import IMAGES

Taps = list[tuple[Val, Val]]
"""Offset and weight of every pixel that a cell reads."""


def align(k: Builder, dtype: str, samples: int, grid: str, is_laned: bool, is_apart: bool) -> None:
    """``cells[box, plane, p, q]`` is the mean of its samples in the image of the box. Task: one box.

    `is_apart`: images lie in lanes, but each channel of the cells has a plane of its own.
    """
    lanes = k.target.lanes_of(dtype) if is_laned else 0
    a = k.args()
    first, last = k.tasks()
    with k.loop(first, last) as box:
        level, image = a.level.load(box), a.batch.load(box)
        outside = (level < 0) | (level >= a.sizes) | (image < 0) | (image >= a.n)
        complain(k, outside, a.error)
        level, image = k.select(outside, 0, level), k.select(outside, 0, image)
        x = images_at(a.images + level * len(IMAGES))
        source = k.pointer(x.at, dtype) + image * x.image
        with each_cell(k, a, x, box, samples, grid) as (cell, taps), k.loop(0, a.planes) as plane:
            total, here = k.const(0, dtype, lanes), source + plane * x.plane
            for offset, weight in taps:
                total = k.fma(here.load(offset, lanes), weight, total)
            if is_apart:
                store_apart(k, cell, a.plane, total, plane * lanes, a.channels)
            else:
                cell.store(total, plane * a.plane)


def store_apart(k: Builder, at: Ptr, step: Val, x: Val, first: Val, count: Val) -> None:
    """The lanes of `x` as channels `first` and following, of `count`, each `step` from the one before."""
    for i in range(x.lanes):
        with k.if_(first + i < count, likely=True):
            at.store(k.lane(x, i), (first + i) * step)


def spread(k: Builder, dtype: str, samples: int, grid: str, is_laned: bool) -> None:
    """Add up every cell at its samples in the images of one size. Task: one plane of one image, all boxes."""
    lanes = k.target.lanes_of(dtype) if is_laned else 0
    a = k.args()
    x = images_at(a.images)
    first, last = k.tasks()
    with k.loop(first, last) as task:
        image, plane = divided(task, a.planes)
        out = k.pointer(x.at, dtype) + (image * x.image + plane * x.plane)
        with k.loop(0, x.rows) as row, k.loop(0, x.columns) as column:
            out.store(k.const(0, dtype, lanes), row * x.row + column * x.column)
        with k.loop(0, a.count) as box:
            here = (a.level.load(box) == a.which) & (a.batch.load(box) == image)
            with k.if_(here), each_cell(k, a, x, box, samples, grid) as (cell, taps):
                g = cell.load(plane * a.plane, lanes)
                for offset, weight in taps:
                    out.store(k.fma(g, weight, out.load(offset, lanes)), offset)


def images_at(entry: Ptr) -> SimpleNamespace:
    """The images of one size, whose words stand at `entry`."""
    dtypes = {name: "f8" if kind == "f8" else "i8" for name, kind in IMAGES.items()}
    return SimpleNamespace(**{name: entry.as_dtype(d).load(i) for i, (name, d) in enumerate(dtypes.items())})


@contextmanager
def each_cell(
    k: Builder, a: SimpleNamespace, x: SimpleNamespace, box: Val, samples: int, grid: str
) -> Iterator[tuple[Ptr, Taps]]:
    """Every cell of a box: its first plane, and what it reads."""
    corner = [(a.boxes + box * 4).load(i) for i in range(4)]
    scale = k.cast(x.scale, corner[0].dtype)
    down, across = (span(k, corner[i] * scale, corner[i + 2] * scale, grid) for i in (1, 0))
    with k.loop(0, a.rows) as p, k.loop(0, a.columns) as q:
        taps: Taps = []
        for i in range(samples):
            for row, share in pixels(k, down, (p * samples + i, a.rows * samples), x.rows, grid):
                share = share * (1.0 / samples**2)
                for j in range(samples):
                    for column, other in pixels(k, across, (q * samples + j, a.columns * samples), x.columns, grid):
                        taps.append((row * x.row + column * x.column, share * other))
        yield a.cells + (box * a.box + p * a.row + q * a.column), taps


def span(k: Builder, low: Val, high: Val, grid: str) -> tuple[Val, Val]:
    """Where the samples of a box begin along one axis, and how far they reach."""
    length = high - low
    if grid == "cells":
        return low, k.larger(length, k.const(1, low.dtype))
    return (low - 0.5 if grid == "aligned" else low), length


def pixels(k: Builder, box: tuple[Val, Val], sample: tuple[Val, Val], n: Val, grid: str) -> list[tuple[Val, Val]]:
    """The two pixels around sample `i` of `count` along an axis of `n`, and their weights; 0 outside."""
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
