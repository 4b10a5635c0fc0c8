"""Floats with filters of bytes, "dynamic range": a run quantises its floats itself, adds up whole numbers, scales them.

Source: tensorflow/lite/kernels/internal/reference/portable_tensor_utils.cc and the hybrid forms of conv.cc,
depthwise_conv.cc and fully_connected.cc.
"""

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.tflite.fixed import halves_away
from cgraph.ir.graph import Node

LOW, HIGH = -128.0, 127.0


def symmetric(x: Node, axes: tuple[int, ...]) -> tuple[Node, Node]:
    """Floats as whole numbers from -127 to 127, and what those are multiples of: one for each rest of the axes."""
    most = cg.max(cg.abs(x), axis=axes, keepdims=True)
    none = cg.equal(most, 0.0)
    numbers = halves_away(x * cg.where(none, np.float32(0), np.float32(HIGH) / most))
    return whole(numbers, -HIGH), cg.where(none, np.float32(1), most / np.float32(HIGH))


def asymmetric(x: Node, axes: tuple[int, ...]) -> tuple[Node, Node]:
    """Floats as whole numbers around a zero point, which is subtracted already, and what those are multiples of.

    The range is widened to 0; its end that rounds better decides the zero point.
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
    return whole(numbers, LOW) - cg.astype(zero, "int32"), scale


def whole(numbers: Node, low: float) -> Node:
    return cg.astype(cg.clip(numbers, low, HIGH), "int32")
