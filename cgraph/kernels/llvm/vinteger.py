"""Integer primitives with defined results where a processor would trap or LLVM leaves the result undefined."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val, nbytes_of
from cgraph.kernels.llvm.vfloat import any_lane


def absolute(k: Builder, x: Val) -> Val:
    """The magnitude; the most negative integer stays itself."""
    return k.select(x < 0, -x, x) if x.dtype[0] == "i" else x


def divide(k: Builder, x: Val, y: Val) -> Val:
    """Truncating quotient; 0 for a zero divisor; the most negative integer by -1 wraps."""
    quotient = x / safe_divisor(k, y)
    if y.dtype[0] == "i":
        quotient = k.select(y == -1, -x, quotient)
    return k.select(y == 0, k.const(0, x.dtype, x.lanes), quotient)


def remainder(k: Builder, x: Val, y: Val) -> Val:
    """Remainder of truncating division; 0 for a zero divisor."""
    return k.select(y == 0, k.const(0, x.dtype, x.lanes), x % safe_divisor(k, y))


def safe_divisor(k: Builder, y: Val) -> Val:
    """Return `y`, with 1 in place of the divisors a processor traps on."""
    bad = (y == 0) | (y == -1) if y.dtype[0] == "i" else y == 0
    return k.select(bad, k.const(1, y.dtype, y.lanes), y)


def shift_left(k: Builder, x: Val, y: Val) -> Val:
    """Return ``x << y``; 0 when `y` is negative or not below the number of bits."""
    good, by = safe_shift(k, y)
    return k.select(good, x << by, k.const(0, x.dtype, x.lanes))


def shift_right(k: Builder, x: Val, y: Val) -> Val:
    """Return ``x >> y``; when `y` is negative or not below the number of bits, only the sign is left."""
    good, by = safe_shift(k, y)
    bits = 8 * nbytes_of(x.dtype)
    rest = x >> (bits - 1) if x.dtype[0] == "i" else k.const(0, x.dtype, x.lanes)
    return k.select(good, x >> by, rest)


def safe_shift(k: Builder, y: Val) -> tuple[Val, Val]:
    """Return whether a shift is below the number of bits, and the shift with 0 in place of others."""
    good = y < 8 * nbytes_of(y.dtype)
    if y.dtype[0] == "i":
        good = good & (y >= 0)
    return good, k.select(good, y, k.const(0, y.dtype, y.lanes))


def power(k: Builder, x: Val, y: Val) -> Val:
    """Return ``x**y`` by repeated squaring, wrapping; 0 for a negative exponent, but 1 and -1 keep their powers."""
    one = k.const(1, x.dtype, x.lanes)
    result, base, left = k.slot(one), k.slot(x), k.slot(k.bits(absolute(k, y), f"u{y.dtype[1:]}"))
    with k.loop_while() as w:
        w.until(~any_lane(k, left.value != 0))
        odd = (left.value & 1) != 0
        result.value = k.select(odd, result.value * base.value, result.value)
        base.value = base.value * base.value
        left.value = left.value >> 1
    if x.dtype[0] == "u":
        return result.value
    unit = (x == 1) | (x == -1)
    return k.select((y < 0) & ~unit, k.const(0, x.dtype, x.lanes), result.value)


def common_divisor(k: Builder, x: Val, y: Val) -> Val:
    """Return the greatest common divisor by Euclid's algorithm; wraps where both are 0 or the most negative integer."""
    dtype = f"u{x.dtype[1:]}"
    greater, less = (k.slot(k.bits(absolute(k, v), dtype)) for v in (x, y))
    with k.loop_while() as w:
        w.until(~any_lane(k, less.value != 0))
        rest, is_over = remainder(k, greater.value, less.value), less.value == 0
        greater.value = k.select(is_over, greater.value, less.value)
        less.value = rest
    return k.bits(greater.value, x.dtype)
