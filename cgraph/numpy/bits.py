"""Bitwise functions: parts of floats, neighbouring floats, integers bit by bit."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.elementwise import float_of, floats
from cgraph.numpy.table import of
from cgraph.ops import whole
from cgraph.ops.bitcast import bitcast
from cgraph.ops.compare import equal, isfinite, isnan, where
from cgraph.ops.elementary import copysign
from cgraph.ops.family import unify
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import pad
from cgraph.ops.shape import axis_of, moveaxis, ravel, reshape, zeros_like

__all__ = [
    "bitwise_count", "frexp", "gcd", "lcm", "ldexp", "nextafter", "packbits", "signbit", "spacing", "unpackbits",
]  # fmt: skip

bitwise_count, gcd = of(np.bitwise_count)(whole.bitwise_count), of(np.gcd)(whole.gcd)


def whole_like(dtype: np.dtype) -> np.dtype:
    """Return the signed integer dtype of the same size."""
    return np.dtype(f"i{dtype.itemsize}")


@of(np.signbit)
def signbit(x: Any) -> Node:
    """Return True where the sign bit is set, as in -0.0 and in a NaN with a sign."""
    return copysign(1.0, float_of(x)) < 0


@of(np.nextafter)
def nextafter(x1: Any, x2: Any) -> Node:
    """Return the next number of the dtype after x1 on the way to x2."""
    x, y = floats(x1, x2)
    bits = bitcast(x, whole_like(x.dtype))
    step = where(equal(x < y, x > 0), 1, -1).astype(bits.dtype)
    moved = where(equal(x, 0), copysign(np.finfo(x.dtype).smallest_subnormal, y), bitcast(bits + step, x.dtype))
    return where(isnan(x) | isnan(y), x + y, where(equal(x, y), y, moved))


@of(np.spacing)
def spacing(x: Any) -> Node:
    """Return the distance to the next larger magnitude, with the sign of x; NaN where x is not finite."""
    x = float_of(x)
    bits = bitcast(x, whole_like(x.dtype))
    gap = bitcast(bits + np.ones((), bits.dtype), x.dtype) - x
    gap = where(equal(x, 0), np.finfo(x.dtype).smallest_subnormal, gap)
    return where(isfinite(x), gap, np.asarray(np.nan, x.dtype))


def power_of_two(exponent: Node, dtype: np.dtype) -> Node:
    """Return 2 to an integer power, exactly: the exponent's bits. The power must be that of a normal number."""
    info, kind = np.finfo(dtype), whole_like(dtype)
    biased = exponent.astype(kind) + np.asarray(1 - info.minexp, kind)
    return bitcast(biased << np.asarray(info.nmant, kind), dtype)


@of(np.ldexp)
def ldexp(x1: Any, x2: Any) -> Node:
    """Return x1 times 2 to the integer power x2, by three products; only the last one may round."""
    exponent = as_node(x2)
    if exponent.dtype.kind not in "iu":
        raise DTypeError(f"the exponent must be an integer, not {exponent.dtype}; use x2.astype('int32')")
    x = float_of(x1)
    info = np.finfo(x.dtype)
    low, high = info.minexp, info.maxexp - 1
    limits = np.iinfo(exponent.dtype)
    left = exponent.clip(max(3 * low, limits.min), min(3 * high, limits.max)).astype("int32")
    for _ in range(3):
        part = where(left < low, low + info.nmant + 1, left.clip(None, high))
        x, left = x * power_of_two(part, x.dtype), left - part
    return x


@of(np.frexp)
def frexp(x: Any) -> tuple[Node, Node]:
    """Return the fraction in [0.5, 1) with the sign of x, and the power of two (int32): ``x = fraction * 2 **
    power``."""
    x = float_of(x)
    info, kind = np.finfo(x.dtype), whole_like(x.dtype)
    tiny = abs(x) < info.smallest_normal
    scaled = where(tiny, x * 2.0 ** (info.nmant + 2), x)
    mask = np.asarray(2**info.iexp - 1, kind)
    exponent = (bitcast(scaled, kind) >> np.asarray(info.nmant, kind)) & mask
    exponent = exponent - np.asarray(-info.minexp, kind) - where(tiny, info.nmant + 2, 0).astype(kind)
    odd = equal(x, 0) | ~isfinite(x)
    exponent = where(odd, zeros_like(exponent), exponent).astype("int32")
    return where(odd, x, ldexp(x, -exponent)), exponent


# -- integers ----------------------------------------------------------------------------------------------------


@of(np.lcm)
def lcm(x1: Any, x2: Any) -> Node:
    """Return the least common multiple of integers; 0 if one is 0."""
    x, y = unify(x1, x2)
    divisor, kind = gcd(x, y), np.dtype(f"u{x.dtype.itemsize}")
    return (abs(x).astype(kind) // divisor.astype(kind) * abs(y).astype(kind)).astype(x.dtype)


@of(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Node:
    """Return eight elements as the bits of a byte, set where they are not 0. Zeros fill up the last byte."""
    a = as_node(a)
    if a.dtype.kind not in "biu":
        raise DTypeError(f"bits are packed from bool and integers, not from {a.dtype}; use a != 0")
    a, axis = (ravel(a), 0) if axis is None else (a, axis_of(axis, a.ndim))
    bits = moveaxis(a.astype(bool), axis, -1)
    bits = pad(bits, [(0, 0)] * (a.ndim - 1) + [(0, -bits.shape[-1] % 8)])
    eights = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8)).astype("uint8")
    return moveaxis((eights << places(bitorder)).sum(-1, dtype="uint8"), -1, axis)


@of(np.unpackbits)
def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Node:
    """Return the bits of bytes, eight elements for each byte.

    Parameters
        count: number of bits to return, padded with zeros; a negative one omits bits at the end; all by default
    """
    a = as_node(a)
    if a.dtype != np.uint8:
        raise DTypeError(f"bits are unpacked from uint8, not from {a.dtype}; use a.astype('uint8')")
    a, axis = (ravel(a), 0) if axis is None else (a, axis_of(axis, a.ndim))
    bits = (moveaxis(a, axis, -1)[..., None] >> places(bitorder)) & np.uint8(1)
    bits = reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        missing = max(count - bits.shape[-1], 0)
        bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])[..., :count]
    return moveaxis(bits, -1, axis)


def places(bitorder: str) -> np.ndarray:
    """Return the bit positions of a byte, in the order of elements."""
    if bitorder not in ("big", "little"):
        raise ShapeError(f"bitorder is {bitorder!r}. Use 'big' or 'little'")
    return np.arange(8, dtype="uint8")[:: -1 if bitorder == "big" else 1]
