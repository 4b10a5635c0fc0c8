"""Powers and the length of a vector.

pow computes ``2**(y log2 x)`` with the logarithm as a sum of two floats (relative error near 2**-68), since an error in
the exponent is multiplied by up to 1075. Special cases are those of C's `pow`, which are NumPy's. float32 is
computed in float64 with a single logarithm, within 0.51 ulp.
"""

from math import inf, nan

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vexp import clamp, exp, exp_sum
from cgraph.kernels.llvm.vfloat import (
    fast_two_sum,
    flip_sign,
    horner,
    magnitude,
    power_of_two,
    rarely,
    sign_bit,
    split_exponent,
    two_mul,
    two_sum,
    wide,
)
from cgraph.kernels.llvm.vlog import log

# (log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in s**2, |s| <= 0.1716
RATIO = (
    0.3999999999999997752,
    0.2857142857144509589,
    0.2222222221754012983,
    0.1818181886987741241,
    0.1538455690022875204,
    0.1333631631155928139,
    0.1167484071942823873,
    0.1198882995480463,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN2 = (0.6931471805599453, 2.3190468138462996e-17)


def pow_(k: Builder, x: Val, y: Val) -> Val:
    """x to the power y, within 1.5 ulp."""
    if x.dtype == "f4":
        return wide(k, pow_of_singles, x, y)
    a = magnitude(k, x)
    zero, infinite = a == 0.0, a == inf
    one = k.const(1.0, x.dtype, x.lanes)
    high, low = log_pair(k, k.select(zero | infinite, one, a))
    limit = 1e300
    z = clamp(k, y, -limit, limit)
    size = exp_sum(k, *times(k, high, low, z))
    small = (zero & (y > 0.0)) | (infinite & (y < 0.0))
    size = k.select(zero | infinite, k.select(small, k.const(0.0, x.dtype, x.lanes), inf), size)
    return special(k, x, y, size)


def pow_of_singles(k: Builder, x: Val, y: Val) -> Val:
    """Return x to the power y for float64 values of float32 numbers, with an error far below theirs."""
    return special(k, x, y, exp(k, log(k, magnitude(k, x)) * y))


def special(k: Builder, x: Val, y: Val, size: Val) -> Val:
    """Return the sign and the exceptions of ``x**y``, from ``|x|**y``."""
    whole = k.intrinsic("trunc", y) == y
    half = y * 0.5
    odd = whole & (k.intrinsic("trunc", half) != half)
    sign = sign_bit(k, x)
    result = k.select(odd, flip_sign(k, size, sign), size)
    # an infinity counts as an even integer exponent
    undefined = (x < 0.0) & (x > -inf) & ~whole
    result = k.select(undefined, k.const(nan, x.dtype, x.lanes), result)
    result = k.select(k.is_nan(x) | k.is_nan(y), x + y, result)
    one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (magnitude(k, y) == inf))
    return k.select(one, k.const(1.0, x.dtype, x.lanes), result)


def log_pair(k: Builder, a: Val) -> tuple[Val, Val]:
    """Natural logarithm of a finite a > 0 as a sum of two floats."""
    m, e = split_exponent(k, a)
    s, s_low = quotient(k, m)
    z, z_error = two_mul(k, s, s)
    z_low = k.fma(2.0 * s, s_low, z_error)
    # s**3 (2/3 + z R(z)) with all of its bits
    c, c_low = fast_two_sum(k.const(TWO_THIRDS[0], a.dtype, a.lanes), z * horner(k, z, RATIO))
    c_low = c_low + TWO_THIRDS[1]
    p, p_low = times_pair(k, z, z_low, s, s_low)
    t, t_low = times_pair(k, p, p_low, c, c_low)
    base, base_error = two_mul(k, e, k.const(LN2[0], a.dtype, a.lanes))
    base, first = two_sum(base, 2.0 * s)
    base, second = two_sum(base, t)
    low = k.fma(e, LN2[1], base_error) + (first + second) + (2.0 * s_low + t_low)
    return fast_two_sum(base, low)


def quotient(k: Builder, m: Val) -> tuple[Val, Val]:
    """Return ``(m - 1) / (m + 1)`` as a sum of two floats."""
    f, (b, b_low) = m - 1.0, two_sum(m, k.const(1.0, m.dtype, m.lanes))
    s = f / b
    p, error = two_mul(k, s, b)
    return s, (((f - p) - error) - s * b_low) / b


def times_pair(k: Builder, x: Val, x_low: Val, y: Val, y_low: Val) -> tuple[Val, Val]:
    """Product of two sums of two floats."""
    p, error = two_mul(k, x, y)
    return fast_two_sum(p, error + k.fma(x, y_low, x_low * y))


def times(k: Builder, high: Val, low: Val, y: Val) -> tuple[Val, Val]:
    """Return ``(high + low) * y`` as a sum. Where it (nearly, without fma) overflows, only sign and size matter."""
    rough = high * y
    far = magnitude(k, rough) > 800.0
    y = k.select(far, k.const(0.0, y.dtype, y.lanes), y)
    p, error = two_mul(k, high, y)
    return k.select(far, clamp(k, rough, -800.0, 800.0), p), k.fma(low, y, error)


# the relative difference from which on two squares decide, and the limit on the sizes that they are of
HYPOT_MARGIN = {"f4": (2.0**-16, 2.0**40), "f8": (2.0**-40, 2.0**400)}


def hypot(k: Builder, x: Val, y: Val) -> Val:
    """Square root of ``x*x + y*y`` without overflow; infinite when either side is, even beside a NaN.

    float32 within 0.51 ulp, float64 within 1. Intermediate values outside the range of exponents take a rare branch.
    """
    a, b = magnitude(k, x), magnitude(k, y)
    large, small = k.select(a > b, a, b), k.select(a > b, b, a)
    root, total = corrected_root(k, large, small)
    most, rare = (2.0**100, short_hypot) if x.dtype == "f4" else (2.0**200, scaled_hypot)
    usual = (total < most) & ((total > 1 / most) | (large == 0.0))
    return rarely(k, ~usual, root, lambda: rare(k, large, small))


def compare_hypot(k: Builder, sign: str, x: Val, y: Val, r: Val) -> Val:
    """Return ``hypot(x, y) > r``, or with another sign of order, without a root.

    Squares decide where they differ by more than all roundings; elsewhere, and for sizes whose square may leave the
    range of exponents, a rare branch computes `hypot`. So the result is the same for all numbers.
    """
    margin, most = HYPOT_MARGIN[x.dtype]
    total, square = k.fma(x, x, y * y), r * r
    above, below = total > k.fma(square, margin, square), total < k.fma(square, -margin, square)
    decided = (above | below) & (r > 1 / most) & (r < most)
    return rarely(k, ~decided, above if sign[0] == ">" else below, lambda: k.compare(sign, hypot(k, x, y), r))


def corrected_root(k: Builder, large: Val, small: Val) -> tuple[Val, Val]:
    """Return the root of a sum of squares with its rounding error corrected, and the sum.

    Source: Borges 2019, An improved algorithm for hypot(a,b), arXiv:1904.09481.
    """
    (square, rest), (other, other_rest) = two_mul(k, large, large), two_mul(k, small, small)
    total = square + other
    root = k.intrinsic("sqrt", total)
    p, p_rest = two_mul(k, root, root)
    lacking = ((square - p) + other) + ((rest - p_rest) + other_rest)
    # a few digits of the inverse are enough, and float32's division is the fast one
    inverse = k.const(0.5, "f4", root.lanes) / k.larger(k.cast(root, "f4"), 2.0**-100)
    return k.fma(lacking, k.cast(inverse, root.dtype), root), total


def short_hypot(k: Builder, large: Val, small: Val) -> Val:
    """Return `hypot` of float32 numbers, whose squares float64 holds exactly."""
    a, b = k.cast(large, "f8"), k.cast(small, "f8")
    root = k.cast(k.intrinsic("sqrt", a * a + b * b), "f4")
    return k.select((large == inf) | (small == inf), k.const(inf, "f4", large.lanes), root)


def scaled_hypot(k: Builder, large: Val, small: Val) -> Val:
    """Return `hypot` of float64 numbers, scaled by a power of 2 and back."""
    exponent = (k.bits(large, "i8") >> 52) - 1023
    # so that both the factor and its inverse are normal
    exponent = k.select(exponent > 1000, k.const(1000, "i8", large.lanes), exponent)
    exponent = k.select(exponent < -1000, k.const(-1000, "i8", large.lanes), exponent)
    factor = power_of_two(k, -exponent, "f8")
    root, total = corrected_root(k, large * factor, small * factor)
    result = k.select(total > 0.0, root, total) * power_of_two(k, exponent, "f8")
    result = k.select(k.is_nan(large) | k.is_nan(small), large + small, result)
    return k.select((large == inf) | (small == inf), k.const(inf, "f8", large.lanes), result)
