"""Hyperbolic functions and their inverses. float32 is computed in float64 (0.51 ulp), except tanh, which has a float32
path of its own because networks use it most.
"""

from math import inf, nan

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vexp import clamp, exp, quotient_and_rest, tail
from cgraph.kernels.llvm.vfloat import flip_sign, horner, magnitude, power_of_two, sign_bit, wide
from cgraph.kernels.llvm.vlog import log1p

LN2 = 0.6931471805599453
# (tanh r - r) / r**3 in r**2, |r| <= 0.55
TANH = {
    "f4": (
        -0.3333332061106583682,
        0.1333261578916301348,
        -0.05385050642008904198,
        0.02105069923545920455,
        -0.006231240163608229965,
    ),
    "f8": (
        -0.3333333333333281124,
        0.1333333333321789759,
        -0.05396825389226446501,
        0.02186948621975204157,
        -0.008863196343378008246,
        0.003591725453230659895,
        -0.00145320980711826145,
        0.000579032384676354012,
        -0.0002100204527403638131,
        0.00005076390911033085402,
    ),
}
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
    """Hyperbolic tangent, within 2 ulp: a polynomial near 0, ``1 - 2 t / (1 + t)`` with ``t = e**(-2 |x|)`` beyond."""
    a = magnitude(k, x)
    z = x * x
    near = k.fma(horner(k, z, TANH[x.dtype]) * z, x, x)
    t = exp(k, -2.0 * a)
    far = k.fma(t / (t + 1.0), -2.0, 1.0)
    y = k.select(a < 0.55, near, flip_sign(k, far, sign_bit(k, x)))
    return k.select(x == 0.0, x, y)


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
    """Return ``(e**a / 2, e**-a / 2)`` for a >= 0, the first without overflow until the half itself does."""
    n, r = quotient_and_rest(k, clamp(k, a, 0.0, 711.0))
    p = tail(k, r) + 1.0
    # 2**n overflows one step before e**a / 2 does
    up = p * power_of_two(k, n - 2, a.dtype) * 2.0
    return up, k.select(a < 40.0, 0.25 / up, k.const(0.0, a.dtype, a.lanes))


def asinh(k: Builder, x: Val) -> Val:
    """Inverse hyperbolic sine, within 2 ulp."""
    if x.dtype == "f4":
        return wide(k, asinh, x)
    a = magnitude(k, x)
    far = a > 2.0**28
    inner = k.select(far, a - 1.0, a + a * a / (k.intrinsic("sqrt", a * a + 1.0) + 1.0))
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
    y = k.select(far, y + LN2, y)
    return k.select(x >= 1.0, y, k.const(nan, x.dtype, x.lanes))


def atanh(k: Builder, x: Val) -> Val:
    """Inverse hyperbolic tangent, within 2 ulp; infinite at -1 and 1, NaN beyond."""
    if x.dtype == "f4":
        return wide(k, atanh, x)
    a = magnitude(k, x)
    quotient = k.select(a == 1.0, k.const(inf, a.dtype, a.lanes), 2.0 * a / (1.0 - a))
    y = 0.5 * log1p(k, k.select(a > 1.0, k.const(-2.0, a.dtype, a.lanes), quotient))
    return k.select(a < 2.0**-28, x, flip_sign(k, y, sign_bit(k, x)))
