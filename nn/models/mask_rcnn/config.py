"""Config: sizes, thresholds and rules of a Mask R-CNN, for inference and training.

There are two rules: ``torchvision`` is that of torchvision and, except for details, of detectron2; ``matterport`` is
that of matterport/Mask_RCNN and of Owl. Boxes are ``(x0, y0, x1, y1)`` in pixels of the network's input; by
matterport's rule far corners are one less, so that the picture spans ``0 .. side - 1``.

Sources: He et al. 2017, arXiv:1703.06870; Lin et al. 2016, arXiv:1612.03144; torchvision 0.28 `models.detection`;
github.com/matterport/Mask_RCNN.
"""

from math import inf, log

from cgraph import Record, ShapeError

RULES = ("torchvision", "matterport")


class Config(Record):
    """Everything that defines a Mask R-CNN except its layers and weights.

    Fields
        image: rows and columns of the network's input
        classes: number of classes, including the background, which is class 0
        anchor_sides: sides of the anchors on each level of the pyramid, the finest first
        ratios: height over width of the anchors (``torchvision``), or width over height (``matterport``)
        level_side, level: a box with the area of this square is read from this level
        cells, mask_cells: sides of the feature grids of boxes, for classes and for masks
        portions: number of portions in which inference processes boxes, so that not all features are in memory at once
        before, after: proposals before suppression (of each level, or of all by matterport's rule) and after it
        training_before, training_after: the same in training
        proposal_share: maximum overlap of proposals
        detections: maximum number of detections in a picture
        least_score, share: minimum score of a detection; maximum overlap of two detections of a class
        sampled_anchors, sampled_boxes, positive_boxes: samples of a picture in training; at most half of the anchors
            and `positive_boxes` of the boxes are positive
        beta: difference from which on the loss of box coordinates is linear
        mean, deviation: of red, green and blue from 0 to 255; the input is ``(pixel - mean) / deviation``
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
            raise ShapeError(f"rule is {self.rule!r}. Use one of {', '.join(RULES)}.")

    @property
    def is_torchvision(self) -> bool:
        """True for torchvision's rule."""
        return self.rule == "torchvision"

    @property
    def far(self) -> int:
        """Difference between the end of a box's pixels and its far corner."""
        return 0 if self.is_torchvision else 1

    @property
    def grid(self) -> tuple[str, int]:
        """Position of the samples of a box, and their number per cell along each axis."""
        return ("cells", 2) if self.is_torchvision else ("corners", 1)

    @property
    def most(self) -> float:
        """Upper bound of a coded log size."""
        return log(1000 / 16) if self.is_torchvision else inf

    @property
    def anchor_scales(self) -> tuple[float, float, float, float]:
        """Scales of boxes coded relative to anchors."""
        return (1, 1, 1, 1) if self.is_torchvision else self.box_scales

    @property
    def box_scales(self) -> tuple[float, float, float, float]:
        """Scales of boxes coded relative to proposals."""
        return 10, 10, 5, 5


def torchvision_config(image: tuple[int, int] = (800, 1344), classes: int = 91) -> Config:
    """Return the Config of torchvision's `maskrcnn_resnet50_fpn`."""
    return Config(image, classes)


def matterport_config(side: int = 1024, classes: int = 81, least_score: float = 0.7) -> Config:
    """Return the Config of matterport's network for COCO; Owl's has 768 pixels and a minimum score of 0.75."""
    return Config(
        (side, side), classes, "matterport", before=6000, training_before=6000, least_score=least_score, share=0.3,
        sampled_boxes=200, positive_boxes=66, beta=1.0, mean=(123.7, 116.8, 103.9), deviation=(1.0, 1.0, 1.0),
    )  # fmt: skip
