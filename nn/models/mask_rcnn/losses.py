"""The five losses of Mask R-CNN, and the layer that trains with them.

By torchvision's rule the losses of coordinates are sums over positives, divided by the size of the sample; by
matterport's rule means over positives. True masks are sampled like the features of boxes, twice per cell along each
axis, where torchvision takes a sample for every pixel.

Source: Ren et al. 2015, arXiv:1506.01497, section 3.1.3; He et al. 2017, arXiv:1703.06870, section 3.
"""

from typing import NamedTuple

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample
from nn.mode import Mode
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.network import MaskRCNN, Raw, of_class
from nn.models.mask_rcnn.proposals import proposals
from nn.models.mask_rcnn.targets import mask_targets, match_boxes, sample_boxes

PARTS = ("anchors", "anchor boxes", "classes", "boxes", "masks")
NEGATIVES = 2
"""Number of background boxes for each positive one, by matterport's rule."""
UNIT = np.array([0, 0, 1, 1], np.float32)
"""The box of entries with weight 0, which avoids a logarithm of 0."""


class Truth(NamedTuple):
    """Boxes ``[n, objects, 4]``, classes ``[n, objects]`` (0: no object) and the owner of each pixel ``[n, h, w]``."""

    boxes: Node
    classes: Node
    owner: Node


class BoxSample(NamedTuple):
    """A random sample, positives first.

    Fields
        places: indices among anchors or candidates
        whose: index of the object of each
        hit: which of them are positive
        there: which of them are valid; all ``[n, size]``
    """

    places: Node
    whose: Node
    hit: Node
    there: Node


class Training(Layer):
    """The losses of a network, for `nn.train` and `nn.training_step` with ``targets=0``.

    Operands
        image, window: as for `MaskRCNN`
        boxes: boxes of the objects ``[n, objects, 4]``
        classes: their classes ``[n, objects]``, 0 for no object
        owner: number of the object of each pixel, from 1 on; 0 for none ``[n, h, w]``
    Fields
        model: the network
        objects: maximum number of objects in a picture
    Result
        the losses by the names in PARTS
    """

    model: MaskRCNN
    objects: int

    @property
    def samples(self) -> tuple[Sample, ...]:
        objects, image = self.objects, self.model.config.image
        boxes, classes = Sample((objects, 4)), Sample((objects,), "int64")
        return *self.model.samples, boxes, classes, Sample(image, "uint8")

    def build(self, *xs: Node, mode: Mode) -> dict[str, Node]:
        image, window, *truth_operands = xs
        truth = Truth(*truth_operands)
        first, second = cg.split_key(mode.next_key())
        raw = self.model.raw(image, mode)
        config, anchors = self.model.config, np.concatenate(raw.anchors)
        anchor_terms = anchor_losses(config, raw, truth, anchor_choice(config, anchors, truth, first))
        candidates, there = candidates_of(config, raw, window, truth)
        choice = box_choice(config, candidates, there, truth, second)
        return dict(zip(PARTS, (*anchor_terms, *box_losses(self.model, raw, candidates, truth, choice, mode))))


def total(parts: dict[str, Node]) -> dict[str, Node]:
    """Return the loss of a `Training` layer: its parts, which are added up and reported one by one."""
    return parts


def anchor_choice(config: Config, anchors: np.ndarray, truth: Truth, key: Node) -> BoxSample:
    """Return a sample of anchors, at most half of them positive."""
    overlaps = cg.box_iou(anchors[None], truth.boxes)
    whose, positive, negative = match_boxes(overlaps, truth.classes > 0, 0.3, 0.7, best_of_each=True)
    size = config.sampled_anchors
    places, hit, there = sample_boxes(positive, negative, key, size, size // 2)
    return BoxSample(places, cg.take_along_axis(whose, places, 1), hit, there)


def anchor_losses(config: Config, raw: Raw, truth: Truth, choice: BoxSample) -> tuple[Node, Node]:
    """Return the losses of logits and coded boxes of a sample of anchors."""
    scores = cg.take_along_axis(cg.concat(raw.scores, 1), choice.places, 1)
    deltas = rows(cg.concat(raw.deltas, 1), choice.places)
    own = cg.take(np.concatenate(raw.anchors), choice.places, 0)
    objects = rows(truth.boxes, choice.whose)
    target_deltas = cg.box_encode(cg.where(cg.expand_dims(choice.hit, 2), objects, own), own, config.anchor_scales)
    classed = cg.softplus(scores) - scores * cg.astype(choice.hit, "float32")
    return mean(classed, choice.there), coordinates(config, deltas, target_deltas, choice)


def candidates_of(config: Config, raw: Raw, window: Node, truth: Truth) -> tuple[Node, Node]:
    """Return proposals ``[n, m, 4]``, by torchvision's rule with the objects' boxes, and which are valid ``[n, m]``."""
    scores, deltas = ([cg.stop_gradient(x) for x in levels] for levels in (raw.scores, raw.deltas))
    boxes, counts = proposals(config, scores, deltas, raw.anchors, window, training=True)
    there = cg.less(np.arange(boxes.shape[1]), cg.expand_dims(counts, 1))
    if not config.is_torchvision:
        return boxes, there
    return cg.concat([boxes, truth.boxes], 1), cg.concat([there, truth.classes > 0], 1)


def box_choice(config: Config, candidates: Node, there: Node, truth: Truth, key: Node) -> BoxSample:
    """Return a sample of the valid candidates."""
    overlaps = cg.box_iou(candidates, truth.boxes)
    whose, positive, negative = match_boxes(overlaps, truth.classes > 0, 0.5, 0.5, best_of_each=False)
    size, most = config.sampled_boxes, config.positive_boxes
    places, hit, counted = sample_boxes(positive & there, negative & there, key, size, most)
    if not config.is_torchvision:
        positives = cg.sum(cg.astype(hit, "int64"), 1, keepdims=True)
        counted = counted & (np.arange(places.shape[1]) < positives * (1 + NEGATIVES))
    return BoxSample(places, cg.take_along_axis(whose, places, 1), hit, counted)


def box_losses(
    model: MaskRCNN, raw: Raw, candidates: Node, truth: Truth, choice: BoxSample, mode: Mode
) -> tuple[Node, Node, Node]:
    """Return the losses of class logits, coded boxes and masks of a sample of candidates ``[n, m, 4]``."""
    config, (n, size) = model.config, choice.places.shape
    own = cg.where(cg.expand_dims(choice.there, 2), rows(candidates, choice.places), UNIT)
    kinds = cg.take_along_axis(truth.classes, choice.whose, 1) * cg.astype(choice.hit, "int64")
    scores, deltas = model.box(model.roi_features(raw.maps, own, config.cells), mode=mode)
    logs = of_class(cg.log_softmax(scores, -1), cg.reshape(kinds, (-1,)))
    deltas = of_class(cg.reshape(deltas, (n * size, config.classes, 4)), cg.reshape(kinds, (-1,)))
    objects = cg.where(cg.expand_dims(choice.hit, 2), rows(truth.boxes, choice.whose), own)
    target_deltas = cg.box_encode(objects, own, config.box_scales)
    class_loss = mean(-cg.reshape(logs, (n, size)), choice.there)
    box_loss = coordinates(config, cg.reshape(deltas, (n, size, 4)), target_deltas, choice)
    return class_loss, box_loss, mask_loss(model, raw, own, kinds, truth.owner, choice, mode)


def mask_loss(model: MaskRCNN, raw: Raw, own: Node, kinds: Node, owner: Node, choice: BoxSample, mode: Mode) -> Node:
    """Return the binary cross entropy of the mask of each positive box's class, the mean over positives and pixels.

    Parameters
        own, kinds: boxes ``[n, size, 4]`` and their classes ``[n, size]``, positives first
    """
    some = slice(None), slice(min(model.config.positive_boxes, own.shape[1]))
    own, kinds = own[some], kinds[some]
    logits = model.mask(model.roi_features(raw.maps, own, model.config.mask_cells), mode=mode)
    logits = of_class(logits, cg.reshape(kinds, (-1,)))
    logits = cg.reshape(logits, (*kinds.shape, *logits.shape[1:]))
    target_masks = mask_targets(owner, own, choice.whose[some], logits.shape[-1], model.config.grid)
    if not model.config.is_torchvision:
        target_masks = cg.round(target_masks)
    return mean(cg.mean(cg.softplus(logits) - logits * target_masks, (2, 3)), choice.hit[some])


def rows(x: Node, places: Node) -> Node:
    """Return rows ``[n, size, 4]`` of ``[n, m, 4]``."""
    return cg.take_along_axis(x, cg.expand_dims(places, 2), 1)


def mean(x: Node, there: Node) -> Node:
    """Return the mean over valid elements, 0 when there are none."""
    weights = cg.astype(there, "float32")
    return cg.sum(x * weights) / cg.maximum(cg.sum(weights), 1.0)


def coordinates(config: Config, deltas: Node, target_deltas: Node, choice: BoxSample) -> Node:
    """Return the smooth L1 loss of the coded boxes of positives."""
    loss = cg.sum(cg.where(cg.expand_dims(choice.hit, 2), smooth_l1(deltas - target_deltas, config.beta), 0.0))
    count = cg.sum(cg.astype(choice.there if config.is_torchvision else choice.hit, "float32"))
    return loss / cg.maximum(count if config.is_torchvision else 4.0 * count, 1.0)


def smooth_l1(x: Node, beta: float) -> Node:
    """Return ``x**2 / (2 beta)`` up to `beta`, ``|x| - beta / 2`` beyond. Source: Girshick 2015, arXiv:1504.08083."""
    size = cg.abs(x)
    return cg.where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta)
