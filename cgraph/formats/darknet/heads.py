"""Layers at a network's end, whose results are outputs: yolo, region, detection."""

from cgraph.formats.darknet.config import Section
from cgraph.formats.darknet.layers import Net, image, layer, op, rows_of
from cgraph.ir.graph import Node


def boxes(s: Section, x: Node, count: int, numbers: int) -> Node:
    """An image of `count` boxes at each place as ``[n, count, numbers, h, w]``."""
    n, c, h, w = image(s, x).shape
    if c != count * numbers:
        raise s.error(f"{c} channels are not {count} boxes of {numbers} numbers")
    return op("reshape", x, (n, count, numbers, h, w))


@layer("yolo")
def yolo(net: Net, s: Section, x: Node) -> Node:
    """Place, objectness and classes between 0 and 1, sizes as they are. Source: Redmon 2018, arXiv:1804.02767."""
    net.outputs.append(s.index)
    count = len(s.ints("mask")) if s.text("mask") else s.size("num", 1)
    parts = boxes(s, x, count, 5 + s.size("classes", 20))
    scale = s.number("scale_x_y", 1.0)
    place = op("sigmoid", parts[:, :, :2])
    place = place if scale == 1 else place * scale - 0.5 * (scale - 1)
    found = op("concat", [place, parts[:, :, 2:4], op("sigmoid", parts[:, :, 4:])], 2)
    return op("reshape", found, x.shape)


@layer("region")
def region(net: Net, s: Section, x: Node) -> Node:
    """Place and objectness between 0 and 1; classes by softmax, or between 0 and 1. A tree's scores stay as they are.

    Source: Redmon and Farhadi 2017, arXiv:1612.08242.
    """
    net.outputs.append(s.index)
    coords, classes = s.size("coords", 4), s.size("classes", 20)
    parts = boxes(s, x, s.size("num", 1), coords + 1 + classes)
    kinds = parts[:, :, coords + 1 :]
    if not s.text("tree"):
        kinds = op("softmax", kinds, 2) if s.whole("softmax", 0) else op("sigmoid", kinds)
    certain = op("sigmoid", parts[:, :, coords : coords + 1])
    pieces = [op("sigmoid", parts[:, :, :2]), parts[:, :, 2:coords], certain, kinds]
    return op("reshape", op("concat", pieces, 2), x.shape)


@layer("detection")
def detection(net: Net, s: Section, x: Node) -> Node:
    """``[n, side * side * ((1 + coords) * num + classes)]`` as it is; softmax of the classes on demand."""
    net.outputs.append(s.index)
    places, classes = s.size("side", 7) ** 2, s.size("classes", 1)
    x = rows_of(x)
    n = x.shape[0]
    expected = places * ((1 + s.size("coords", 1)) * s.size("num", 1) + classes)
    if x.shape[1] != expected:
        raise s.error(f"{x.shape[1]} numbers are not the {expected} of {places} places")
    if not s.whole("softmax", 0):
        return x
    kinds = op("softmax", op("reshape", x[:, : places * classes], (n, places, classes)), -1)
    return op("concat", [op("reshape", kinds, (n, places * classes)), x[:, places * classes :]], 1)
