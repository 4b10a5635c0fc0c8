"""Sizes, numbers and rules of a Mask R-CNN, for inference and training.

Two rules are in use. ``torchvision`` is that of torchvision and, but for details, of detectron2; ``matterport`` that of
matterport/Mask_RCNN and of Owl. Boxes are ``(x0, y0, x1, y1)`` in pixels of the picture that the network sees; by
matterport's rule their far corners are one less, so that the sides of the picture are ``0 .. side - 1``.

Sources: He et al. 2017, arXiv:1703.06870; Lin et al. 2016, arXiv:1612.03144; torchvision 0.28 `models.detection`;
github.com/matterport/Mask_RCNN.
"""

from math import inf, log

from cgraph import Record, ShapeError

RULES = ("torchvision", "matterport")


class Config(Record):
    """All that is no weight.

    Fields
        image: rows and columns of the pictures that the network sees
        classes: with the background, which is class 0
        anchor_sides: of the anchors on each level of the pyramid, the finest first
        ratios: height over width of the anchors (``torchvision``), or width over height (``matterport``)
        level_side, level: a box with the area of this square is read from this level
        cells, mask_cells: of the grids over boxes for classes and for masks
        portions: into which boxes fall at inference, one after the other, so that what they see never stands whole
        before, after: proposals before suppression (of each level, or of all by matterport's rule) and after it
        training_before, training_after: the same in training
        proposal_share: the overlap that proposals may have
        detections: objects found in a picture at most
        least_score, share: of a detection at least; the overlap that two of a class may have
        sampled_anchors, sampled_boxes, positive_boxes: of a picture in training; at most half of the anchors are
            positive, and `positive_boxes` of the boxes
        beta: where the loss of box coordinates becomes linear
        mean, deviation: of red, green and blue from 0 to 255; the network sees the difference over the deviation
    """

    image: tuple[int, int]
    classes: int
    rule: str = "torchvision"
    anchor_sides: tuple[float, ...] = (32, 64, 128, 256, 512)
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    level_side: float = 224.0
    level: int = 2
    cells: int = 7
    mask_cells: int = 14
    portions: int = 4
    before: int = 1000
    after: int = 1000
    training_before: int = 2000
    training_after: int = 2000
    proposal_share: float = 0.7
    detections: int = 100
    least_score: float = 0.05
    share: float = 0.5
    sampled_anchors: int = 256
    sampled_boxes: int = 512
    positive_boxes: int = 128
    beta: float = 1 / 9
    mean: tuple[float, float, float] = (123.675, 116.28, 103.53)
    deviation: tuple[float, float, float] = (58.395, 57.12, 57.375)

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ShapeError(f"rule is {self.rule!r}; use one of {', '.join(RULES)}")

    @property
    def is_torchvision(self) -> bool:
        return self.rule == "torchvision"

    @property
    def far(self) -> int:
        """By how much far corners are less than where the pixels end."""
        return 0 if self.is_torchvision else 1

    @property
    def grid(self) -> tuple[str, int]:
        """Where samples of a box lie, and how many a cell has along each axis."""
        return ("cells", 2) if self.is_torchvision else ("corners", 1)

    @property
    def most(self) -> float:
        """The bound of a coded log of sizes."""
        return log(1000 / 16) if self.is_torchvision else inf

    @property
    def anchor_scales(self) -> tuple[float, float, float, float]:
        """Of coded boxes around anchors."""
        return (1, 1, 1, 1) if self.is_torchvision else self.box_scales

    @property
    def box_scales(self) -> tuple[float, float, float, float]:
        """Of coded boxes around proposals."""
        return 10, 10, 5, 5


def torchvision_config(image: tuple[int, int] = (800, 1344), classes: int = 91) -> Config:
    """As `maskrcnn_resnet50_fpn` of torchvision."""
    return Config(image, classes)


def matterport_config(side: int = 1024, classes: int = 81, least_score: float = 0.7) -> Config:
    """As matterport's network for COCO; Owl's sees 768 pixels and keeps scores from 0.75."""
    return Config(
        (side, side), classes, "matterport", before=6000, training_before=6000, least_score=least_score, share=0.3,
        sampled_boxes=200, positive_boxes=66, beta=1.0, mean=(123.7, 116.8, 103.9), deviation=(1.0, 1.0, 1.0),
    )  # fmt: skip
