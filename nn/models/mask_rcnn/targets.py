"""Training targets: the object of each anchor or box, random samples of boxes, and true masks.

Lists have a fixed length; unused entries have weight 0.
"""

import numpy as np

import cgraph as cg
from cgraph import Node


def match_boxes(overlaps: Node, there: Node, low: float, high: float, best_of_each: bool) -> tuple[Node, Node, Node]:
    """Return for each box the object that it overlaps most ``[n, m]``, and whether it is positive or negative.

    Parameters
        overlaps: intersection over union of each box with each object ``[n, m, objects]``
        there: which objects exist ``[n, objects]``
        low, high: a box is negative below `low` and positive from `high` on
        best_of_each: the boxes with the largest overlap with an object are positive too, including ties
    """
    overlaps = cg.where(cg.expand_dims(there, 1), overlaps, -1.0)
    best, whose = cg.max(overlaps, 2), cg.argmax(overlaps, 2)
    positive, negative = best >= high, best < low
    if best_of_each:
        top = cg.max(overlaps, 1, keepdims=True)
        positive = positive | cg.any((overlaps == top) & (top > 0), 2)
    return whose, positive, negative & ~positive


def sample_boxes(positive: Node, negative: Node, key: Node, size: int, most: int) -> tuple[Node, Node, Node]:
    """Return a random sample of indices ``[n, size]`` without repetition: at most `most` positives, then negatives.

    Parameters
        positive, negative: ``[n, m]``
        key: a random key; equal keys give equal samples
    Returns
        indices, which of them are positive, and which are valid ``[n, size]``
    """
    u = cg.random_uniform(key, positive.shape)
    most, size = (min(count, positive.shape[1]) for count in (most, size))
    drawn, places = cg.top_k(cg.where(positive, u, -1.0), most, 1)
    first = cg.put_along_axis(cg.zeros(u.shape), places, cg.astype(drawn >= 0, "float32"), 1) > 0
    drawn, places = cg.top_k(cg.where(first, 2.0 + u, cg.where(negative, u, -1.0)), size, 1)
    return places, drawn >= 2, drawn >= 0


def mask_targets(owner: Node, boxes: Node, whose: Node, cells: int, grid: tuple[str, int]) -> Node:
    """Return the object's share of each cell of a grid over each box ``[n, k, cells, cells]``, from 0 to 1.

    The mean of bilinear samples of the object's mask at the positions of `cg.roi_align`, without storing the mask.

    Parameters
        owner: number of the object of each pixel, from 1 on ``[n, h, w]``
        boxes: ``[n, k, 4]``
        whose: index of the object of each box, from 0 on ``[n, k]``
        grid: as in Config
    """
    (n, h, w), k, (kind, samples) = owner.shape, boxes.shape[1], grid
    count = cells * samples
    low, size = boxes[..., :2], boxes[..., 2:] - boxes[..., :2]
    steps = (np.arange(count) / (count - 1) if kind == "corners" else (np.arange(count) + 0.5) / count).astype(
        "float32"
    )
    size = size if kind == "corners" else cg.maximum(size, 1.0)
    down, across = (pixels(low[..., i, None] + size[..., i, None] * steps, m) for i, m in ((1, h), (0, w)))
    rows, number = cg.reshape(owner, (n, h * w)), cg.reshape(cg.astype(whose, owner.dtype) + 1, (n, k, 1, 1))
    total: Node | float = 0.0
    for row, share in down:
        for column, other in across:
            place = cg.expand_dims(row, 3) * w + cg.expand_dims(column, 2)
            owners = cg.reshape(cg.take_along_axis(rows, cg.reshape(place, (n, -1)), 1), (n, k, count, count))
            weight = cg.expand_dims(share, 3) * cg.expand_dims(other, 2)
            total = total + cg.where(owners == number, weight, 0.0)
    return cg.mean(cg.reshape(total, (n, k, cells, samples, cells, samples)), (3, 5))


def pixels(at: Node, count: int) -> list[tuple[Node, Node]]:
    """Return the two pixels around each coordinate along an axis, with weights that are 0 outside the image."""
    inside = cg.astype((at >= -1.0) & (at <= float(count)), "float32")
    at = cg.clip(at, 0.0, count - 1.0)
    low = cg.floor(at)
    first = cg.astype(low, "int64")
    return [(first, (1.0 - at + low) * inside), (cg.minimum(first + 1, count - 1), (at - low) * inside)]
