"""load_detector: a Darknet network from picture to boxes, scores and classes."""

from pathlib import Path

from cgraph.errors import FormatError
from cgraph.formats.darknet.layers import op
from cgraph.formats.darknet.reader import DRAWN, read, source
from cgraph.formats.model import Model
from cgraph.ir.graph import Node

NODES = 40  # that make boxes and scores of one layer
NAMES = ("boxes", "scores", "classes", "counts")


def load_detector(
    config: str | Path,
    weights: str | Path | None = None,
    *,
    size: int = 100,
    score_threshold: float = 0.25,
    iou_threshold: float = 0.45,
    batch: int = 1,
    seed: int | None = None,
    drawn: int = DRAWN,
) -> Model:
    """Read a network whose last layers find things, with what makes boxes of their numbers.

    Every place has one box of its best class; of boxes of one class that overlap, the one of the highest score stays.
    Thresholds are those of Darknet's own ``detector test``. Networks trained for another measure of overlap
    (``nms_kind=diounms``) are given the plain one as well.

    Parameters
        config, weights, batch, seed, drawn: as for `load`
        size: boxes for one picture at most
        score_threshold: a box has a higher score
        iou_threshold: two boxes of one class do not overlap more
    Returns
        a model of one input ``[batch, c, h, w]``. Its outputs are ``boxes [batch, size, 4]``, corners ``(x0, y0, x1,
        y1)`` as shares of the picture's sides; ``scores [batch, size]``, falling; ``classes [batch, size]``; and
        ``counts [batch]``. Rows behind the count are 0
    Raises
        FormatError: as for `load`, and when no layer finds boxes
    """
    model, net = read(config, source(weights, seed, drawn), batch)
    if not net.boxes:
        raise FormatError(f"{config}: no layer finds boxes; there must be [yolo], [region] or [detection]")
    try:
        net.allowance.spend(f"boxes of {len(net.boxes)} layers", nodes=NODES * len(net.boxes))
        parts = [decode() for decode in net.boxes]
    except FormatError as error:
        raise FormatError(f"{config}: {error}") from None
    boxes, scores = (op("concat", group, 1) for group in zip(*parts))
    outputs = select_boxes(boxes, scores, size, iou_threshold, score_threshold)
    return Model(model.inputs, outputs, NAMES, model.values, updates=model.updates)


def select_boxes(
    boxes: Node, scores: Node, size: int, iou_threshold: float, score_threshold: float
) -> tuple[Node, ...]:
    """What stays of ``boxes [n, k, 4]`` and the scores of their classes ``[n, k, c]``."""
    best, kinds = op("max", scores, 2), op("argmax", scores, 2)
    places, counts = op("non_maximum_suppression", boxes, best, size, iou_threshold, score_threshold, kinds)
    there, indices = places >= 0, op("maximum", places, 0)
    rows = op("take_along_axis", boxes, op("expand_dims", indices, 2), 1)
    details = (op("take_along_axis", v, indices, 1) for v in (best, kinds))
    return op("where", op("expand_dims", there, 2), rows, 0), *(op("where", there, v, 0) for v in details), counts
