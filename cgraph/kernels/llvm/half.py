"""Half precision in kernels: stored in 16 bits, computed in float32.

The codes ``f2`` (float16) and ``V2`` (bfloat16) exist only in memory, as ``b1`` is a byte there: a load widens, a store
rounds. The bits are the same on every target, by one instruction where it exists and in integer arithmetic elsewhere.
"""

from typing import Any

from llvmlite import ir

Builder = Any  # of `cgraph.kernels.llvm.build`, which imports this file
Val = Any  # of `cgraph.kernels.llvm.values`, which imports it, too
HALVES = ("f2", "V2")
SIGN, INFINITE = 0x80000000, 0x7F800000  # of a float32
EXACT = frozenset(("b1", "i1", "u1", "i2", "u2"))  # largest exponents of a float32


def widen(k: Builder, raw: Val, dtype: str) -> Val:
    """Return float32 of 16 bits ``u2``."""
    if dtype == "V2":
        return k.bits(k.cast(raw, "u4") << 16, "f4")
    if k.target.has_half:
        half = k.b.bitcast(raw.v, half_type(raw.lanes))
        return k.wrap(k.b.fpext(half, float_type(raw.lanes)), "f4", raw.lanes)
    wide = k.cast(raw, "u4")
    shifted = (wide & 0x7FFF) << 13
    magnitude = k.bits(k.bits(shifted, "f4") * 2.0**112, "u4")
    special = k.select((wide & 0x3FF) != 0, shifted | (INFINITE | 1 << 22), shifted | INFINITE)
    magnitude = k.select((wide & 0x7C00) == 0x7C00, special, magnitude)
    return k.bits(magnitude | ((wide & 0x8000) << 16), "f4")


def narrow(k: Builder, x: Val, dtype: str) -> Val:
    """Return 16 bits ``u2`` of float32, to the nearest, ties to even."""
    bits = k.bits(x, "u4")
    if dtype == "V2":
        nearest = bits + 0x7FFF + ((bits >> 16) & 1)
        return k.cast(k.select(k.is_nan(x), bits | (1 << 22), nearest) >> 16, "u2")
    if k.target.has_half:
        half = k.b.fptrunc(x.v, half_type(x.lanes))
        kind = ir.VectorType(ir.IntType(16), x.lanes) if x.lanes else ir.IntType(16)
        return k.wrap(k.b.bitcast(half, kind), "u2", x.lanes)
    sign, size = bits & SIGN, bits & (SIGN - 1)
    # adding 1/2 leaves the bits of a subnormal number, rounded, at the end of the sum
    small = k.bits(k.bits(size, "f4") + 0.5, "u4") - (126 << 23)
    normal = (size - (112 << 23) + 0xFFF + ((size >> 13) & 1)) >> 13
    magnitude = k.select(size < (113 << 23), small, normal)
    magnitude = k.select(size >= (143 << 23), 0x7C00, magnitude)
    nan = ((size >> 13) & 0x3FF) | 0x7E00
    return k.cast(k.select(size > INFINITE, nan, magnitude) | (sign >> 16), "u2")


def round_to_half(k: Builder, x: Val, dtype: str) -> Val:
    """Return a float32 that half precision can represent, rounded once."""
    if x.dtype != "f4":
        x = k.cast(x, "f4") if x.dtype in EXACT else round_to_odd(k, k.cast(x, "f8"))
    return widen(k, narrow(k, x, dtype), dtype)


def round_to_odd(k: Builder, x: Val) -> Val:
    """Return float64 as float32; see `cgraph.ir.half.round_to_odd`."""
    near = k.cast(x, "f4")
    back, bits = k.cast(near, "f8"), k.bits(near, "u4")
    beyond = k.cast(k.intrinsic("fabs", back) > k.intrinsic("fabs", x), "u4")
    is_inexact = (back < x) | (back > x)
    return k.bits(k.select(is_inexact, (bits - beyond) | 1, bits), "f4")


def half_type(lanes: int) -> ir.Type:
    return ir.VectorType(ir.HalfType(), lanes) if lanes else ir.HalfType()


def float_type(lanes: int) -> ir.Type:
    return ir.VectorType(ir.FloatType(), lanes) if lanes else ir.FloatType()
