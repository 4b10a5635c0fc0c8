"""Mask R-CNN as one graph: backbone, pyramid, proposals, and heads for classes, boxes and masks.

Source: He et al. 2017, arXiv:1703.06870; rules and numbers in `nn.models.mask_rcnn.config`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample
from nn.mode import Mode
from nn.models.mask_rcnn.anchors import anchors
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.detections import detections
from nn.models.mask_rcnn.proposals import proposals


class Raw(NamedTuple):
    """The pyramid, and the results for every anchor.

    Fields
        maps: levels of the pyramid that features of boxes are read from
        scores, deltas: logits ``[n, anchors]`` and coded boxes ``[n, anchors, 4]`` of each level
        anchors: anchors of each level
    """

    maps: list[Node]
    scores: list[Node]
    deltas: list[Node]
    anchors: list[np.ndarray]


class MaskRCNN(Layer):
    """Pictures to objects: boxes, scores, classes, masks and counts.

    Operands
        image: ``[n, 3, *config.image]``, as `nn.models.mask_rcnn.pictures` prepares them
        window: the picture's part of each image ``[n, 4]``, as ``(x0, y0, x1, y1)``
    Fields
        trunk: images to maps, the finest first, each half as large as the one before
        lateral, smooth: convolutions of the pyramid, for each of these maps
        rpn: a level of the pyramid to logits and coded boxes of its anchors
        box: features of boxes to class logits and coded boxes
        mask: features of boxes to mask logits of every class
    Result
        boxes ``[n, k, 4]``, scores and classes ``[n, k]``, masks ``[n, k, 28, 28]`` as probabilities, and counts
        ``[n]``; beyond the count boxes, scores and classes are zero, and masks have no meaning

    The pyramid has one level more than the backbone if there are anchors for it.
    """

    config: Config
    trunk: Layer
    lateral: tuple[Layer, ...]
    smooth: tuple[Layer, ...]
    rpn: Layer
    box: Layer
    mask: Layer

    @property
    def samples(self) -> tuple[Sample, ...]:
        return Sample((3, *self.config.image)), Sample((4,))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, Node, Node, Node, Node]:
        image, window = xs
        config = self.config
        raw = self.raw(image, mode)
        boxes, counts = proposals(config, raw.scores, raw.deltas, raw.anchors, window, training=False)
        classed = [self.classify(raw.maps, boxes[:, some], mode) for some in self.portions(boxes.shape[1])]
        scores, deltas = (cg.concat(list(parts), 1) for parts in zip(*classed))
        final_boxes, score, kinds, count = detections(config, scores, deltas, boxes, counts, window)
        masks = [
            self.masks(raw.maps, final_boxes[:, some], kinds[:, some], mode)
            for some in self.portions(final_boxes.shape[1])
        ]
        return final_boxes, score, kinds, cg.concat(masks, 1), count

    def portions(self, count: int) -> list[slice]:
        """Return the slice of each portion of `count` boxes."""
        size = -(-count // self.config.portions)
        return [slice(first, min(first + size, count)) for first in range(0, count, size)]

    def classify(self, maps: Sequence[Node], boxes: Node, mode: Mode) -> tuple[Node, Node]:
        """Return class logits ``[n, k, classes]`` and coded boxes ``[n, k, classes, 4]`` of boxes ``[n, k, 4]``."""
        scores, deltas = self.box(self.roi_features(maps, boxes, self.config.cells), mode=mode)
        several = (*boxes.shape[:2], self.config.classes)
        return cg.reshape(scores, several), cg.reshape(deltas, (*several, 4))

    def masks(self, maps: Sequence[Node], boxes: Node, kinds: Node, mode: Mode) -> Node:
        """Return the mask ``[n, k, 28, 28]`` of the class of each box."""
        logits = self.mask(self.roi_features(maps, boxes, self.config.mask_cells), mode=mode)
        masks = cg.sigmoid(of_class(logits, cg.reshape(kinds, (-1,))))
        return cg.reshape(masks, (*boxes.shape[:2], *masks.shape[1:]))

    def raw(self, image: Node, mode: Mode) -> Raw:
        """Return the pyramid, and the results for every anchor."""
        maps = self.pyramid(image, mode)
        scores, deltas = zip(*(self.rpn(x, mode=mode) for x in maps))
        sizes = [(x.shape[2], x.shape[3]) for x in maps]
        return Raw(maps[: len(self.lateral)], list(scores), list(deltas), anchors(self.config, sizes))

    def pyramid(self, image: Node, mode: Mode) -> list[Node]:
        """Return the levels of the pyramid, the finest first."""
        maps = self.trunk(image, mode=mode)
        levels: list[Node] = []
        for lateral, x in zip(reversed(self.lateral), reversed(maps)):
            level = lateral(x, mode=mode)
            if levels:
                level = level + cg.resize(levels[0], level.shape[2:], "nearest", "asymmetric", "floor")
            levels.insert(0, level)
        levels = [smooth(x, mode=mode) for smooth, x in zip(self.smooth, levels)]
        if len(self.config.anchor_sides) > len(levels):
            levels.append(levels[-1][:, :, ::2, ::2])
        return levels

    def roi_features(self, maps: Sequence[Node], boxes: Node, cells: int) -> Node:
        """Return features ``[n * k, c, cells, cells]`` of a grid over each of the boxes ``[n, k, 4]``."""
        n, k = boxes.shape[:2]
        grid, samples = self.config.grid
        flat, batch = cg.reshape(boxes, (n * k, 4)), np.repeat(np.arange(n), k)
        scales = [self.scale(x) for x in maps]
        level = self.level(flat, len(maps))
        return cg.roi_align_levels(maps, flat, batch, level, (cells, cells), scales, samples, grid)

    def scale(self, x: Node) -> float:
        """Return the scale from coordinates of boxes to pixels of a level."""
        far = self.config.far
        return (x.shape[2] - far) / (self.config.image[0] - far)

    def level(self, boxes: Node, levels: int) -> Node:
        """Return the level from which the features of each box ``[k, 4]`` are read, by its area."""
        config = self.config
        area = cg.maximum(cg.prod(boxes[:, 2:] - boxes[:, :2], axis=1), 1e-12)
        if config.is_torchvision:
            step = cg.floor(cg.log2(cg.sqrt(area) / config.level_side) + 1e-6)
        else:
            whole = config.image[0] / (config.image[0] - config.far)
            step = cg.round(cg.log2(cg.sqrt(area) * (whole / config.level_side)))
        return cg.clip(cg.astype(step, "int64") + config.level, 0, levels - 1)


def of_class(x: Node, kinds: Node) -> Node:
    """Return the rows ``[m, ...]`` of ``[m, classes, ...]`` at classes ``[m]``."""
    places = cg.reshape(kinds, (-1, *[1] * (x.ndim - 1)))
    return cg.reshape(cg.take_along_axis(x, places, 1), (x.shape[0], *x.shape[2:]))
