"""Output layers of Darknet networks (yolo, region, detection) and the decoding of their boxes.

Boxes are ``[n, k, 4]``, corners ``(x0, y0, x1, y1)`` relative to the image size; scores are ``[n, k, classes]``.
Source: get_yolo_box, get_region_box and get_detection_detections of github.com/AlexeyAB/darknet.
"""

from functools import partial

import numpy as np

from cgraph.formats.darknet.config import Section
from cgraph.formats.darknet.layers import Net, image, layer, op, rows_of
from cgraph.ir.graph import Node

CELL = 64  # bytes of memory of one cell while its column and row are computed


def parts_of(s: Section, x: Node, count: int, numbers: int) -> Node:
    """Return an image of `count` boxes per cell as ``[n, count, numbers, h, w]``."""
    n, c, h, w = image(s, x).shape
    if c != count * numbers:
        raise s.error(
            f"{c} channels are not {count} boxes of {numbers} numbers: set filters={count * numbers} in the layer "
            "before"
        )
    return op("reshape", x, (n, count, numbers, h, w))


@layer("yolo")
def yolo(net: Net, s: Section, x: Node) -> Node:
    """Apply the logistic function to position, objectness and classes, not to sizes; with `new_coords` to none.

    Source: Redmon 2018, arXiv:1804.02767; Wang, Bochkovskiy and Liao 2020, arXiv:2011.08036.
    """
    net.outputs.append(s.index)
    count = len(s.ints("mask")) if s.text("mask") else s.size("num", 1)
    parts = parts_of(s, x, count, 5 + s.size("classes", 20))
    scale, new = s.number("scale_x_y", 1.0), bool(s.integer("new_coords", 0))
    place, size, rest = parts[:, :, :2], parts[:, :, 2:4], parts[:, :, 4:]
    place, rest = (place, rest) if new else (op("sigmoid", place), op("sigmoid", rest))
    place = place if scale == 1 else place * scale - 0.5 * (scale - 1)
    net.boxes.append(partial(yolo_boxes, net, s, place, size, rest, count, new))
    return op("reshape", op("concat", [place, size, rest], 2), x.shape)


@layer("region")
def region(net: Net, s: Section, x: Node) -> Node:
    """Apply the logistic function to position and objectness, softmax or it to classes; tree scores stay unchanged.

    Source: Redmon and Farhadi 2017, arXiv:1612.08242.
    """
    net.outputs.append(s.index)
    coords, classes, count = s.size("coords", 4), s.size("classes", 20), s.size("num", 1)
    parts = parts_of(s, x, count, coords + 1 + classes)
    kinds = parts[:, :, coords + 1 :]
    if not s.text("tree"):
        kinds = op("softmax", kinds, 2) if s.integer("softmax", 0) else op("sigmoid", kinds)
    certain = op("sigmoid", parts[:, :, coords : coords + 1])
    place = op("sigmoid", parts[:, :, :2])
    net.boxes.append(
        partial(region_boxes, net, s, place, parts[:, :, 2:coords], op("concat", [certain, kinds], 2), count)
    )
    return op("reshape", op("concat", [place, parts[:, :, 2:coords], certain, kinds], 2), x.shape)


@layer("detection")
def detection(net: Net, s: Section, x: Node) -> Node:
    """Return ``[n, side * side * ((1 + coords) * num + classes)]`` unchanged, or with softmax of the classes."""
    net.outputs.append(s.index)
    places, classes = s.size("side", 7) ** 2, s.size("classes", 1)
    x = rows_of(x)
    n = x.shape[0]
    expected = places * ((1 + s.size("coords", 1)) * s.size("num", 1) + classes)
    if x.shape[1] != expected:
        raise s.error(f"{x.shape[1]} numbers are not the {expected} of {places} places")
    if s.integer("softmax", 0):
        kinds = op("softmax", op("reshape", x[:, : places * classes], (n, places, classes)), -1)
        x = op("concat", [op("reshape", kinds, (n, places * classes)), x[:, places * classes :]], 1)
    net.boxes.append(partial(detection_boxes, net, s, x))
    return x


# -- boxes ------------------------------------------------------------------------------------------------------------


def yolo_boxes(net: Net, s: Section, place: Node, size: Node, rest: Node, count: int, new: bool) -> tuple[Node, Node]:
    """Decode boxes; sizes are relative to anchors in pixels of the network's image."""
    anchors = anchors_of(s)
    mask = s.ints("mask") if s.text("mask") else range(count)
    if not all(0 <= i < len(anchors) for i in mask):
        raise s.error(f"mask={s.text('mask'):.40} names anchors outside 0 to {len(anchors) - 1}")
    base = anchors[list(mask)] / np.array(net.size[::-1], "f4")
    return boxes_of(net, place, 4.0 * op("square", size) if new else op("exp", size), base, rest)


def region_boxes(net: Net, s: Section, place: Node, size: Node, rest: Node, count: int) -> tuple[Node, Node]:
    """Decode boxes; sizes are relative to anchors in cells of the layer."""
    anchors = anchors_of(s)
    if s.text("tree") or size.shape[2] != 2 or len(anchors) < count:
        raise s.error(f"boxes need no tree, 4 coords and {count} anchors")
    base = anchors[:count] / np.array(place.shape[:2:-1], "f4")
    return boxes_of(net, place, op("exp", size), base, rest)


def detection_boxes(net: Net, s: Section, x: Node) -> tuple[Node, Node]:
    """Decode boxes from classes per cell, then a score per box, then four numbers per box."""
    n, side, count, classes = x.shape[0], s.size("side", 7), s.size("num", 1), s.size("classes", 1)
    if s.size("coords", 1) != 4:
        raise s.error("boxes need 4 coords")
    ends = side * side * classes, side * side * (classes + count)
    kinds = op("reshape", x[:, : ends[0]], (n, side * side, 1, classes))
    certain = op("reshape", x[:, ends[0] : ends[1]], (n, side * side, count, 1))
    numbers = op("reshape", x[:, ends[1] :], (n, side, side, count, 4))
    size = numbers[..., 2:]
    centre = (numbers[..., :2] + np.expand_dims(grid(net, side, side), 2)) / float(side)
    boxes = corners(centre, op("square", size) if s.integer("sqrt", 0) else size)
    k = side * side * count
    return op("reshape", boxes, (n, k, 4)), op("reshape", certain * kinds, (n, k, classes))


def anchors_of(s: Section) -> np.ndarray:
    """Return the widths and heights ``[count, 2]``."""
    sizes = s.numbers("anchors")
    if len(sizes) % 2 or not np.isfinite(sizes).all():
        raise s.error(f"anchors={s.text('anchors'):.40} must be pairs of numbers")
    return np.array(sizes, "f4").reshape(-1, 2)


def boxes_of(net: Net, place: Node, size: Node, base: np.ndarray, rest: Node) -> tuple[Node, Node]:
    """Return boxes and scores from ``[n, count, ..., h, w]``: positions in a cell, sizes in units of `base`, scores."""
    n, count, _, h, w = place.shape
    place, size, rest = (op("transpose", v, (0, 3, 4, 1, 2)) for v in (place, size, rest))  # [n, h, w, count, ...]
    centre = (place + np.expand_dims(grid(net, h, w), 2)) / np.array([w, h], "f4")
    boxes, k = corners(centre, size * base), h * w * count
    scores = rest[..., :1] * rest[..., 1:]
    return op("reshape", boxes, (n, k, 4)), op("reshape", scores, (n, k, scores.shape[-1]))


def grid(net: Net, h: int, w: int) -> np.ndarray:
    """Return the column and row of each cell ``[h, w, 2]``."""
    net.allowance.spend(f"the places of {h} x {w} cells", nbytes=CELL * h * w)
    return np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1).astype("f4")


def corners(centre: Node, size: Node) -> Node:
    half = 0.5 * size
    return op("concat", [centre - half, centre + half], -1)
