"""Exponentials: ``x = n ln 2 + r`` with ``|r| <= ln(2) / 2``, a polynomial for ``e**r``, the exponent by bits.

The polynomial is the best one in relative error (Remez exchange), below 0.06 units in the last place (ulp) of float32
and of float64. Results that are denormal are rounded once; overflow gives infinity, a NaN stays one.
"""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.instructions import has_instruction
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import format_of, horner, magnitude, nearest, power_of_two, scale, two_mul

LOG2_E = 1.4426950408889634
# ln 2 in a part with trailing zeros, whose product with n is exact, and the rest
LN2 = {"f4": (0.693359375, -2.12194440e-4), "f8": (6.93145751953125e-1, 1.42860682030941723212e-6)}
# beyond these, exp is infinite, or zero after rounding; the lower one keeps n in range
LIMITS = {"f4": (-104.0, 89.0), "f8": (-746.0, 710.0)}
LIMITS2 = {"f4": (-151.0, 128.0), "f8": (-1080.0, 1024.0)}
# exponent of two by which `large_exp` multiplies
UPSCALE = {"f4": 64, "f8": 512}
# (e**r - 1 - r) / r**2 on |r| <= 0.3473
TAIL = {
    "f4": (0.49999993373, 0.16666519528, 0.041668401072, 0.0083688506842, 0.0013814319976),
    "f8": (
        0.500000000000001042,
        0.1666666666666667468,
        0.04166666666651977668,
        0.008333333333322037039,
        0.001388888894849607331,
        0.0001984126988711019939,
        0.00002480148656371501039,
        2.755724175049233908e-6,
        2.763294254051110857e-7,
        2.511027042304372333e-8,
    ),
}


def exp(k: Builder, x: Val) -> Val:
    """Return e**x, within 1.1 ulp."""
    n, small = reduce(k, x)
    return scale(k, small + 1.0, n)


def large_exp(k: Builder, x: Val) -> Val:
    """Return ``e**x * 2**UPSCALE`` for ``x <= 0``, within 1.1 ulp, never denormal: a quotient of two needs no scaling.

    Where e**x is zero after rounding, so is the result divided by ``2**UPSCALE``. The power of two is a factor, because
    the sum of its exponent and the bits of a NaN may be a number.
    """
    kind, lowest = format_of(x), LIMITS[x.dtype][0]
    x = k.larger(k.val(lowest, x.dtype, x.lanes), x)
    rounder = kind.rounder + kind.bias + UPSCALE[x.dtype]
    shifted = k.fma(x, LOG2_E, rounder)
    high, low = LN2[x.dtype]
    whole = shifted - rounder
    mantissa = tail(k, k.fma(whole, -low, k.fma(whole, -high, x))) + 1.0
    return mantissa * k.bits(k.bits(shifted, kind.bits) << kind.mantissa, x.dtype)


def exp_down(k: Builder, x: Val) -> Val:
    """Return e**x for ``x <= 0``, as exact as `exp`, in fewer instructions where none scales by powers of two."""
    if has_instruction(k, f"scale {x.dtype}", k.target.lanes_of(x.dtype)):
        return exp(k, x)
    return large_exp(k, x) * 2.0 ** -UPSCALE[x.dtype]


def exp2(k: Builder, x: Val) -> Val:
    """2**x, within 1.1 ulp."""
    low, high = LIMITS2[x.dtype]
    x = clamp(k, x, low, high)
    whole, n = nearest(k, x)
    r = (x - whole) * 0.6931471805599453
    return scale(k, tail(k, r) + 1.0, n)


def exp2_down(k: Builder, x: Val) -> Val:
    """Return 2**x for ``x <= 0``, as exact as `exp2`, in fewer instructions where none scales by powers of two."""
    if has_instruction(k, f"scale {x.dtype}", k.target.lanes_of(x.dtype)):
        return exp2(k, x)
    kind = format_of(x)
    x = k.larger(k.val(LIMITS2[x.dtype][0], x.dtype, x.lanes), x)
    rounder = kind.rounder + kind.bias + UPSCALE[x.dtype]
    shifted = x + rounder
    mantissa = tail(k, (x - (shifted - rounder)) * 0.6931471805599453) + 1.0
    power = k.bits(k.bits(shifted, kind.bits) << kind.mantissa, x.dtype)
    return mantissa * power * 2.0 ** -UPSCALE[x.dtype]


def expm1(k: Builder, x: Val) -> Val:
    """Return e**x - 1, within 2 ulp also near 0."""
    n, small = reduce(k, clamp(k, x, -50.0, LIMITS[x.dtype][1]))
    half = power_of_two(k, n - 1, x.dtype)
    y = k.fma(half, small, half - 0.5) * 2.0
    return k.select(magnitude(k, x) < 2.0 ** -(format_of(x).mantissa + 3), x, y)


def sigmoid(k: Builder, x: Val) -> Val:
    """1 / (1 + e**-x), within 2 ulp; no overflow on either side."""
    t = exp_down(k, -magnitude(k, x))
    return k.select(x >= 0.0, k.const(1.0, x.dtype, x.lanes), t) / (t + 1.0)


def reduce(k: Builder, x: Val) -> tuple[Val, Val]:
    """Return ``(n, e**r - 1)`` with ``x = n ln 2 + r``."""
    n, r = quotient_and_rest(k, clamp(k, x, *LIMITS[x.dtype]))
    return n, tail(k, r)


def quotient_and_rest(k: Builder, x: Val) -> tuple[Val, Val]:
    """Return ``(n, r)`` with ``x = n ln 2 + r``."""
    whole, n = nearest(k, x * LOG2_E)
    high, low = LN2[x.dtype]
    return n, k.fma(whole, -low, k.fma(whole, -high, x))


def tail(k: Builder, r: Val) -> Val:
    """Return e**r - 1 for a reduced r."""
    return k.fma(horner(k, r, TAIL[r.dtype]), r * r, r)


def clamp(k: Builder, x: Val, low: float, high: float) -> Val:
    """Return `x` within limits; a NaN stays one."""
    x = k.select(x > high, k.const(high, x.dtype, x.lanes), x)
    return k.select(x < low, k.const(low, x.dtype, x.lanes), x)


def exp_minus_square(k: Builder, x: Val) -> Val:
    """Return e**(-x*x), corrected by the rounding error of the square."""
    square, error = two_mul(k, x, x)
    return exp_sum(k, -square, -error)


def exp_sum(k: Builder, high: Val, low: Val) -> Val:
    """Return e**(high + low) for finite, small `low`."""
    high = clamp(k, high, *LIMITS[high.dtype])
    n, r = quotient_and_rest(k, high)
    return scale(k, tail(k, r + low) + 1.0, n)
