"""Logarithms: ``x = m 2**e`` with m in [sqrt(1/2), sqrt(2)), ``f = m - 1`` exactly, ``s = f / (2 + f)``.

``log(1 + f) = f - (f**2/2 - s (f**2/2 + s**2 R(s**2)))``, with R the best polynomial in relative error (Remez). The
form loses nothing when m is near 1, where the result is small. The scheme is that of fdlibm (Sun Microsystems, 1993).
Zero gives -infinity, a negative number NaN; denormals are scaled first.
"""

from math import inf, nan

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import fast_two_sum, format_of, horner, split_exponent, wide

# (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2, |s| <= 0.1716
RATIO = (
    0.6666666666666734412,
    0.3999999999941468127,
    0.2857142874238641909,
    0.2222219857334463669,
    0.181835643166070372,
    0.1531405081503818503,
    0.1479594693694488215,
)
# (log(1 + f) - f + f**2 / 2) / f**3 on [sqrt(1/2) - 1, sqrt(2) - 1]
SHORT = (
    0.333333126038785114,
    -0.2500000960053172483,
    0.2000211863899123292,
    -0.1666799574536840651,
    0.1421955296258719563,
    -0.1240559148224645033,
    0.1188815919888072411,
    -0.11675634038914973,
    0.06746626970026877754,
)
# ln 2 in a part whose product with an exponent is exact, and the rest
LN2 = {"f4": (0.693359375, -2.12194440e-4), "f8": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
# parts of 24 bits, and the rest: 1 / ln 2, 1 / ln 10; the part of log10(2) of 33 bits, and the rest
LOG2_E = (float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0bf85ddf44p-26"))
LOG10_E = (float.fromhex("0x1.bcb7bp-2"), float.fromhex("0x1.526e50e32a6abp-26"))
LOG10_2 = (float.fromhex("0x1.34413509p-2"), float.fromhex("0x1.ef3fde623e256p-35"))


def log(k: Builder, x: Val) -> Val:
    """Natural logarithm, within 1 ulp."""
    m, e = split_exponent(k, x)
    high, low = LN2[x.dtype]
    f = m - 1.0
    if x.dtype == "f4":
        square = f * f
        small = k.fma(horner(k, f, SHORT) * f, square, k.fma(e, low, square * -0.5))
        return special(k, x, k.fma(e, high, f + small))
    half, rest = log_parts(k, f)
    return special(k, x, k.fma(e, high, f - (half - k.fma(e, low, rest))))


def log_parts(k: Builder, f: Val) -> tuple[Val, Val]:
    """Return ``(f**2 / 2, r)`` with ``log(1 + f) == f - (f**2 / 2 - r)``."""
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return half, s * k.fma(horner(k, z, RATIO), z, half)


def special(k: Builder, x: Val, y: Val) -> Val:
    """Return the logarithm `y` of `x`, corrected where `x` is 0, infinite, negative or NaN."""
    y = k.select(x == inf, x, y)
    y = k.select(x == 0.0, k.const(-inf, x.dtype, x.lanes), y)
    return k.select(x >= 0.0, y, k.const(nan, x.dtype, x.lanes))


def log2(k: Builder, x: Val) -> Val:
    """Logarithm to base 2, within 1 ulp; exact for powers of two."""
    if x.dtype == "f4":
        return wide(k, log2, x)
    e, scaled, error = scaled_log(k, x, LOG2_E)
    return special(k, x, exact_plus(e, scaled, error))


def log10(k: Builder, x: Val) -> Val:
    """Logarithm to base 10, within 1 ulp."""
    if x.dtype == "f4":
        return wide(k, log10, x)
    e, scaled, error = scaled_log(k, x, LOG10_E)
    return special(k, x, exact_plus(e * LOG10_2[0], scaled, k.fma(e, LOG10_2[1], error)))


def scaled_log(k: Builder, x: Val, factor: tuple[float, float]) -> tuple[Val, Val, Val]:
    """Return the exponent of `x`, and its mantissa's logarithm times `factor` with the rounding error."""
    m, e = split_exponent(k, x)
    high, low = log_pair(k, m - 1.0)
    return e, *product(k, high, low, factor)


def log_pair(k: Builder, f: Val) -> tuple[Val, Val]:
    """Return log(1 + f) as a sum of a part with 32 trailing zero bits and a small one, so that products are exact."""
    half, rest = log_parts(k, f)
    high = k.bits(k.bits(f - half, "i8") & -(1 << 32), "f8")
    return high, ((f - high) - half) + rest


def product(k: Builder, high: Val, low: Val, factor: tuple[float, float]) -> tuple[Val, Val]:
    """Return ``(high + low) * factor`` as a sum; `high` has 32 trailing zero bits."""
    return high * factor[0], k.fma(high + low, factor[1], low * factor[0])


def exact_plus(x: Val, y: Val, small: Val) -> Val:
    """Return ``x + y + small`` with ``|x| >= |y|`` or x = 0."""
    total, error = fast_two_sum(x, y)
    return total + (error + small)


def log1p(k: Builder, x: Val) -> Val:
    """Return log(1 + x), within 1 ulp also near 0."""
    if x.dtype == "f4":
        return wide(k, log1p, x)
    u = x + 1.0
    m, e = split_exponent(k, u)
    lost = k.select(x < 1.0, x - (u - 1.0), 1.0 - (u - x)) / u
    near = e == 0.0
    f = k.select(near, x, m - 1.0)
    half, rest = log_parts(k, f)
    low = k.fma(e, LN2["f8"][1], k.select(near, k.const(0.0, "f8", x.lanes), lost))
    y = k.fma(e, LN2["f8"][0], f - (half - (rest + low)))
    y = k.select(k.intrinsic("fabs", x) < 2.0 ** -(format_of(x).mantissa + 2), x, y)
    return special_1p(k, x, y)


def special_1p(k: Builder, x: Val, y: Val) -> Val:
    y = k.select(x == inf, x, y)
    y = k.select(x == -1.0, k.const(-inf, x.dtype, x.lanes), y)
    return k.select(x >= -1.0, y, k.const(nan, x.dtype, x.lanes))
