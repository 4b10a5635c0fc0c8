"""Floating-point building blocks of the vector mathematics: polynomials, exact pairs, exponents, rare branches.

All of it works on scalars and vectors, float32 (``f4``) and float64 (``f8``), and is the same code on every target.
If a product must be exact and the target has no fused multiply-add, Dekker's splitting is used.
Nearest integers come from adding and subtracting ``1.5 * 2**mantissa``, which needs no rounding instruction and no
conversion to integer, and is defined for NaN and infinities too.
"""

from collections.abc import Callable, Sequence

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.instructions import call_instruction, has_instruction
from cgraph.kernels.llvm.values import Val
from cgraph.record import Record


class Format(Record):
    """A binary floating-point format.

    Fields
        bits: the integer dtype of the same size
        mantissa: stored bits of the fraction
        bias: of the exponent
        rounder: adding and subtracting it rounds to the nearest integer, half to even
        splitter: ``2**half + 1`` for Dekker's exact product
    """

    dtype: str
    bits: str
    mantissa: int
    bias: int
    rounder: float
    splitter: float

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


F4 = Format("f4", "i4", 23, 127, 1.5 * 2.0**23, 2.0**12 + 1)
F8 = Format("f8", "i8", 52, 1023, 1.5 * 2.0**52, 2.0**27 + 1)


def format_of(x: Val) -> Format:
    return F4 if x.dtype == "f4" else F8


def horner(k: Builder, x: Val, coefficients: Sequence[float]) -> Val:
    """Return ``c0 + c1 x + c2 x**2 …``"""
    total = k.const(coefficients[-1], x.dtype, x.lanes)
    for c in reversed(coefficients[:-1]):
        total = k.fma(total, x, c)
    return total


def estrin(k: Builder, x: Val, coefficients: Sequence[float]) -> Val:
    """The same by increasing pairs: two or three products more, in half as many dependent steps.

    Source: Estrin 1960, Organization of computer systems: the fixed plus variable structure computer.
    """
    parts: list[Val] = [k.const(c, x.dtype, x.lanes) for c in coefficients]
    while len(parts) > 1:
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [k.fma(high, x, low) for low, high in zip(parts[::2], parts[1::2])] + odd
        x = x * x
    return parts[0]


def magnitude(k: Builder, x: Val) -> Val:
    """The absolute value; a NaN stays one."""
    return k.intrinsic("fabs", x)


def sign_bit(k: Builder, x: Val) -> Val:
    """Return only the sign bit, as an integer."""
    kind = format_of(x)
    return k.bits(x, kind.bits) & -(1 << (8 * int(kind.bits[1]) - 1))


def flip_sign(k: Builder, x: Val, sign: Val) -> Val:
    """Return `x` with its sign bit inverted where the integer `sign` has one."""
    return k.bits(k.bits(x, sign.dtype) ^ sign, x.dtype)


def nearest(k: Builder, x: Val) -> tuple[Val, Val]:
    """The nearest integer as a float and as an integer; for ``|x| < 2**(mantissa - 1)``."""
    kind = format_of(x)
    shifted = x + kind.rounder
    base = k.bits(k.const(kind.rounder, x.dtype, x.lanes), kind.bits)
    return shifted - kind.rounder, k.bits(shifted, kind.bits) - base


def power_of_two(k: Builder, n: Val, dtype: str) -> Val:
    """Return ``2**n`` of an integer n in the range of normal exponents."""
    kind = F4 if dtype == "f4" else F8
    return k.bits((n + kind.bias) << kind.mantissa, dtype)


def scale(k: Builder, x: Val, n: Val) -> Val:
    """Return ``x * 2**n`` with one rounding, for results that may be denormal or overflow; `x` is near 1."""
    lanes = k.target.lanes_of(x.dtype)
    if has_instruction(k, f"scale {x.dtype}", lanes) and x.lanes and x.lanes % lanes == 0:
        return in_registers(k, scale_register, x, int_to_float(k, n, x.dtype))
    half = n >> 1
    return x * power_of_two(k, half, x.dtype) * power_of_two(k, n - half, x.dtype)


def in_registers(k: Builder, f: Callable[..., Val], *xs: Val) -> Val:
    """A function of single registers applied to vectors that are several registers wide."""
    lanes = k.target.lanes_of(xs[0].dtype)
    parts = [f(k, *(k.slice(x, at, lanes) for x in xs)) for at in range(0, xs[0].lanes, lanes)]
    while len(parts) > 1:
        parts = [k.join(low, high) for low, high in zip(parts[::2], parts[1::2])]
    return parts[0]


def scale_register(k: Builder, x: Val, n: Val) -> Val:
    """The target's own ``x * 2**n``, which rounds once as well."""
    return call_instruction(k, f"scale {x.dtype}", x.lanes, x, n)


def split_exponent(k: Builder, x: Val) -> tuple[Val, Val]:
    """Return ``(m, e)`` with ``x == m * 2**e`` and m in [sqrt(1/2), sqrt(2)); for finite x > 0. `e` is a float."""
    kind = format_of(x)
    small = x < kind.tiny
    x = k.select(small, x * 2.0 ** (kind.mantissa + 2), x)
    bits = k.bits(x, kind.bits)
    root = int.from_bytes(_SQRT_HALF[kind.dtype], "big")
    e = (bits - root) >> kind.mantissa
    m = k.bits(bits - (e << kind.mantissa), x.dtype)
    return m, int_to_float(k, e, x.dtype) - k.select(small, k.const(kind.mantissa + 2, x.dtype), 0.0)


_SQRT_HALF = {"f4": bytes.fromhex("3f3504f3"), "f8": bytes.fromhex("3fe6a09e667f3bcd")}


def int_to_float(k: Builder, n: Val, dtype: str) -> Val:
    """A small integer (``|n| < 2**(mantissa - 1)``) of the format's size as a float."""
    kind = F4 if dtype == "f4" else F8
    base = k.bits(k.const(kind.rounder, dtype, n.lanes), kind.bits)
    return k.bits(n + base, dtype) - kind.rounder


def two_sum(x: Val, y: Val) -> tuple[Val, Val]:
    """Return ``(s, e)`` with s the rounded sum and ``s + e == x + y`` exactly (Knuth)."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def fast_two_sum(x: Val, y: Val) -> tuple[Val, Val]:
    """Return the same as `two_sum`, for ``|x| >= |y|`` (Dekker)."""
    s = x + y
    return s, y - (s - x)


def two_mul(k: Builder, x: Val, y: Val) -> tuple[Val, Val]:
    """Return ``(p, e)`` with p the rounded product and ``p + e == x * y`` exactly (Dekker 1971 without fma)."""
    p = x * y
    if k.target.fma:
        return p, k.fma(x, y, -p)
    x_high, x_low = halves(x)
    y_high, y_low = halves(y)
    return p, ((x_high * y_high - p) + x_high * y_low + x_low * y_high) + x_low * y_low


def halves(x: Val) -> tuple[Val, Val]:
    """Two parts of half the bits whose sum is `x`."""
    t = x * format_of(x).splitter
    high = t - (t - x)
    return high, x - high


def wide(k: Builder, f: Callable[..., Val], *xs: Val) -> Val:
    """Compute a float32 function in float64: one rounding, so at most 0.51 ulp."""
    return k.cast(f(k, *(k.cast(x, "f8") for x in xs)), "f4")


def any_lane(k: Builder, condition: Val) -> Val:
    """Return one bit: True if the condition holds in some lane."""
    if not condition.lanes:
        return condition
    kind = ir.VectorType(ir.IntType(1), condition.lanes)
    f = k.declare(f"llvm.vector.reduce.or.v{condition.lanes}i1", ir.IntType(1), [kind])
    return k.wrap(k.b.call(f, [condition.v]), "b1")


def rarely(k: Builder, condition: Val, usual: Val, rare: Callable[[], Val]) -> Val:
    """`usual`, but `rare()` in the lanes where `condition` holds; costs one branch when it holds nowhere."""
    result = k.slot(usual)
    with k.if_(any_lane(k, condition), likely=False):
        result.value = k.select(condition, rare(), usual)
    return result.value


def libm(k: Builder, name: str, *xs: Val) -> Val:
    """Call a function of the C library, lane by lane; float32 calls the float64 function and rounds."""
    if xs[0].dtype == "f4":
        return wide(k, lambda k, *ys: libm(k, name, *ys), *xs)
    return lane_by_lane(k, lambda *ys: k.c_function(name, *ys), *xs)


def lane_by_lane(k: Builder, f: Callable[..., Val], *xs: Val) -> Val:
    """Apply a scalar function to each lane, by a loop over copies on the stack."""
    lanes, dtype = xs[0].lanes, xs[0].dtype
    if not lanes:
        return f(*xs)
    places = [k.stack_ptr(dtype, lanes) for _ in xs]
    for place, x in zip(places, xs):
        place.store(x)
    with k.loop(0, lanes) as i:
        places[0].store(f(*(place.load(i) for place in places)), i)
    return places[0].load(0, lanes)
