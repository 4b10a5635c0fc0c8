"""Calls that read boxes from images of several sizes, and that sum the gradient for those of one size.

Images and cells are both channel-blocked, or both plain; cells may be plain where the images are channel-blocked.
"""

from collections.abc import Sequence

from cgraph.kernels.kernel import Call, Param, Pointer, View
from cgraph.kernels.regions.signature import ALIGN, IMAGES, SPREAD
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import Images, Planes, is_plane_by_plane, planes_of
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import Record

gpu_regions = LateModule("cgraph.kernels.regions.gpu_calls")


class SampleGrid(Record):
    """The positions of samples in a box; see `cgraph.ops.regions.RoiAlign`.

    Fields
        kind: ``cells``, ``aligned`` or ``corners``
        samples: of a cell along each axis
        scales: from the boxes' coordinates to pixels, for each size of images
    """

    kind: str
    samples: int
    scales: tuple[float, ...]


class Boxes(Record):
    """Boxes ``[k, 4]``, the image of each, and the image size that it is read from: int64 ``[k]``. All contiguous."""

    corners: View
    batch: View
    level: View

    @property
    def args(self) -> dict[str, int | Pointer]:
        count = self.corners.shape[0]
        return {"boxes": self.corners.at, "batch": self.batch.at, "level": self.level.at, "count": count}


def align_calls(
    target: Target,
    out: Images,
    boxes: Boxes,
    levels: Sequence[Images],
    grid: SampleGrid,
    error: Pointer | None = None,
) -> list[Call]:
    """Return the cells of every box; a missing image or size sets the word at `error`, and reads the first."""
    cells, images = planes_of(out), planes_of(levels[0])
    if not cells.n:
        return []
    is_apart = isinstance(levels[0], BlockedView) and not isinstance(out, BlockedView)
    call = ALIGN.call(
        (*params_of(levels[0], grid), is_apart),
        cells.n, chunk_of(cells.n, images.count * cells.rows * cells.columns * grid.samples**2),
        **boxes.args, **cells_args(cells), planes=images.count, channels=cells.count, n=images.n, sizes=len(levels),
        error=error, images=[word for x, scale in zip(levels, grid.scales) for word in images_words(x, scale)],
    )  # fmt: skip
    if not (is_plane_by_plane(out) and is_plane_by_plane(levels[0])):
        return [call]
    places = cells.n * cells.rows * cells.columns
    return in_blocks(target, gpu_regions.align_calls, call, places, images.count) or [call]


def spread_calls(target: Target, out: Images, boxes: Boxes, cells: Images, which: int, grid: SampleGrid) -> list[Call]:
    """Return the sum of all cells of the boxes of one size, each added to the pixels it was read from."""
    to = planes_of(out)
    tasks = to.n * to.count
    if not tasks:
        return []
    call = SPREAD.call(
        params_of(out, grid), tasks, chunk_of(tasks, to.rows * to.columns),
        **boxes.args, **cells_args(planes_of(cells)), planes=to.count, which=which,
        images=images_words(out, grid.scales[which]),
    )  # fmt: skip
    if not is_plane_by_plane(out):
        return [call]
    return in_blocks(target, gpu_regions.spread_calls, call, to.n, to.rows * to.columns, to.count) or [call]


def params_of(x: Images, grid: SampleGrid) -> tuple[Param, ...]:
    return x.dtype, grid.samples, grid.kind, isinstance(x, BlockedView)


def cells_args(x: Planes) -> dict[str, int | Pointer]:
    return {
        "cells": x.at, "box": x.image, "plane": x.plane, "row": x.row, "column": x.column,
        "rows": x.rows, "columns": x.columns,
    }  # fmt: skip


def images_words(x: Images, scale: float) -> list[int | float | Pointer]:
    """Return the words of one size in the list `images`."""
    planes = planes_of(x)
    return [float(scale) if name == "scale" else getattr(planes, name) for name in IMAGES]
