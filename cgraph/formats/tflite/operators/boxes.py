"""Importers of non-maximum suppression.

Source: tensorflow/lite/kernels/internal/reference/non_max_suppression.h.
"""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.operators.shape import only
from cgraph.ir.graph import Node

NODES = 600  # of a suppression that lowers scores: a loop, or four unrolled rounds


@operator("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(c: TfliteContext) -> list[Node]:
    """Import NON_MAX_SUPPRESSION_V4 and V5: at most `size` boxes by descending score, then zeros, and their number.

    Operands: boxes ``[n, 4]`` as two opposite corners, scores ``[n]``, the size, the share of the union from which on a
    box is dropped, the score that must be exceeded; and in V5, whose second result are scores, a deviation sigma. If
    that is above 0, a box that stays loses score to each selected one, by a factor ``exp(-share ** 2 / (2 * sigma))``.
    """
    boxes, scores, size = c[0].plain, c[1].plain, only(c.ints(2))
    share, least, *rest = (np.float32(number(c, i)) for i in range(3, len(c.operands)))
    sigma = rest[0] if rest else np.float32(0)
    if scores.ndim != 1 or boxes.shape != (*scores.shape, 4) or not scores.size or size < 0:
        raise FormatError(f"boxes {boxes.spec}, scores {scores.spec} and a size of {size} do not fit")
    if not (0 < share <= 1 and sigma >= 0):
        raise FormatError(
            f"a threshold of {share} or a sigma of {sigma}: give a threshold up to 1, above 0, and sigma >= 0"
        )
    c.spend(nbytes=8 * (size + scores.size))
    corners = cg.concat([cg.minimum(boxes[:, :2], boxes[:, 2:]), cg.maximum(boxes[:, :2], boxes[:, 2:])], 1)
    if sigma:
        indices, best, count = lower_scores(c, corners, scores, size, (share, least, sigma))
    else:  # TFLite drops a box whose share equals the threshold, too
        below = float(np.nextafter(share, np.float32(0)))
        indices, count = cg.non_maximum_suppression(corners, scores, size, below, float(least))
        best = cg.take(scores, cg.maximum(indices, 0))
    is_selected = cg.greater(count, np.arange(size))
    indices, count = (cg.astype(x, "int32") for x in (cg.where(is_selected, indices, 0), count))
    return [indices, count] if len(c.results) == 2 else [indices, cg.where(is_selected, best, np.float32(0)), count]


def number(c: TfliteContext, i: int) -> float:
    """Return operand i, a constant number."""
    array = c.constant(i)
    if array.size != 1:
        raise FormatError(f"operand {i} has {array.size} elements, one is expected")
    return float(array.reshape(()))


def lower_scores(
    c: TfliteContext, boxes: Node, scores: Node, size: int, limits: tuple[np.float32, np.float32, np.float32]
) -> tuple[Node, Node, Node]:
    """Select boxes one by one; each lowers the scores of those that remain. Return indices, scores and the number."""
    share, least, sigma = limits
    c.allowance.spend("non-maximum suppression", nodes=NODES)

    def step(remaining: Node, _: None) -> tuple[Node, tuple[Node, Node]]:
        i = cg.argmax(remaining)
        covered = cg.box_iou(cg.take(boxes, i, axis=0).reshape((1, 4)), boxes)[0]
        covered = cg.where(cg.isnan(covered), np.float32(0), covered)  # boxes without area cover nothing
        factor = cg.exp(covered * covered * np.float32(-0.5 / sigma))
        after = cg.where(cg.greater_equal(covered, share), np.float32(-np.inf), remaining * factor)
        return cg.where(cg.equal(np.arange(scores.size), i), np.float32(-np.inf), after), (i, cg.take(remaining, i))

    _, (indices, best) = cg.scan(step, scores, length=size)
    return indices, best, cg.sum(cg.greater(best, least))
