"""Fixed-point arithmetic on quantised values, bit for bit that of TFLite's reference kernels.

Source: tensorflow/lite/kernels (quantization_util.cc, common.h and the kernels' Prepare functions). Results depend on
their exact roundings; tests/formats/test_tflite_bytes.py compares each operator with those kernels bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext
from cgraph.formats.tflite.value import QuantisedFormat, TfliteValue
from cgraph.ir.graph import Node

MOST = 255
FAR = 2**30  # larger than any distance of a byte from 0
Bounds = tuple[int, int]


def parts_of(scale: Any) -> np.ndarray:
    """Return scales as int32 factors (fractions of 31 bits) and shifts: two rows."""
    scale = np.asarray(scale, "float64")
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise FormatError("a scale is 0 or infinite: quantise the network again with finite scales above 0")
    fraction, shift = np.frexp(scale)
    factor = np.floor(fraction * 2.0**31 + 0.5).astype("int64")
    shift = np.where(factor == 1 << 31, shift + 1, shift)
    factor = np.where(factor == 1 << 31, 1 << 30, factor)
    factor, shift = np.where(shift < -31, 0, factor), np.where(shift < -31, 0, shift)
    factor, shift = np.where(shift > 30, (1 << 31) - 1, factor), np.minimum(shift, 30)
    return np.stack([factor, shift]).astype("int32")


def scale_factor(x: Node, scale: Any, once: bool = False) -> Node:
    """Multiply int32 by one scale and round."""
    factor, shift = parts_of(scale)
    return cg.fixed_product(x, factor, shift, once)


def nearest(x: Any) -> np.ndarray:
    """Return the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0).astype(np.asarray(x).dtype)


def subtract_zero(x: TfliteValue, node: Node | None = None) -> Node:
    """Subtract the zero point from bytes, as int32."""
    return cg.astype(x.node if node is None else node, "int32") - np.int32(x.bytes.zero)


def as_bytes(x: Node, to: QuantisedFormat, bounds: Bounds = (0, MOST)) -> Node:
    """Add a zero point to int32 and clip to bytes within bounds."""
    return cg.astype(cg.clip(x + np.int32(to.zero), *bounds), "uint8")


def bytes_of(x: Node, to: QuantisedFormat) -> Node:
    """Round floats in units of the scale to bytes, halves away from zero."""
    return cg.astype(cg.clip(halves_away(x) + np.float32(to.zero), 0.0, float(MOST)), "uint8")


def halves_away(x: Node) -> Node:
    """Round floats to the nearest integers, halves away from zero."""
    whole = cg.trunc(x)
    return whole + cg.where(cg.greater_equal(cg.abs(x - whole), 0.5), cg.sign(x), cg.zeros_like(x))


def floats_for(x: TfliteValue, node: Node) -> Node:
    """Dequantise bytes."""
    return cg.astype(subtract_zero(x, node), "float32") * x.bytes.scale


def byte_of(x: float, to: QuantisedFormat) -> int:
    """Quantise one float, without bounds."""
    return to.zero + int(np.clip(nearest(np.float32(x) / to.scale), -FAR, FAR))


LIMITS: dict[int, tuple[float, float]] = {
    0: (-np.inf, np.inf), 1: (0.0, np.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)
}  # fmt: skip


def bounds_of(c: TfliteContext, activation: int | None = None) -> Bounds:
    """Return the bounds of an activation as bytes; by default, of the operator's own."""
    number = c.option("activation") if activation is None else activation
    if number not in LIMITS:
        raise FormatError(f"the activation {number} is not supported on quantised values")
    low, high = (byte_of(x, c.result) if np.isfinite(x) else None for x in LIMITS[number])
    return max(0, low) if low is not None else 0, min(MOST, high) if high is not None else MOST


def of_floats(c: TfliteContext, function: Callable[[np.ndarray], np.ndarray]) -> TfliteValue:
    """Apply a function of floats by a table of 256 bytes, computed as in TFLite: rounded to float32 at each step.

    The function takes float64, so that its own rounding is the only one.
    """
    x = c[0]
    with np.errstate(over="ignore"):
        numbers = x.bytes.scale * (np.arange(256) - x.bytes.zero).astype("float32")
        products = np.float32(function(numbers.astype("float64"))) * (np.float32(1) / c.result.scale)
    table = np.clip(np.clip(nearest(products), -FAR, FAR) + c.result.zero, 0, MOST).astype("uint8")
    return TfliteValue(cg.take(table, cg.astype(x.node, "int32")), first=x.first)
