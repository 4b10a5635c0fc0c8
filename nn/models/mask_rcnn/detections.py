"""Detections: class scores and coded boxes of proposals to the objects of a picture."""

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.proposals import clip_boxes, has_sides, rows_at

LEAST_SIDE = 1e-2
"""Minimum side of a detection in pixels, by torchvision's rule."""


def detections(
    config: Config, scores: Node, deltas: Node, proposals: Node, counts: Node, window: Node
) -> tuple[Node, Node, Node, Node]:
    """Return boxes ``[n, most, 4]``, scores and classes ``[n, most]``, padded with zeros, and counts ``[n]``.

    Parameters
        scores: logits ``[n, m, classes]``
        deltas: coded boxes ``[n, m, classes, 4]``
        proposals, counts: ``[n, m, 4]``, and how many of them are valid ``[n]``
        window: the picture's part of the network's input ``[n, 4]``
    """
    n, m, classes = scores.shape
    probabilities = cg.softmax(scores, -1)
    there = np.arange(m) < cg.expand_dims(counts, 1)
    if config.is_torchvision:
        kinds: Node = cg.broadcast_to(np.arange(1, classes), (n, m, classes - 1))
        probabilities, deltas = probabilities[:, :, 1:], deltas[:, :, 1:]
    else:
        kinds = cg.expand_dims(cg.argmax(scores, -1), 2)
        probabilities = cg.take_along_axis(probabilities, kinds, 2)
        deltas = cg.take_along_axis(deltas, cg.expand_dims(kinds, 3), 2)
    each = kinds.shape[2]
    decoded = cg.box_decode(deltas, cg.expand_dims(proposals, 2), config.box_scales, config.most)
    boxes = clip_boxes(cg.reshape(decoded, (n, m * each, 4)), window)
    valid = cg.reshape(cg.expand_dims(there, 2) & (kinds > 0), (n, m * each))
    if config.is_torchvision:
        valid = valid & has_sides(boxes, LEAST_SIDE)
    likelihoods, kinds = cg.reshape(probabilities, (n, m * each)), cg.reshape(kinds, (n, m * each))
    places, count = cg.non_maximum_suppression(
        boxes, cg.where(valid, likelihoods, -np.inf), config.detections, config.share, config.least_score, kinds
    )
    return rows_at(boxes, places), rows_at(likelihoods, places), rows_at(kinds, places), count
