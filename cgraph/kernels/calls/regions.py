"""Calls that read boxes from images of several sizes, and that add up the gradient for those of one size.

Images and cells are both blocked, or both plain.
"""

from collections.abc import Sequence

from cgraph.kernels.calls.blocked import Blocked
from cgraph.kernels.calls.images import Images, planes_of
from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.kernel import Call, Kernel, Pointer, View
from cgraph.record import Record

Argument = int | float | Pointer


class Grid(Record):
    """Where the samples of a box lie; see `cgraph.ops.regions.RoiAlign`.

    Fields
        kind: ``cells``, ``aligned`` or ``corners``
        samples: of a cell along each axis
        scales: from the boxes' coordinates to pixels, for each size of images
    """

    kind: str
    samples: int
    scales: tuple[float, ...]


class Boxes(Record):
    """Boxes ``[k, 4]``, and of each the image and the size of images it is read from: int64 ``[k]``. All contiguous."""

    corners: View
    batch: View
    level: View

    @property
    def args(self) -> tuple[Argument, ...]:
        return self.corners.at, self.batch.at, self.level.at, self.corners.shape[0]


def align_calls(out: Images, boxes: Boxes, levels: Sequence[Images], grid: Grid, error: Pointer | None = None) -> list:
    """The cells of every box; an image or a size that is not there sets the word at `error`, and reads the first."""
    cells = planes_of(out)
    sizes = [argument for x, scale in zip(levels, grid.scales) for argument in images_args(x, scale)]
    more = (cells.count, planes_of(levels[0]).n, len(levels), error or 0)
    args = (*boxes.args, *cells_args(out), *more, *sizes)
    reads = cells.count * cells.rows * cells.columns * grid.samples**2
    return call("align", out, grid, args, cells.n, reads)


def spread_calls(out: Images, boxes: Boxes, cells: Images, which: int, grid: Grid) -> list:
    """The sum of all cells of the boxes of one size, each spread over the pixels it was read from."""
    to = planes_of(out)
    args = (*boxes.args, *cells_args(cells), to.count, which, *images_args(out, grid.scales[which]))
    return call("spread", out, grid, args, to.n * to.count, to.rows * to.columns)


def call(name: str, out: Images, grid: Grid, args: tuple[Argument, ...], tasks: int, nanoseconds: float) -> list[Call]:
    kernel = Kernel(f"regions.{name}", (out.dtype, grid.samples, grid.kind, isinstance(out, Blocked)))
    return [Call(kernel, args, tasks, chunk_of(tasks, nanoseconds))] if tasks else []


def cells_args(x: Images) -> tuple[Argument, ...]:
    cells = planes_of(x)
    return cells.at, cells.image, cells.plane, cells.row, cells.column, cells.rows, cells.columns


def images_args(x: Images, scale: float) -> tuple[Argument, ...]:
    seen = planes_of(x)
    return seen.at, seen.image, seen.plane, seen.row, seen.column, seen.rows, seen.columns, float(scale)
