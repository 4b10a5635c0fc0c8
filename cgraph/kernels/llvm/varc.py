"""Inverse trigonometric functions, in float64; float32 is computed in float64 and is within 0.51 ulp.

asin, acos: a polynomial on [-1/2, 1/2]; beyond, ``asin x = pi/2 - 2 asin(sqrt((1 - x) / 2))`` corrected by the rounding
error of the square root. atan2: the quotient of the smaller by the larger magnitude, past tan(pi/8) that of
``(a - b) / (a + b)`` around pi/4, then a polynomial; one division in all.
"""

from math import inf, nan

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import flip_sign, horner, magnitude, sign_bit, two_mul, wide

# (asin r - r) / r**3 in r**2, |r| <= 1/2
ASIN = (
    0.1666666666666540904,
    0.07500000000336994368,
    0.0446428568283433403,
    0.03038195913636121428,
    0.02237175806481381737,
    0.01735970454853964586,
    0.01388523756967163254,
    0.01216919793563846207,
    0.00652803400833921169,
    0.01952810622763347898,
    -0.01622400639822103878,
    0.03191210304792118608,
)
# (atan r - r) / r**3 in r**2, |r| <= tan(pi/8)
ATAN = (
    -0.3333333333333319603,
    0.1999999999995320696,
    -0.1428571428016229986,
    0.1111111078193252721,
    -0.09090897718601300936,
    0.0769205959497836382,
    -0.06663097768175280707,
    0.05847848531864935759,
    -0.05039140779259283468,
    0.0380608486930447265,
    -0.01790359461053313918,
)
PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
TAN_PI_8 = 0.41421356237309503


def asin(k: Builder, x: Val) -> Val:
    """Inverse sine, within 1.5 ulp; NaN outside [-1, 1]."""
    if x.dtype == "f4":
        return wide(k, asin, x)
    a = magnitude(k, x)
    far, r, low, tail = half_angle(k, a)
    beyond = (PI / 4 - r) + (PI / 4 - r) + (PI_LOW / 2 - 2.0 * (low + tail))
    y = k.select(far, beyond, r + tail)
    return k.select(a == 0.0, x, inside(k, a, flip_sign(k, y, sign_bit(k, x))))


def acos(k: Builder, x: Val) -> Val:
    """Inverse cosine, within 1.5 ulp; NaN outside [-1, 1]."""
    if x.dtype == "f4":
        return wide(k, acos, x)
    a = magnitude(k, x)
    far, r, low, tail = half_angle(k, a)
    sign = sign_bit(k, x)
    near = PI / 2 - (flip_sign(k, r, sign) - (PI_LOW / 2 - flip_sign(k, tail, sign)))
    twice = 2.0 * (r + (low + tail))
    y = k.select(x < 0.0, (PI - 2.0 * r) - (2.0 * (low + tail) - PI_LOW), twice)
    return inside(k, a, k.select(far, y, near))


def half_angle(k: Builder, a: Val) -> tuple[Val, Val, Val, Val]:
    """Return ``(far, r, low, tail)``: asin(r + low) = ``r + low + tail``; far (a > 1/2): r = sqrt((1 - a) / 2)."""
    far = a > 0.5
    z = k.select(far, 0.5 - 0.5 * a, a * a)
    root = k.intrinsic("sqrt", z)
    square, error = two_mul(k, root, root)
    low = ((z - square) - error) / (2.0 * root)
    r = k.select(far, root, a)
    low = k.select(far & (root > 0.0), low, k.const(0.0, a.dtype, a.lanes))
    return far, r, low, horner(k, z, ASIN) * z * r


def inside(k: Builder, a: Val, y: Val) -> Val:
    return k.select(a <= 1.0, y, k.const(nan, y.dtype, y.lanes))


def atan(k: Builder, x: Val) -> Val:
    """Inverse tangent, within 2 ulp."""
    if x.dtype == "f4":
        return wide(k, atan, x)
    y = first_quadrant(k, magnitude(k, x), k.const(1.0, x.dtype, x.lanes))
    return k.select(x == 0.0, x, flip_sign(k, y, sign_bit(k, x)))


def atan2(k: Builder, y: Val, x: Val) -> Val:
    """Angle of the point (x, y), within 2 ulp; signed zeros and infinities as in C."""
    if x.dtype == "f4":
        return wide(k, atan2, y, x)
    a, b = magnitude(k, y), magnitude(k, x)
    one = k.const(1.0, x.dtype, x.lanes)
    both = (a == inf) & (b == inf)
    angle = first_quadrant(k, k.select(both, one, a), k.select(both, one, b))
    angle = k.select((a == 0.0) & (b == 0.0), k.const(0.0, x.dtype, x.lanes), angle)
    left = sign_bit(k, x) != 0
    angle = k.select(left, PI - (angle - PI_LOW), angle)
    angle = k.select(k.is_nan(x) | k.is_nan(y), x + y, angle)
    return flip_sign(k, angle, sign_bit(k, y))


def first_quadrant(k: Builder, y: Val, x: Val) -> Val:
    """Return atan(y / x) for y, x >= 0, not both infinite."""
    swap = y > x
    a, b = k.select(swap, x, y), k.select(swap, y, x)
    # so that a + b does not overflow and a denormal quotient keeps its bits
    big = b > 1e300
    a, b = k.select(big, a * 0.125, a), k.select(big, b * 0.125, b)
    upper = a > TAN_PI_8 * b
    q = k.select(upper, a - b, a) / k.select(upper, a + b, b)
    z = q * q
    tail = horner(k, z, ATAN) * z * q
    base = k.select(upper, k.const(PI / 4, y.dtype, y.lanes), 0.0)
    base_low = k.select(upper, k.const(PI_LOW / 4, y.dtype, y.lanes), 0.0)
    sign = k.select(swap, k.const(-1.0, y.dtype, y.lanes), 1.0)
    start = k.select(swap, PI / 2 - base, base)
    start_low = k.select(swap, PI_LOW / 2 - base_low, base_low)
    small = sign * q
    high = start + small
    return high + (((start - high) + small) + k.fma(sign, tail, start_low))
