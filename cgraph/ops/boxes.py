"""Operations on boxes ``[n, 4]``, each given by two corners: overlap, suppression, encoding, features of a region.

A box is ``(y0, x0, y1, x1)`` or ``(x0, y0, x1, y1)``: all functions except `roi_align` treat both axes alike.
"""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.boxes.calls import suppress_calls, suppress_nbytes
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.ops.arithmetic import astype, floor, maximum, minimum
from cgraph.ops.compare import logical_and, where
from cgraph.ops.elementary import exp, log
from cgraph.ops.family import common_dtype, float_dtype, real_node
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to, expand_dims, items, moveaxis, reshape
from cgraph.ops.sort import argsort
from cgraph.ops.take import take

gpu_boxes = LateModule("cgraph.kernels.boxes.gpu_calls")

INDEX = np.dtype("int64")


class NonMaximumSuppression(Op):
    """Indices of the selected boxes by descending score; a box that overlaps a selected one of its group is dropped.

    Operands
        boxes: floats ``[..., n, 4]``; each image along the leading axes is a separate task
        scores: ``[..., n]``
        order: int64 ``[..., n]``, indices by descending score
        groups: int64 ``[..., n]``; one group if absent
    Fields
        size: number of indices in the result; unused ones are -1
        share: largest allowed intersection over union of two selected boxes of one group
        least: a selected box has a higher score than this
    Result
        int64 ``[..., size]``, and the number of selected boxes ``[...]``
    """

    size: int
    share: float
    least: float

    def infer(self, boxes: Spec, scores: Spec, order: Spec, *groups: Spec) -> Bundle:
        if boxes.dtype.kind != "f" or scores.dtype != boxes.dtype or any(x.dtype != INDEX for x in (order, *groups)):
            raise DTypeError(
                f"boxes are {boxes.dtype} and scores {scores.dtype}; pass one float dtype, and int64 order and groups"
            )
        if (
            boxes.shape != (*scores.shape, 4)
            or not scores.ndim
            or any(x.shape != scores.shape for x in (order, *groups))
        ):
            raise ShapeError(
                f"boxes {boxes} and scores {scores} do not fit; pass boxes [..., n, 4] and scores and groups [..., n]"
            )
        leading = scores.shape[:-1]
        return Bundle((Spec((*leading, self.size), INDEX), Spec(leading, INDEX)))

    def meaning(self, boxes, scores, order, *groups):
        indices = np.full((*scores.shape[:-1], self.size), -1, INDEX)
        counts = np.zeros(scores.shape[:-1], INDEX)
        for at in np.ndindex(counts.shape):
            group = groups[0][at] if groups else np.zeros_like(order[at])
            survivors = self.select(boxes[at], scores[at], order[at], group)
            indices[(*at, slice(len(survivors)))], counts[at] = survivors, len(survivors)
        return indices, counts

    def select(self, boxes: np.ndarray, scores: np.ndarray, order: np.ndarray, groups: np.ndarray) -> list[int]:
        """Return the indices of the selected boxes of one image."""
        indices: list[int] = []
        least, share = np.asarray(self.least, boxes.dtype), np.asarray(self.share, boxes.dtype)
        for i in order:
            if len(indices) < self.size and scores[i] > least:
                with np.errstate(invalid="ignore", divide="ignore"):
                    covered = overlap(boxes[i], boxes[indices]) > share
                if not (covered & (groups[indices] == groups[i])).any():
                    indices.append(int(i))
        return indices

    def work(self, target: Target, boxes: Spec, scores: Spec, order: Spec, *groups: Spec) -> Work:
        def calls(
            out: tuple[View, View], boxes: View, scores: View, *rest: View, workspace: View | None = None
        ) -> list[Call]:
            launches = suppress_calls(target, out, boxes, scores, rest, (self.share, self.least), workspace)
            return in_blocks(target, gpu_boxes.suppress_calls, launches) or launches

        leading = scores.shape[:-1]
        return Work(calls, suppress_nbytes(target, leading, self.size, code_of(boxes.dtype), bool(groups)))


def overlap(x: Any, y: Any) -> Any:
    """Return intersection over union of boxes ``[..., 4]``, given as arrays or nodes."""
    zero = np.zeros((), x.dtype)
    sides = [
        np.maximum(np.minimum(x[..., i + 2], y[..., i + 2]) - np.maximum(x[..., i], y[..., i]), zero) for i in (0, 1)
    ]
    inside = sides[0] * sides[1]
    areas = [(box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1]) for box in (x, y)]
    return inside / (areas[0] + areas[1] - inside)


# -- public functions -------------------------------------------------------------------------------------------------


def floats(*xs: Any) -> list[Node]:
    """Convert operands to nodes of one float dtype."""
    dtype = float_dtype(common_dtype(*xs))
    return [real_node(as_node(x, dtype)).astype(dtype) for x in xs]


@public
def box_iou(x: Any, y: Any) -> Node:
    """Return intersection over union of each box of ``[m, 4]`` with each box of ``[n, 4]``: ``[m, n]``."""
    x, y = floats(x, y)
    return overlap(expand_dims(x, -2), expand_dims(y, -3))


@public
def non_maximum_suppression(
    boxes: Any,
    scores: Any,
    size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    groups: Any = None,
) -> tuple[Node, Node]:
    """Select at most `size` boxes by descending score, dropping those that overlap a selected one.

    Parameters
        boxes, scores: ``[..., n, 4]`` and ``[..., n]``; leading axes are images
        size: number of indices in the result
        iou_threshold: a box is dropped if its intersection over union with a selected box of its group exceeds this
        score_threshold: only boxes with a higher score are selected
        groups: integers that broadcast to ``[..., n]``, such as classes; all boxes are one group by default
    Returns
        the indices of the selected boxes, int64 ``[..., size]``, padded with -1; and their number ``[...]``
    """
    boxes, scores = floats(boxes, scores)
    order = argsort(scores, descending=True)
    rest = [] if groups is None else [broadcast_to(astype(as_node(groups), INDEX), scores.shape)]
    op = NonMaximumSuppression(int(size), float(iou_threshold), float(score_threshold))
    indices, count = items(apply(op, boxes, scores, order, *rest))
    return indices, count


def centre_and_size(boxes: Node) -> tuple[Node, Node]:
    size = boxes[..., 2:] - boxes[..., :2]
    return boxes[..., :2] + 0.5 * size, size


@public
def box_encode(boxes: Any, anchors: Any, scales: Any = (1.0, 1.0, 1.0, 1.0)) -> Node:
    """Encode boxes relative to anchors: centre offset over anchor size and log of the size ratio, times `scales`.

    Source: Girshick 2015, arXiv:1504.08083.
    """
    boxes, anchors = floats(boxes, anchors)
    (centre, size), (start, base) = centre_and_size(boxes), centre_and_size(anchors)
    deltas = concat([(centre - start) / base, log(size / base)], -1)
    return deltas * np.asarray(scales, deltas.dtype)


@public
def box_decode(deltas: Any, anchors: Any, scales: Any = (1.0, 1.0, 1.0, 1.0), most: float = np.inf) -> Node:
    """Invert `box_encode`. `most` limits the log of the size ratio, so that no box becomes infinite."""
    deltas, anchors = floats(deltas, anchors)
    deltas = deltas / np.asarray(scales, deltas.dtype)
    start, base = centre_and_size(anchors)
    ratio = deltas[..., 2:] if most == np.inf else minimum(deltas[..., 2:], most)
    centre, half = start + deltas[..., :2] * base, 0.5 * exp(ratio) * base
    return concat([centre - half, centre + half], -1)


@public
def roi_align(
    x: Any, boxes: Any, batch: Any, shape: tuple[int, int], samples: int = 2, scale: float = 1.0, aligned: bool = True
) -> Node:
    """Return the mean of bilinear samples in each cell of a grid over each box.

    Parameters
        x: images ``[n, c, h, w]``
        boxes: ``[k, 4]`` as ``(x0, y0, x1, y1)``
        batch: index of the image that each box lies in, ``[k]``
        shape: rows and columns of the grid
        samples: sampling points of a cell along each axis
        scale: factor from box coordinates to pixels of `x`
        aligned: pixel centres are at half-integers; otherwise they are at integers and a box is at least one pixel
            large
    Returns
        ``[k, c, *shape]``; samples more than one pixel outside the image are 0
    Source
        He et al. 2017, arXiv:1703.06870; ONNX operator RoiAlign
    """
    x, boxes = floats(x, boxes)
    if x.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            f"{x.name} {x.spec} or {boxes.name} {boxes.spec} does not fit; pass images [n, c, h, w] and boxes [k, 4]"
        )
    n, c, h, w = x.shape
    boxes = boxes * scale - (0.5 if aligned else 0.0)
    size = boxes[:, 2:] - boxes[:, :2]
    size = size if aligned else maximum(size, 1)
    y = samples_along(boxes[:, 1], size[:, 1], shape[0], samples)  # [k, rows * samples]
    z = samples_along(boxes[:, 0], size[:, 0], shape[1], samples)
    k, rows, columns = boxes.shape[0], y.shape[1], z.shape[1]
    image = reshape(as_node(batch).astype(INDEX), (k, 1, 1)) * (h * w)
    pixels = reshape(moveaxis(x, 1, -1), (n * h * w, c))
    total: Any = 0
    for y_place, y_weight in neighbours(y, h):
        for x_place, x_weight in neighbours(z, w):
            place = image + expand_dims(y_place, 2) * w + expand_dims(x_place, 1)
            weight = expand_dims(y_weight, 2) * expand_dims(x_weight, 1)
            total = total + take(pixels, place, 0) * expand_dims(weight, 3)
    inside = logical_and(expand_dims(is_near(y, h), 2), expand_dims(is_near(z, w), 1))
    total = where(expand_dims(inside, 3), total, 0)  # a product with 0 would keep a NaN of the border
    total = broadcast_to(total, (k, rows, columns, c))
    cells = reshape(total, (k, shape[0], samples, shape[1], samples, c))
    return moveaxis(cells.mean((2, 4)), -1, 1)


def samples_along(start: Node, size: Node, cells: int, samples: int) -> Node:
    """Return the coordinates ``[k, cells * samples]`` of the samples along one axis."""
    steps = (np.arange(cells * samples) + 0.5) / (cells * samples)
    return expand_dims(start, 1) + expand_dims(size, 1) * steps.astype(start.dtype)


def is_near(at: Node, n: int) -> Node:
    """Return True where a coordinate is at most one pixel outside an axis of length n; False for NaN."""
    return logical_and(at >= -1.0, at <= float(n))


def neighbours(at: Node, n: int) -> list[tuple[Node, Node]]:
    """Return the two pixels around each coordinate of an axis of length n, with their weights."""
    at = where(is_near(at, n), at.clip(0, n - 1), 0)
    low = floor(at)
    share = at - low
    first = low.astype(INDEX)
    second = minimum(first + 1, n - 1)
    return [(first, 1.0 - share), (second, share)]
