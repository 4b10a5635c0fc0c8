"""Proposals: the boxes most likely to contain an object, from the results for every anchor."""

from collections.abc import Sequence

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.models.mask_rcnn.config import Config

LEAST_SIDE = 1e-3
"""Minimum side of a proposal in pixels, by torchvision's rule."""


def proposals(
    config: Config,
    scores: Sequence[Node],
    deltas: Sequence[Node],
    anchors: Sequence[np.ndarray],
    window: Node,
    training: bool,
) -> tuple[Node, Node]:
    """Return the best boxes of each picture ``[n, after, 4]``, padded with zeros, and their counts ``[n]``.

    Parameters
        scores, deltas: logits ``[n, anchors]`` and coded boxes ``[n, anchors, 4]`` of each level
        anchors: anchors of each level
        window: the picture's part of the network's input ``[n, 4]``, to which boxes are clipped
    """
    before, after = (config.training_before, config.training_after) if training else (config.before, config.after)
    if not config.is_torchvision:
        scores, deltas = [cg.concat(list(scores), 1)], [cg.concat(list(deltas), 1)]
        anchors = [np.concatenate(list(anchors))]
    candidates = [best(config, *level, before) for level in zip(scores, deltas, anchors)]
    boxes = clip_boxes(cg.concat([box for box, _ in candidates], 1), window)
    best_scores = cg.concat([score for _, score in candidates], 1)
    levels = np.repeat(np.arange(len(candidates)), [score.shape[1] for _, score in candidates])
    if config.is_torchvision:
        best_scores = cg.where(has_sides(boxes, LEAST_SIDE), best_scores, -np.inf)
    places, counts = cg.non_maximum_suppression(
        boxes, best_scores, after, config.proposal_share, groups=levels if len(candidates) > 1 else None
    )
    return rows_at(boxes, places), counts


def best(config: Config, scores: Node, deltas: Node, anchors: np.ndarray, count: int) -> tuple[Node, Node]:
    """Return boxes and scores of the anchors with the best scores of one level."""
    values, places = cg.top_k(scores, min(count, scores.shape[1]), 1)
    best_deltas = cg.take_along_axis(deltas, cg.expand_dims(places, 2), 1)
    return cg.box_decode(best_deltas, cg.take(anchors, places, 0), config.anchor_scales, config.most), values


def rows_at(x: Node, places: Node) -> Node:
    """Return rows ``[n, size, ...]`` of ``[n, m, ...]`` at indices ``[n, size]``; zeros at index -1."""
    shape = (*places.shape, *[1] * (x.ndim - 2))
    rows = cg.take_along_axis(x, cg.reshape(cg.maximum(places, 0), shape), 1)
    return cg.where(cg.reshape(places >= 0, shape), rows, cg.zeros_like(rows))


def clip_boxes(boxes: Node, window: Node) -> Node:
    """Return boxes ``[n, m, 4]`` clipped to the window of each picture ``[n, 4]``."""
    low = cg.concat([window[:, :2], window[:, :2]], 1)
    high = cg.concat([window[:, 2:], window[:, 2:]], 1)
    return cg.minimum(cg.maximum(boxes, cg.expand_dims(low, 1)), cg.expand_dims(high, 1))


def has_sides(boxes: Node, least: float) -> Node:
    """Return a mask that is True for boxes with both sides of at least `least` pixels."""
    return cg.all(boxes[..., 2:] - boxes[..., :2] >= least, axis=-1)
