"""Importer of NonMaxSuppression."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size, bounds_of_length, node_of
from cgraph.formats.onnx.dynamic.value import (
    Array,
    common_length,
    counts_of,
    fill_padding,
    lengths_of,
    node_in,
    resize_axis,
    with_lengths,
)
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

PAIR = 1000  # cost of comparing two boxes, in computed elements


@operator("NonMaxSuppression")
def non_max_suppression(c: Context) -> Array:
    """Import NonMaxSuppression: rows ``[batch, class, box]``, best first, without boxes that overlap a better one."""
    if c.is_open(0, 1, 2):
        return open_suppression(c)
    boxes, scores = c.constant(0).astype(np.float64), c.constant(1)
    most = int(c.number(2, 0))
    overlap, least = float(c.number(3, 0.0)), c.number(4)
    corners = boxes if not c.attribute("center_point_box", 0) else from_centres(boxes)
    low, high = np.minimum(corners[..., :2], corners[..., 2:]), np.maximum(corners[..., :2], corners[..., 2:])
    boxes_seen = boxes.shape[-2]
    c.spend(work=PAIR * scores.shape[0] * scores.shape[1] * boxes_seen * min(boxes_seen, max(most, 0)))
    rows = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            score = scores[batch, kind]
            left = [i for i in np.argsort(-score, kind="stable") if least is None or score[i] > least]
            selection: list[int] = []
            for i in left:
                if len(selection) < most and all(
                    overlap_of(low[batch], high[batch], i, j) <= overlap for j in selection
                ):
                    selection.append(int(i))
            rows += [(batch, kind, i) for i in selection]
    return Const(np.array(rows, np.int64).reshape(-1, 3))


def from_centres(boxes: np.ndarray) -> np.ndarray:
    """Convert ``[x, y, width, height]`` about the centre to two corners."""
    half = boxes[..., 2:] / 2
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def overlap_of(low: np.ndarray, high: np.ndarray, i: int, j: int) -> float:
    """Return the intersection over union of two boxes."""
    common = np.prod(np.maximum(np.minimum(high[i], high[j]) - np.maximum(low[i], low[j]), 0))
    union = np.prod(high[i] - low[i]) + np.prod(high[j] - low[j]) - common
    return float(common / union) if union > 0 else 0.0


def open_suppression(c: Context) -> Array:
    """Import NonMaxSuppression of boxes that are known only at run time. A NaN score selects nothing.

    Each class of each image has slots for its boxes; the used slots become rows, in order.
    """
    boxes, scores = c.array(0), c.array(1)
    (boxes, scores), length = boxes_and_scores(c, boxes, scores)
    corners = boxes if not c.attribute("center_point_box", 0) else corners_of_centres(boxes)
    low, high = (f(corners[..., :2], corners[..., 2:]) for f in (cg.minimum, cg.maximum))
    n, kinds, count = scores.shape
    most = c.length(2, 0)
    room = int(max(min(count, bounds_of_length(most)[1]), 0))
    shape = (n, kinds, count, 4)
    wide = cg.broadcast_to(cg.expand_dims(cg.concat([low, high], -1), 1), shape)
    share, least = float(c.number(3, 0.0)), c.number(4)
    if least is None:
        scores, least = cg.maximum(scores, np.finfo(scores.dtype).min), -np.inf
    if length is not None:
        scores = fill_padding(c.limits, with_lengths(scores, {2: length}), -np.inf)
    places, counts = cg.non_maximum_suppression(wide, scores, room, share, float(least))
    selected = cg.less(c.limits.steps(room), cg.expand_dims(cg.minimum(counts, node_of(most)), -1))
    total = int(min(n * kinds * room, c.maximum))
    at, total_selected = cg.nonzero(selected, total)
    flat = (at[0] * kinds + at[1]) * room + at[2]
    box_indices = cg.take(cg.reshape(places, (-1,)), flat, 0)
    return with_lengths(cg.stack([at[0], at[1], box_indices], -1), {0: c.limits.length(total_selected)})


def boxes_and_scores(c: Context, boxes: Array, scores: Array) -> tuple[list[Node], Length | None]:
    """Return boxes and scores of a common maximum length, and the number of boxes if it is dynamic."""
    for x, axis in ((boxes, 1), (scores, 2)):
        if x.ndim != 3 or set(counts_of(x)) - {axis}:
            raise FormatError(f"{x.ndim} axes, or a dynamic number of images or classes. Use shapes= to fix it")
    lengths = [lengths_of(boxes)[1], lengths_of(scores)[2]]
    length = common_length(c.limits, lengths, c.unequal)
    room = int(bounds_of_length(length)[1])
    nodes = [resize_axis(node_in(boxes), 1, room), resize_axis(node_in(scores), 2, room)]
    return nodes, length if isinstance(length, Size) else None


def corners_of_centres(boxes: Node) -> Node:
    """Convert centres to corners at run time, as `from_centres`."""
    half = boxes[..., 2:] / 2
    return cg.concat([boxes[..., :2] - half, boxes[..., :2] + half], -1)
