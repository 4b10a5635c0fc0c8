"""Reference implementations of PTX instructions, as functions of arrays over threads.

Floats round to nearest; nothing is flushed to zero. ``fma`` rounds once: a kernel uses the CPU's own instruction.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.engine.cuda.simulator.text import Fault

Function = Callable[..., Any]


def divide(a, b):
    """Divide, truncating integers; a zero divisor gives all ones."""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, b.dtype.type(1), b)
    q = a // safe
    if a.dtype.kind == "i":
        q = q + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, ~a.dtype.type(0), q)


def remainder(a, b):
    safe = np.where(b == 0, b.dtype.type(1), b)
    return a - divide(a, safe) * safe


def shift_left(a, by):
    width = 8 * a.dtype.itemsize
    moved = a << np.minimum(by, width - 1).astype(a.dtype)
    return np.where(by >= width, a.dtype.type(0), moved)


def shift_right(a, by):
    """Shift right; fill with the sign of signed numbers, with zeros otherwise."""
    width = 8 * a.dtype.itemsize
    moved = a >> np.minimum(by, width - 1).astype(a.dtype)
    return moved if a.dtype.kind == "i" else np.where(by >= width, a.dtype.type(0), moved)


def high_product(a, b):
    """Return the upper half of the product of two integers."""
    if a.dtype.itemsize == 4:
        double = np.dtype(f"{a.dtype.kind}8")
        return (a.astype(double) * b.astype(double) >> double.type(32)).astype(a.dtype)
    low = np.uint64((1 << 32) - 1)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> np.uint64(32), y & low, y >> np.uint64(32)
    middle = x1 * y0 + (x0 * y0 >> np.uint64(32))
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> np.uint64(32)) + (other >> np.uint64(32))
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def wide_product(a, b):
    double = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    return a.astype(double) * b.astype(double)


def bit_field(a, at, count):
    """Return `count` bits from bit `at` on."""
    width = a.dtype.type(8 * a.dtype.itemsize)
    at, count = at.astype(a.dtype), count.astype(a.dtype)
    return (a << (width - at - count)) >> (width - count)


def leading_zeros(a):
    """Count the zero bits before the highest set bit."""
    count, left = np.zeros(np.shape(a), np.uint32), a.copy()
    for step in (32, 16, 8, 4, 2, 1):
        if step < 8 * a.dtype.itemsize:
            empty = left >> a.dtype.type(8 * a.dtype.itemsize - step) == 0
            count += np.where(empty, np.uint32(step), np.uint32(0))
            left = np.where(empty, left << a.dtype.type(step), left)
    return count + (left == 0)


def permute_bytes(a, b, selector):
    """Select bytes of two words by the digits of a selector."""
    if (selector & 0x8888).any():
        raise Fault("prmt that repeats signs is not simulated")
    pool = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    word = np.zeros(np.shape(pool), np.uint64)
    for i in range(4):
        digit = (selector >> np.uint32(4 * i) & np.uint32(7)).astype(np.uint64)
        word |= (pool >> digit * np.uint64(8) & np.uint64(255)) << np.uint64(8 * i)
    return word.astype(np.uint32)


def convert(x, to: np.dtype, how: str):
    """Convert as ``cvt``: floats to integers saturate, NaN gives 0."""
    x = ROUND[how](x) if how in ROUND and x.dtype.kind == "f" else x
    if x.dtype.kind != "f" or to.kind == "f":
        return x.astype(to)
    info = np.iinfo(to)
    top = float(info.max) + 1.0  # a power of two, in floats as well
    inside = (x >= float(info.min)) & (x < top)
    integers = np.where(inside, x, 0).astype(to)
    integers = np.where(x >= top, to.type(info.max), integers)
    return np.where(x < float(info.min), to.type(info.min), integers)


PRODUCT: dict[str, Function] = {"wide": wide_product, "hi": high_product, "lo": np.multiply, "rn": np.multiply}
SHIFT: dict[str, Function] = {"shl": shift_left, "shr": shift_right}
COMPARE: dict[str, Function] = {
    "eq": np.equal, "neu": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "ne": lambda a, b: (a != b) & (a == a) & (b == b),
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "ltu": lambda a, b: ~(a >= b), "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b), "geu": lambda a, b: ~(a < b),
    "nan": lambda a, b: (a != a) | (b != b),
    "num": lambda a, b: (a == a) & (b == b),
}  # fmt: skip
ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
CLASS: dict[str, Function] = {
    "infinite": np.isinf,
    "finite": np.isfinite,
    "notanumber": np.isnan,
    "number": lambda x: ~np.isnan(x),
}
UFUNCS = {
    "add": np.add, "sub": np.subtract, "neg": np.negative, "sqrt": np.sqrt, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "min": np.fmin, "max": np.fmax,
    "abs": np.absolute,
}  # fmt: skip
"""Instructions that are one ufunc."""
FUNCTIONS: dict[str, Function] = {
    "div": divide, "rem": remainder, "rcp": lambda x: x.dtype.type(1) / x, "copysign": lambda a, b: np.copysign(b, a),
    "clz": leading_zeros, "popc": np.bitwise_count,
}  # fmt: skip
"""Instructions that are a function of operands of their own type."""
