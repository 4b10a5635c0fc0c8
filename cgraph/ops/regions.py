"""Region features: bilinear samples of a grid over each box, in images of several sizes, and their gradient."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import STOP, Pointer, View
from cgraph.kernels.regions.calls import Boxes, SampleGrid, align_calls, spread_calls
from cgraph.kernels.target import Target
from cgraph.kernels.views.image_views import Images
from cgraph.ops.arithmetic import astype
from cgraph.ops.boxes import INDEX, floats
from cgraph.ops.compare import equal, where
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import reshape, zeros_like
from cgraph.ops.stop import stop_gradient

KINDS = ("cells", "aligned", "corners")


class RoiAlign(Op):
    """The mean of bilinear samples in each cell of a grid over each box, in the images of the box's own level.

    ``out[i, c] = rows @ levels[level[i]][batch[i], c] @ columns.T`` with matrices that depend on box i. A pixel whose
    weight in a cell is 0 is ignored there, even if it is NaN or infinite.

    Operands
        boxes: ``[k, 4]`` as ``(x0, y0, x1, y1)``; they have no gradient
        batch: index of the image that each box lies in, int64 ``[k]``
        level: index of the image size that it is read from, int64 ``[k]``
        levels: images ``[n, c, h, w]`` of one or several sizes
    Fields
        shape: rows and columns of the grid
        grid: placement of the samples. ``cells``: a box is at least one pixel large, its cells have `samples` points
            along each axis, and points more than one pixel outside are 0. ``aligned``: the same with pixel centres at
            half-integers, and boxes may be smaller. ``corners``: one point for each cell, from corner to corner, both
            included; points outside are 0
    Result
        ``[k, c, *shape]``
    Source
        He et al. 2017, arXiv:1703.06870; ONNX operator RoiAlign; TensorFlow's crop_and_resize
    """

    shape: tuple[int, int]
    grid: SampleGrid
    can_fail = True

    def infer(self, boxes: Spec, batch: Spec, level: Spec, *levels: Spec) -> Spec:
        check_boxes(self.grid, boxes, batch, level)
        first = levels[0]
        if len(levels) != len(self.grid.scales):
            raise ShapeError(
                f"there are {len(levels)} levels and {len(self.grid.scales)} scales; pass one scale for each level"
            )
        if any(x.ndim != 4 or x.shape[:2] != first.shape[:2] or 0 in x.shape for x in levels):
            raise ShapeError(
                f"levels {', '.join(map(str, levels))} do not fit; pass non-empty [n, c, h, w] with equal n and c"
            )
        if any(x.dtype != boxes.dtype for x in levels):
            raise DTypeError(
                f"levels are {first.dtype} and boxes {boxes.dtype}; use astype to give them one float dtype"
            )
        return Spec((boxes.shape[0], first.shape[1], *self.shape), boxes.dtype)

    def meaning(self, boxes, batch, level, *levels):
        check_numbers("batch", batch, len(levels[0]))
        check_numbers("level", level, len(levels))
        out = np.zeros((len(boxes), levels[0].shape[1], *self.shape), boxes.dtype)
        for i, box in enumerate(boxes):
            x = levels[level[i]][batch[i]]
            rows, columns = matrices(self.grid, box, self.grid.scales[level[i]], self.shape, x.shape[1:])
            out[i] = weighted_sums(columns, weighted_sums(rows, x, 1), 2)
        return out

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return RowRule((0, 1, 2), lambda rows: self)

    def calls(
        self, target: Target, out: Images, boxes: View, batch: View, level: View, levels: Sequence[Images]
    ) -> list:
        """Return the calls, for channel-blocked or plain images."""
        return align_calls(target, out, Boxes(boxes, batch, level), levels, self.grid, Pointer(STOP))

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(lambda out, boxes, batch, level, *levels: self.calls(target, out, boxes, batch, level, levels))

    def grad(self, node, g):
        boxes, batch, level, *levels = node.operands
        to_levels = [
            apply(RoiAlignGrad(i, (x.shape[0], *x.shape[2:]), self.grid), boxes, batch, level, g)
            for i, x in enumerate(levels)
        ]
        return None, None, None, *to_levels


class RoiAlignGrad(Op):
    """The gradient of `RoiAlign` for the images of one size: each pixel sums the cells that read it.

    A box of an image that is not there adds to none.

    Operands
        boxes, batch, level: those of `RoiAlign`
        g: the gradient of its result ``[k, c, p, q]``
    Fields
        which: index of the size
        images: number of images, their rows and columns
    """

    which: int
    images: tuple[int, int, int]
    grid: SampleGrid

    def infer(self, boxes: Spec, batch: Spec, level: Spec, g: Spec) -> Spec:
        check_boxes(self.grid, boxes, batch, level)
        n, h, w = self.images
        return Spec((n, g.shape[1], h, w), g.dtype)

    def meaning(self, boxes, batch, level, g):
        n, h, w = self.images
        out = np.zeros((n, g.shape[1], h, w), g.dtype)
        for i in np.flatnonzero((level == self.which) & (batch >= 0) & (batch < n)):
            rows, columns = matrices(self.grid, boxes[i], self.grid.scales[self.which], g.shape[2:], (h, w))
            out[batch[i]] += weighted_sums(columns.T, weighted_sums(rows.T, g[i], 1), 2)
        return out

    def calls(self, target: Target, out: Images, boxes: View, batch: View, level: View, g: Images) -> list:
        """Return the calls, for channel-blocked or plain images."""
        return spread_calls(target, out, Boxes(boxes, batch, level), g, self.which, self.grid)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(self.calls, target))

    def grad(self, node, g):
        boxes, batch, level, cells = node.operands
        here = equal(level, self.which)
        one = SampleGrid(self.grid.kind, self.grid.samples, (self.grid.scales[self.which],))
        to_cells = apply(RoiAlign(cells.shape[2:], one), boxes, batch, zeros_like(level), g)
        return None, None, None, where(reshape(here, (-1, 1, 1, 1)), to_cells, zeros_like(to_cells))


def check_boxes(grid: SampleGrid, boxes: Spec, batch: Spec, level: Spec) -> None:
    """Check that boxes, image indices and levels fit. ShapeError or DTypeError otherwise."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or batch.shape != boxes.shape[:1] or level.shape != boxes.shape[:1]:
        raise ShapeError(f"boxes {boxes}, batch {batch} and level {level} do not fit; pass [k, 4], [k] and [k]")
    if boxes.dtype.kind != "f" or batch.dtype != INDEX or level.dtype != INDEX:
        raise DTypeError(f"boxes {boxes}, batch {batch} and level {level}; pass float boxes, int64 batch and level")
    if grid.kind not in KINDS or grid.samples < 1 or (grid.kind == "corners" and grid.samples != 1):
        raise ShapeError(f"{grid} is not valid; use a grid of {', '.join(KINDS)}, the last with samples=1")


def check_numbers(name: str, numbers: np.ndarray, count: int) -> None:
    """Raise PositionError unless all numbers are in ``0 .. count - 1``."""
    outside = numbers[(numbers < 0) | (numbers >= count)]
    if outside.size:
        raise PositionError(f"{name} has {outside[0]}, which is not in 0 .. {count - 1}; pass numbers from 0")


def matrices(
    grid: SampleGrid, box: np.ndarray, scale: float, cells: tuple[int, int], image: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of each pixel in each cell of a box: by rows ``[p, h]`` and by columns ``[q, w]``."""
    corners = box * np.asarray(scale, box.dtype)
    down, across = (matrix(grid, corners[[i, i + 2]], cells[1 - i], image[1 - i]) for i in (1, 0))
    return down, across


def matrix(grid: SampleGrid, span: np.ndarray, cells: int, n: int) -> np.ndarray:
    """Return the weights along one axis of `n` pixels: ``[cells, n]``."""
    (low, high), one = span, span.dtype.type(1)
    i = np.arange(cells * grid.samples, dtype=span.dtype)
    if grid.kind == "corners":
        at = low + (high - low) * (i / (len(i) * one - 1) if cells > 1 else i + one / 2)
        inside = (at >= 0) & (at <= n - 1)
    else:
        start, length = (low, max(high - low, one)) if grid.kind == "cells" else (low - one / 2, high - low)
        at = start + length * ((i + one / 2) / (len(i) * one))
        inside = (at >= -1) & (at <= n)
    at = np.clip(np.where(inside, at, 0), 0, n - 1)
    first = at.astype(np.int64)
    share, every = at - first, np.arange(len(i))
    weights = np.zeros((len(i), n), span.dtype)
    np.add.at(weights, (every, first), (1 - share) * inside)
    np.add.at(weights, (every, np.minimum(first + 1, n - 1)), share * inside)
    return weights.reshape(cells, grid.samples, n).mean(1, dtype=span.dtype)


def weighted_sums(weights: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """Return ``weights @ x`` along an axis of `x`, ignoring elements whose weight is 0, NaN included."""
    x = np.moveaxis(x, axis, 0)
    sums = np.zeros((len(weights), *x.shape[1:]), x.dtype)
    for i, row in enumerate(weights):
        read = np.flatnonzero(row)
        sums[i] = np.tensordot(row[read], x[read], 1)
    return np.moveaxis(sums, 0, axis)


@public
def roi_align_levels(
    levels: Sequence[Any],
    boxes: Any,
    batch: Any,
    level: Any,
    shape: tuple[int, int],
    scales: Sequence[float],
    samples: int = 2,
    grid: str = "cells",
) -> Node:
    """Return the mean of bilinear samples in each cell of a grid over each box, in the images of the box's own level.

    Parameters
        levels: images ``[n, c, h, w]`` of one or several sizes
        boxes: ``[k, 4]`` as ``(x0, y0, x1, y1)``; no gradient flows to them
        batch, level: index of the image and of the size that each box is read from, ``[k]``
        shape: rows and columns of the grid
        scales: factor from box coordinates to pixels, for each size
        samples: sampling points of a cell along each axis
        grid: ``cells`` (torchvision's), ``aligned`` (shifted by half a pixel) or ``corners`` (TensorFlow's
            crop_and_resize)
    Returns
        ``[k, c, *shape]``
    Raises
        PositionError, at the run: an index in `batch` or `level` is out of range
    """
    boxes, *images = floats(boxes, *levels)
    batch, level = (astype(as_node(x), INDEX) for x in (batch, level))
    how = SampleGrid(grid, int(samples), tuple(float(s) for s in scales))
    return apply(RoiAlign((int(shape[0]), int(shape[1])), how), stop_gradient(boxes), batch, level, *images)
