"""Conversions to numbers that no array has: integers of 2 and 4 bits, floats of 4 bits, powers of 2."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.tensors import BITS, FLOAT4, POWERS
from cgraph.ir.graph import Node

UNSIGNED = (21, 25)
"""ONNX's numbers of UINT4 and UINT2."""
LARGEST4 = 6.0  # of FLOAT4E2M1
FRACTION, LAST_EXPONENT = 23, 254  # bits of a float32's fraction; the exponent of its largest numbers


def kind_of(c: Context, i: int) -> int:
    """Return ONNX's dtype number of operand i if no array has that dtype, else 0."""
    return c.few.get(c.read[i], 0) if i < len(c.read) else 0


def few_bits(c: Context, x: Node, number: int) -> Node:
    """Convert to ONNX's dtype of this number. Bits of integers beyond those that it has are dropped."""
    if number == FLOAT4:
        return four_bits(x)
    if number == POWERS:
        return power_of_two(cg.astype(x, "float32"), c.attribute("round_mode", "up"), c.attribute("saturate", 1))
    dropped = 32 - BITS[number]
    kind = "uint32" if number in UNSIGNED else "int32"
    wide = cg.astype(cg.astype(x, "int32"), kind)
    return cg.astype(cg.right_shift(cg.left_shift(wide, dropped), dropped), kind.removesuffix("32") + "8")


def quantized(x: Node, scale: Node, zero: Node | int, number: int) -> Node:
    """Return ``x / scale + zero`` rounded and clipped to the range of the dtype of this number."""
    if number == FLOAT4:
        return four_bits(x / scale + zero)
    count = 1 << BITS[number]
    low = 0 if number in UNSIGNED else -count // 2
    dtype = np.dtype("uint8" if number in UNSIGNED else "int8")
    return cg.clip(cg.quantize(x, scale, zero, dtype), dtype.type(low), dtype.type(low + count - 1))


def four_bits(x: Node) -> Node:
    """Round to FLOAT4E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; ties to even, larger ones to 6, NaN to 0."""
    x = cg.astype(x, "float32")
    size = cg.minimum(cg.where(cg.isnan(x), np.float32(0), cg.abs(x)), np.float32(LARGEST4))
    step = cg.where(cg.less(size, np.float32(2)), np.float32(0.5), cg.where(cg.less(size, np.float32(4)), 1, 2))
    step = cg.astype(step, "float32")
    return cg.astype(cg.copysign(cg.rint(size / step) * step, x), "float8_e4m3fn")


def power_of_two(x: Node, mode: str, saturates: bool) -> Node:
    """Round to FLOAT8E8M0, the powers of 2 from -127 to 127, without regard of the sign.

    Parameters
        mode: ``up``, ``down`` or ``nearest``, whose ties are rounded up
        saturates: larger numbers become the largest, else NaN
    """
    bits = cg.bitwise_and(cg.bitcast(x, "uint32"), np.uint32(0x7FFFFFFF))
    exponent, fraction = cg.right_shift(bits, FRACTION), cg.bitwise_and(bits, np.uint32((1 << FRACTION) - 1))
    half = np.uint32(1 << FRACTION - 1)
    if mode == "nearest":
        is_above = cg.greater_equal(fraction, half)  # a subnormal number's exponent is -126, so half is 2**-127 itself
        is_above = cg.where(cg.equal(exponent, np.uint32(0)), cg.greater(fraction, half), is_above)
    elif mode in ("up", "down"):
        is_above = cg.logical_and(cg.greater(fraction, np.uint32(0)), np.bool_(mode == "up"))
    else:
        raise FormatError(f"round_mode {mode!r:.60} is unknown. Use up, down or nearest")
    exponent = exponent + cg.astype(is_above, "uint32")
    if saturates:
        exponent = cg.minimum(exponent, np.uint32(LAST_EXPONENT))
    power = cg.bitcast(cg.left_shift(exponent, FRACTION), "float32")
    power = cg.where(cg.equal(exponent, np.uint32(0)), np.float32(2.0**-127), power)
    is_number = cg.logical_and(cg.less_equal(exponent, np.uint32(LAST_EXPONENT)), cg.logical_not(cg.isnan(x)))
    return cg.astype(cg.where(is_number, power, np.float32(np.nan)), "bfloat16")
