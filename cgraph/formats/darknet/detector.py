"""load_detector: a Darknet network whose outputs are boxes, scores and classes."""

from pathlib import Path

from cgraph.errors import FormatError
from cgraph.formats.darknet.layers import op
from cgraph.formats.darknet.reader import DRAWN, read, source
from cgraph.formats.model import Model
from cgraph.ir.graph import Node

NODES = 40  # nodes that compute boxes and scores of one layer
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
    drawn: int | str = DRAWN,
) -> Model:
    """Read a detection network, with the decoding of boxes and non-maximum suppression.

    Each anchor gives one box of its best class. Of overlapping boxes of one class, the one with the highest score
    remains. Thresholds are those of Darknet's ``detector test``. Networks trained for another measure of overlap
    (``nms_kind=diounms``) use the plain one as well.

    Parameters
        config, weights, batch, seed, drawn: as for `load`
        size: maximum number of boxes per image
        score_threshold: boxes with a lower score are dropped
        iou_threshold: the largest overlap of two boxes of one class
    Returns
        a model of one input ``[batch, c, h, w]``. Its outputs are ``boxes [batch, size, 4]``, corners ``(x0, y0, x1,
        y1)`` relative to the image size; ``scores [batch, size]``, descending; ``classes [batch, size]``; and
        ``counts [batch]``. Rows after the count are 0
    Raises
        FormatError: as for `load`, and if no layer detects boxes

    Example
        >>> from pathlib import Path
        >>> layers = '''[net]
        ... width=32
        ... height=32
        ... channels=3
        ... [convolutional]
        ... filters=21
        ... size=1
        ... stride=32
        ... activation=linear
        ... [yolo]
        ... mask=0,1,2
        ... anchors=8,8, 16,16, 24,24
        ... classes=2
        ... num=3
        ... '''
        >>> _ = Path("tiny.cfg").write_text(layers)
        >>> detect = cg.formats.darknet.load_detector("tiny.cfg", seed=0, size=5).compile()
        >>> detect.names
        ('boxes', 'scores', 'classes', 'counts')
        >>> detect(np.zeros((1, 3, 32, 32), np.float32))["boxes"].shape
        (1, 5, 4)
    """
    model, net = read(config, source(weights, seed, drawn), batch)
    if not net.boxes:
        raise FormatError(f"{config}: no layer detects boxes. Use load, or add [yolo], [region] or [detection]")
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
    """Apply non-maximum suppression to ``boxes [n, k, 4]`` with class scores ``[n, k, c]``."""
    best, kinds = op("max", scores, 2), op("argmax", scores, 2)
    places, counts = op("non_maximum_suppression", boxes, best, size, iou_threshold, score_threshold, kinds)
    there, indices = places >= 0, op("maximum", places, 0)
    rows = op("take_along_axis", boxes, op("expand_dims", indices, 2), 1)
    details = (op("take_along_axis", v, indices, 1) for v in (best, kinds))
    return op("where", op("expand_dims", there, 2), rows, 0), *(op("where", there, v, 0) for v in details), counts
