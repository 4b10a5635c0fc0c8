"""Importers of image resizing."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, images, operator
from cgraph.formats.tflite.operators.conv import image
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node

UNIT = 1 << 10
PLACE = 128  # bytes of memory of the tables of one row or column


def coordinates(c: TfliteContext) -> str:
    """Return the coordinate transformation."""
    corners, half = c.option("align_corners"), c.option("half_pixel")
    if corners and half:
        raise FormatError("align_corners and half_pixel_centers exclude each other: set one")
    return "align_corners" if corners else "half_pixel" if half else "asymmetric"


def sizes_of(c: TfliteContext) -> list[int]:
    """Return and charge the rows and columns of the result."""
    sizes = c.ints(1)
    if len(sizes) != 2 or min(sizes) < 1:
        raise FormatError(f"images of {sizes} pixels")
    c.spend(nbytes=PLACE * sum(sizes), work=sum(sizes))
    return sizes


@operator("RESIZE_BILINEAR", on_bytes=True)
def bilinear(c: TfliteContext) -> TfliteValue:
    if c.is_quantised:
        return images(bilinear_of_bytes(c))
    return images(cg.resize(image(c, 0), sizes_of(c), mode="linear", coordinates=coordinates(c)))


@operator("RESIZE_NEAREST_NEIGHBOR", on_bytes=False)
def nearest(c: TfliteContext) -> TfliteValue:
    """Import RESIZE_NEAREST_NEIGHBOR: the element at ``floor(i * scale)``, or the nearest one (the later of two)."""
    where = coordinates(c)
    rounding = "floor" if where == "asymmetric" else "round_prefer_ceil"
    return images(cg.resize(image(c, 0), sizes_of(c), mode="nearest", coordinates=where, rounding=rounding))


def bilinear_of_bytes(c: TfliteContext) -> Node:
    """Resize bytes with 10-bit weights per axis; halves round away from zero."""
    if not c.result.equals(c[0].bytes) or not c.result.is_signed:
        raise FormatError("a resize of uint8, or one whose result has another scale, is not supported")
    x, shape, sign = image(c, 0), sizes_of(c), np.int32(c[0].bytes.sign)
    total, where = cg.astype(x, "int32") - sign, coordinates(c)
    for axis, (size, count) in enumerate(zip(x.shape[2:], shape)):
        low, high, weight = neighbours(size, count, where)
        weight = weight.reshape((-1, 1) if axis == 0 else (-1,))
        before, behind = (cg.take(total, places, axis=2 + axis) for places in (low, high))
        total = before * (np.int32(UNIT) - weight) + behind * weight
    half = np.int32(UNIT * UNIT // 2)
    magnitude = cg.right_shift(cg.abs(total) + half, np.int32(20))
    return cg.astype(cg.where(cg.less(total, 0), -magnitude, magnitude) + sign, "uint8")


def neighbours(size: int, count: int, where: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each result along an axis, both neighbours and the weight of the second in units of 1 / UNIT."""
    above, below = (size - 1, count - 1) if where == "align_corners" and count > 1 else (size, count)
    scale = (UNIT * above + below // 2) // below
    at = np.arange(count, dtype="int64") * scale
    at = at + (scale // 2 - UNIT // 2) if where == "half_pixel" else at
    low = np.maximum(np.sign(at) * (np.abs(at) // UNIT), 0)
    high = np.minimum((at + UNIT - 1) // UNIT, size - 1).clip(0)
    return low.astype("int32"), high.astype("int32"), (at - UNIT * low).astype("int32")
