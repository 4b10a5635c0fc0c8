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
REDUCED = 0x7FFF0000  # a factor from which on its upper 15 bits are the largest number
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


def as_bytes(x: Node, to: QuantisedFormat, bounds: Bounds | None = None) -> Node:
    """Add a zero point to int32 and clip to the numbers of a format, within bounds."""
    return cg.astype(cg.clip(x + np.int32(to.zero), *(bounds or to.limits)), to.dtype)


def bytes_of(x: Node, to: QuantisedFormat) -> Node:
    """Round floats in units of the scale to the numbers of a format, halves away from zero."""
    low, high = to.limits
    return cg.astype(cg.clip(halves_away(x) + np.float32(to.zero), float(low), float(high)), to.dtype)


def as_words(x: Node, scale: Any, to: QuantisedFormat, bounds: Bounds) -> Node:
    """Scale int64 by factors of 15 bits, round halves up, and clip to int16 within bounds.

    Parameters
        scale: one, or one for each channel ``[k, 1, 1]``
    """
    factor, shift = parts_of(scale).astype("int64")
    factor = np.where(factor < REDUCED, (factor + (1 << 15)) >> 16, (1 << 15) - 1)
    places = 15 - shift
    if (places < 1).any():
        raise FormatError("a scale is too large: quantise the network again with scales that fit its results")
    total = cg.right_shift(x * factor + (np.int64(1) << (places - 1)), places)
    return cg.astype(cg.clip(total + np.int64(to.zero), *bounds), to.dtype)


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
    least, most = c.result.limits
    return max(least, low) if low is not None else least, min(most, high) if high is not None else most


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
