"""Dynamic-range quantisation: int8 filters with float inputs, which a run quantises before an integer product.

Source: tensorflow/lite/kernels/internal/reference/portable_tensor_utils.cc and the hybrid forms of conv.cc,
depthwise_conv.cc and fully_connected.cc.
"""

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.tflite.fixed import halves_away
from cgraph.formats.tflite.value import SIGN
from cgraph.ir.graph import Node
from cgraph.record import Record

LOW, HIGH = -128.0, 127.0


class Dynamic(Record, eq=False):
    """Quantised floats.

    Fields
        numbers: uint8
        zero: int32 zero points, one for each row or image
        scale: float32 scales, one for each row or image
    """

    numbers: Node
    zero: Node
    scale: Node


def symmetric(x: Node, axes: tuple[int, ...]) -> Dynamic:
    """Quantise floats symmetrically: the scale is the largest magnitude along axes divided by 127."""
    most = cg.max(cg.abs(x), axis=axes, keepdims=True)
    none = cg.equal(most, 0.0)
    numbers = halves_away(x * cg.where(none, np.float32(0), np.float32(HIGH) / most))
    zero = cg.full(most.shape, SIGN, "int32")
    return Dynamic(as_bytes(numbers, -HIGH), zero, cg.where(none, np.float32(1), most / np.float32(HIGH)))


def asymmetric(x: Node, axes: tuple[int, ...]) -> Dynamic:
    """Quantise floats asymmetrically: the scale is the range along axes, with 0 in it, divided by 255.

    The end of the range with the smaller rounding error determines the zero point.
    """
    low = cg.astype(cg.minimum(cg.min(x, axis=axes, keepdims=True), np.float32(0)), "float64")
    high = cg.astype(cg.maximum(cg.max(x, axis=axes, keepdims=True), np.float32(0)), "float64")
    none = cg.equal(low, high)
    scale = cg.where(none, 1.0, (high - low) / (HIGH - LOW))
    below, above = low / scale, high / scale
    zero = cg.where(cg.less(-LOW + cg.abs(below), HIGH + cg.abs(above)), LOW - below, HIGH - above)
    zero = cg.where(none, 0.0, cg.clip(halves_away(zero), LOW, HIGH))
    scale = cg.astype(scale, "float32")
    numbers = halves_away(cg.astype(zero, "float32") + x * (np.float32(1) / scale))
    return Dynamic(as_bytes(numbers, LOW), cg.astype(zero, "int32") + np.int32(SIGN), scale)


def as_bytes(numbers: Node, low: float) -> Node:
    return cg.astype(cg.clip(numbers, low, HIGH) + np.float32(SIGN), "uint8")


def pad_image(x: Dynamic, pad: tuple[int, ...]) -> Node:
    """Pad images of bytes with their zero points."""
    top, left, bottom, right = pad
    if not any(pad):
        return x.numbers
    widths = [(top, bottom), (left, right)]
    inside = np.pad(np.ones((1, 1, *x.numbers.shape[2:]), "bool"), [(0, 0), (0, 0), *widths])
    return cg.where(inside, cg.pad(x.numbers, [(0, 0), (0, 0), *widths]), cg.astype(x.zero, "uint8"))
