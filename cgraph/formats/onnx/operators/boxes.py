"""Choosing boxes: NonMaxSuppression."""

import numpy as np

from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

PAIR = 1000  # elements that could be computed while two boxes are compared


@operator("NonMaxSuppression")
def non_max_suppression(c: Context) -> Node:
    """Rows ``[batch, class, box]``, best first, of boxes that overlap no better one too much.

    How many there are is data, so boxes and scores must be known now.
    """
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
            kept: list[int] = []
            for i in left:
                if len(kept) < most and all(shared(low[batch], high[batch], i, j) <= overlap for j in kept):
                    kept.append(int(i))
            rows += [(batch, kind, i) for i in kept]
    return Const(np.array(rows, np.int64).reshape(-1, 3))


def from_centres(boxes: np.ndarray) -> np.ndarray:
    """``[x, y, width, height]`` about the centre as two corners."""
    half = boxes[..., 2:] / 2
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def shared(low: np.ndarray, high: np.ndarray, i: int, j: int) -> float:
    """The area of two boxes' intersection over that of their union."""
    common = np.prod(np.maximum(np.minimum(high[i], high[j]) - np.maximum(low[i], low[j]), 0))
    union = np.prod(high[i] - low[i]) + np.prod(high[j] - low[j]) - common
    return float(common / union) if union > 0 else 0.0
