"""Region features, and the gradient for images, in blocks of threads.

The gradient of a pixel is the sum over all boxes in order, cell by cell and sample by sample, as on the CPU; boxes that
do not reach the pixel are skipped.
"""

from functools import reduce
from operator import or_
from types import SimpleNamespace

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import MutableValue, Val
from cgraph.kernels.regions.emit import (
    Pair,
    Span,
    add_weighted,
    axis_taps,
    images_at,
    source_of,
    spans_of,
    weighted_pixels,
)
from cgraph.kernels.regions.gpu_signature import EACH
from cgraph.kernels.team.gpu_signature import ELEMENTS

REACH = 2.0  # pixels beyond a box's ends that its samples may still weigh


@block(ELEMENTS)
def align(k: GpuBuilder, dtype: str, samples: int, grid: str, is_blocked: bool, is_apart: bool) -> None:
    """A thread: one cell of a box, and `EACH` planes of it; each plane is one channel."""
    a = k.args()
    groups = (a.planes + (EACH - 1)) // EACH
    with k.if_(k.task() < a.count * groups * a.rows * a.columns):
        box, group, p, q = k.digits(k.task(), groups, a.rows, a.columns)
        x, source = source_of(k, a, box, dtype)
        down, across = spans_of(k, a, x, box, grid)
        rows = axis_taps(k, down, p, a.rows, x.rows, samples, grid)
        columns = axis_taps(k, across, q, a.columns, x.columns, samples, grid)
        taps = [(row * x.row + column * x.column, weight) for row, column, weight in weighted_pixels(rows, columns)]
        cell = a.cells + (box * a.box + p * a.row + q * a.column)
        with k.loop(group * EACH, k.smaller(group * EACH + EACH, a.planes)) as plane:
            total, here = k.slot(k.const(0, dtype)), source + plane * x.plane
            for offset, weight in taps:
                total.value = add_weighted(k, here.load(offset), weight, total.value)
            cell.store(total.value, plane * a.plane)


@block(ELEMENTS)
def spread(k: GpuBuilder, dtype: str, samples: int, grid: str, is_blocked: bool) -> None:
    """A thread: one pixel of an image, and `EACH` planes of it."""
    a = k.args()
    x = images_at(a.images)
    image, group, row, column = k.digits(k.task(), (a.planes + (EACH - 1)) // EACH, x.rows, x.columns)
    with k.if_(image < a.n):
        totals = [k.slot(k.const(0, dtype)) for _ in range(EACH)]
        with k.loop(0, a.count) as box:
            here = (a.level.load(box) == a.which) & (a.batch.load(box) == image)
            with k.if_(here):
                add_box(k, a, x, box, (group, row, column), totals, samples, grid)
        out = k.pointer(x.at, dtype) + (image * x.image + row * x.row + column * x.column)
        for i, total in enumerate(totals):
            with k.if_(group * EACH + i < a.planes):
                out.store(total.value, (group * EACH + i) * x.plane)


def add_box(
    k: GpuBuilder, a: SimpleNamespace, x: SimpleNamespace, box: Val, place: tuple[Val, Val, Val],
    totals: list[MutableValue],
    samples: int, grid: str,
) -> None:  # fmt: skip
    """Add a box's cells in order if they reach the pixel; `place`: group of planes, row and column."""
    group, row, column = place
    planes = [k.smaller(group * EACH + i, a.planes - 1) * a.plane for i in range(EACH)]
    down, across = spans_of(k, a, x, box, grid)
    near = reaches(k, down, row, x.rows) & reaches(k, across, column, x.columns)
    with k.if_(near), k.loop(0, a.rows) as p:
        rows = axis_taps(k, down, p, a.rows, x.rows, samples, grid)
        with k.if_(has(rows, row)), k.loop(0, a.columns) as q:
            columns = axis_taps(k, across, q, a.columns, x.columns, samples, grid)
            with k.if_(has(columns, column)):
                cell = a.cells + (box * a.box + p * a.row + q * a.column)
                gradients = [cell.load(plane) for plane in planes]
                for i, j, weight in weighted_pixels(rows, columns):
                    with k.if_((i == row) & (j == column)):
                        for total, g in zip(totals, gradients):
                            total.value = add_weighted(k, g, weight, total.value)


def has(taps: list[Pair], pixel: Val) -> Val:
    """Return True if some sample reads the pixel."""
    return reduce(or_, [i == pixel for pair in taps for i, _ in pair])


def reaches(k: GpuBuilder, box: Span, pixel: Val, n: Val) -> Val:
    """Return True if samples of the box may read the pixel, of `n` along an axis; NaN boxes read the first one."""
    start, length = box
    zero, last, at = k.const(0, start.dtype), k.cast(n - 1, start.dtype), k.cast(pixel, start.dtype)
    ends = [k.smaller(k.larger(end, zero), last) for end in (start, start + length)]
    return ~((at < k.smaller(*ends) - REACH) | (at > k.larger(*ends) + REACH))
