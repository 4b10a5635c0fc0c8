"""Hyperbolic functions and their inverses. float32 goes by way of float64 (0.51 ulp), but tanh, which networks use much."""

from math import inf

from cgraph.kernels.llvm.build import Builder, Val
from cgraph.kernels.llvm.vexp import clamp, expm1, reduced
from cgraph.kernels.llvm.vfloat import flip_sign, horner, magnitude, power_of_two, sign_bit, wide
from cgraph.kernels.llvm.vlog import log1p

LN2 = 0.6931471805599453
# (sinh r - r) / r**3 in r**2, |r| <= 1
SINH = (
    0.1666666666666666738,
    0.008333333333333147755,
    0.0001984126984143186483,
    2.755731915707423917e-6,
    2.505212313635786531e-8,
    1.605725979622535342e-10,
    7.758747997369187725e-13,
)


def tanh(k: Builder, x: Val) -> Val:
    """Hyperbolic tangent, within 2 ulp: ``-t / (t + 2)`` with ``t = e**(-2 |x|) - 1``."""
    a = magnitude(k, x)
    t = expm1(k, -2.0 * a)
    return k.select(x == 0.0, x, flip_sign(k, -t / (t + 2.0), sign_bit(k, x)))


def sinh(k: Builder, x: Val) -> Val:
    """Hyperbolic sine, within 2 ulp."""
    if x.dtype == "f4":
        return wide(k, sinh, x)
    a = magnitude(k, x)
    z = x * x
    small = k.fma(horner(k, z, SINH) * z, x, x)
    up, down = half_exponentials(k, a)
    return k.select(a < 1.0, k.select(x == 0.0, x, small), flip_sign(k, up - down, sign_bit(k, x)))


def cosh(k: Builder, x: Val) -> Val:
    """Hyperbolic cosine, within 2 ulp."""
    if x.dtype == "f4":
        return wide(k, cosh, x)
    up, down = half_exponentials(k, magnitude(k, x))
    return up + down


def half_exponentials(k: Builder, a: Val) -> tuple[Val, Val]:
    """``(e**a / 2, e**-a / 2)`` for a >= 0, the first without overflow until the half itself does."""
    n, small = reduced(k, clamp(k, a, 0.0, 711.0))
    p = small + 1.0
    # 2**n overflows one step before e**a / 2 does
    up = p * power_of_two(k, n - 2, a.dtype) * 2.0
    return up, k.select(a < 40.0, 0.25 / up, k.const(0.0, a.dtype, a.lanes))


def asinh(k: Builder, x: Val) -> Val:
    """Inverse hyperbolic sine, within 2 ulp."""
    if x.dtype == "f4":
        return wide(k, asinh, x)
    a = magnitude(k, x)
    far = a > 2.0**28
    inner = k.select(far, a, a + a * a / (k.intrinsic("sqrt", a * a + 1.0) + 1.0))
    y = log1p(k, inner)
    y = k.select(far, y + LN2, y)
    return k.select(x == 0.0, x, flip_sign(k, y, sign_bit(k, x)))


def acosh(k: Builder, x: Val) -> Val:
    """Inverse hyperbolic cosine, within 2 ulp; NaN below 1."""
    if x.dtype == "f4":
        return wide(k, acosh, x)
    t = x - 1.0
    far = x > 2.0**28
    y = log1p(k, k.select(far, t, t + k.intrinsic("sqrt", 2.0 * t + t * t)))
    return k.select(far, y + LN2, y)


def atanh(k: Builder, x: Val) -> Val:
    """Inverse hyperbolic tangent, within 2 ulp; infinite at -1 and 1, NaN beyond."""
    if x.dtype == "f4":
        return wide(k, atanh, x)
    a = magnitude(k, x)
    quotient = k.select(a == 1.0, k.const(inf, a.dtype, a.lanes), 2.0 * a / (1.0 - a))
    y = 0.5 * log1p(k, k.select(a > 1.0, k.const(-2.0, a.dtype, a.lanes), quotient))
    return k.select(a < 2.0**-28, x, flip_sign(k, y, sign_bit(k, x)))
