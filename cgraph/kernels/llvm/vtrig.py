"""Sine, cosine and tangent: the argument minus a multiple of pi (of pi/2 for tan), then one odd polynomial.

The multiple is taken off in parts (Cody and Waite 1980) whose products are exact. float64: parts of 33 bits, exact with
and without fma. float32: parts of 24 bits where there is fma, since each difference then fits its format; without fma
the reduction runs in float64. Past a limit on the argument (1e5 in float32, 1.5e6 in float64) the lanes concerned call
the C library's function, in a rare branch, with that function's error.
"""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import F8, flip_sign, format_of, horner, libm, magnitude, nearest, rarely, two_sum, wide

ONE_BY_PI = 0.3183098861837907
PI_33 = tuple(map(float.fromhex, ("0x1.921fb544p+1", "0x1.0b4611a6p-33", "0x1.3198a2ep-68", "0x1.b839a252049c1p-103")))
PI_24 = tuple(map(float.fromhex, ("0x1.921fb6p+1", "-0x1.777a5cp-24", "-0x1.ee59dap-49")))
LIMIT = {"f4": 1.0e5, "f8": 1.5e6}
# (sin r - r) / r**3 in r**2, |r| <= pi/2
SIN = {
    "f4": (-0.16666661044, 0.0083330828065, -0.0001980983226, 2.6048732083e-6),
    "f8": (
        -0.1666666666666666612,
        0.008333333333333238419,
        -0.000198412698412210776,
        2.755731921262202625e-6,
        -2.505210696899001501e-8,
        1.605894293284453398e-10,
        -7.643041393498307041e-13,
        2.721405391390136796e-15,
    ),
}
# (tan r - r) / r**3 in r**2, |r| <= pi/4
TAN = (
    0.3333333333333334969,
    0.1333333333332936019,
    0.05396825397112903016,
    0.02186948843864691076,
    0.008863237410378353772,
    0.003592105138014034926,
    0.001456021851249262391,
    0.0005889549661479282176,
    0.0002435141644105122481,
    0.00008397682460753125504,
    0.00006675767150385785322,
    -0.00002537315365647148723,
    0.00004865646136477951076,
    -0.00002438747051004361073,
    9.844536366731471518e-6,
)


def sin(k: Builder, x: Val) -> Val:
    """Sine, within 2 ulp; NaN for an infinity."""
    r, n = reduce(k, x, 0.0)
    y = k.select(x == 0.0, x, flip_sign(k, odd_sine(k, r), parity(x, n)))
    return rarely(k, magnitude(k, x) > LIMIT[x.dtype], y, lambda: libm(k, "sin", x))


def cos(k: Builder, x: Val) -> Val:
    """Cosine, within 2 ulp; NaN for an infinity."""
    r, n = reduce(k, x, 0.5)
    y = flip_sign(k, odd_sine(k, r), parity(x, n + 1))
    return rarely(k, magnitude(k, x) > LIMIT[x.dtype], y, lambda: libm(k, "cos", x))


def tan(k: Builder, x: Val) -> Val:
    """Tangent, within 2 ulp; NaN for an infinity."""
    if x.dtype == "f4":
        return wide(k, tan, x)
    whole, n = nearest(k, x * (2 * ONE_BY_PI))
    r, low = reduce_to_pair(k, x, whole * 0.5)
    z = r * r
    t = k.fma(horner(k, z, TAN) * z, r, r)
    t = t + k.fma(t, t, 1.0) * low
    y = k.select((n & 1) != 0, -1.0 / t, t)
    y = k.select(x == 0.0, x, y)
    return rarely(k, magnitude(k, x) > LIMIT["f8"], y, lambda: libm(k, "tan", x))


def reduce(k: Builder, x: Val, offset: float) -> tuple[Val, Val]:
    """Return ``(r, n)`` with ``x = (n + offset) * pi + r`` and ``|r| <= pi / 2``."""
    if x.dtype == "f4" and not k.target.fma:
        r, n = reduce(k, k.cast(x, "f8"), offset)
        return k.cast(r, "f4"), k.cast(n, "i4")
    whole, n = nearest(k, k.fma(x, ONE_BY_PI, -offset))
    return subtract_parts(k, x, whole + offset, PI_33 if x.dtype == F8.dtype else PI_24), n


def subtract_parts(k: Builder, x: Val, times: Val, parts: Sequence[float]) -> Val:
    """Return ``x - times * sum(parts)``, the largest part first."""
    for part in parts:
        x = k.fma(times, -part, x)
    return x


def reduce_to_pair(k: Builder, x: Val, times: Val) -> tuple[Val, Val]:
    """Return ``x - times * pi`` as a sum of two floats."""
    high, error = two_sum(k.fma(times, -PI_33[0], x), times * -PI_33[1])
    return two_sum(high, subtract_parts(k, error, times, PI_33[2:]))


def odd_sine(k: Builder, r: Val) -> Val:
    """Return sin r for ``|r| <= pi / 2``."""
    z = r * r
    return k.fma(horner(k, z, SIN[r.dtype]) * z, r, r)


def parity(x: Val, n: Val) -> Val:
    """The sign bit of ``(-1)**n``."""
    return n << (8 * int(format_of(x).bits[1]) - 1)
