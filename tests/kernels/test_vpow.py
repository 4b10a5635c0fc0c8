"""Powers and lengths at the ends of the range: exact powers, C's special cases, no overflow between."""

import operator

import mpmath
import numpy as np
import pytest

from tests.support.primitives import (
    INF,
    NAN,
    assert_points,
    computed,
    every_float,
    every_target,
    pairs_at_every_exponent,
    spread,
    worst_ulp,
)


@every_target
@every_float
def test_hypot_at_every_exponent_and_at_both_ends(dtype, target):
    x, y = pairs_at_every_exponent(dtype)
    for one, other in ((x, y), (y, x)):
        error = worst_ulp(computed("hypot", target, one, other), mpmath.hypot, one, other)
        assert error <= (0.51 if dtype == "f4" else 1)


@every_target
@every_float
def test_hypot_with_zero_is_the_magnitude(dtype, target):
    end = 126 if dtype == "f4" else 1022
    x = spread(np.random.default_rng(9), 1500, -end, end, dtype)
    zero = np.zeros_like(x)
    np.testing.assert_array_equal(computed("hypot", target, x, zero), np.abs(x))
    np.testing.assert_array_equal(computed("hypot", target, zero, zero), zero)


@every_target
@every_float
def test_hypot_of_subnormal_numbers_and_of_an_infinity_beside_a_nan(dtype, target):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    points = [((3 * tiny, -4 * tiny), 5 * tiny), ((tiny, 0.0), tiny), ((-5 * tiny, 12 * tiny), 13 * tiny)]
    points += [((INF, NAN), INF), ((NAN, -INF), INF), ((NAN, 1.0), NAN), ((1.0, NAN), NAN), ((-INF, 1.0), INF)]
    assert_points("hypot", target, dtype, points)


@every_target
@every_float
@pytest.mark.parametrize("order", [operator.lt, operator.le, operator.gt, operator.ge])
def test_an_order_of_hypot_is_that_of_its_rounded_value(order, dtype, target):
    """Limits at the value itself and next to it, at all exponents, and special ones."""
    x, y = pairs_at_every_exponent(dtype)
    size = computed("hypot", target, x, y)
    with np.errstate(over="ignore"):
        limits = [size, np.nextafter(size, INF), np.nextafter(size, 0), size * 2, size / 2, -size, size * NAN]
    special = np.array([0, -0.0, INF, -INF, NAN, 1, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
    one, other, limit = (a.ravel() for a in np.meshgrid(special, special, special))
    cases = [*((x, y, r.astype(dtype)) for r in limits), (one, other, limit)]
    for a, b, r in cases:
        want = order(computed("hypot", target, a, b), r)
        np.testing.assert_array_equal(computed(lambda m, a, b, r: order(m.hypot(a, b), r), target, a, b, r), want)
        swapped = computed(lambda m, a, b, r: order(r, m.hypot(a, b)), target, a, b, r)
        np.testing.assert_array_equal(swapped, order(r, computed("hypot", target, a, b)))


@every_target
def test_powers_of_two_are_exact_down_to_the_least_number(target):
    n = np.arange(-1074, 1024)
    np.testing.assert_array_equal(computed("pow", target, np.full(n.shape, 2.0), n.astype("f8")), np.ldexp(1.0, n))
    n = np.arange(-149, 128)
    want = np.ldexp(np.float32(1), n)
    np.testing.assert_array_equal(computed("pow", target, np.full(n.shape, 2, "f4"), n.astype("f4")), want)


@every_target
@every_float
def test_negative_bases_take_integers_alone_and_odd_ones_keep_the_sign(dtype, target):
    odd, even = (2.0**24 - 1, 2.0**25) if dtype == "f4" else (2.0**53 - 1, 2.0**54)
    points = [((-3.0, 3.0), -27.0), ((-3.0, 2.0), 9.0), ((-2.0, -3.0), -0.125), ((-3.0, 0.5), NAN), ((-1.0, odd), -1.0)]
    points += [
        ((-1.0, even), 1.0),
        ((-2.0, odd), -INF),
        ((-2.0, -odd), -0.0),
        ((-0.5, even), 0.0),
        ((-8.0, 1 / 3), NAN),
    ]
    assert_points("pow", target, dtype, points)


@every_target
@every_float
def test_zeros_ones_and_infinities_have_the_powers_of_c99(dtype, target):
    points = [((0.0, 0.0), 1.0), ((NAN, 0.0), 1.0), ((1.0, NAN), 1.0), ((-1.0, INF), 1.0), ((-1.0, -INF), 1.0)]
    points += [((-0.0, 3.0), -0.0), ((-0.0, 2.0), 0.0), ((-0.0, -3.0), -INF), ((-0.0, -2.0), INF), ((0.0, -0.5), INF)]
    points += [((-INF, 3.0), -INF), ((-INF, 2.0), INF), ((-INF, -3.0), -0.0), ((-INF, 0.5), INF), ((INF, -1.0), 0.0)]
    points += [((0.5, INF), 0.0), ((0.5, -INF), INF), ((-2.0, INF), INF), ((2.0, -INF), 0.0), ((NAN, 1.0), NAN)]
    assert_points("pow", target, dtype, points)


def exact_power(a, b):
    with mpmath.workprec(300):  # mpmath squares repeatedly, which loses bits
        return a**b


@every_target
def test_large_exponents_of_numbers_next_to_1_lose_nothing(target):
    rng = np.random.default_rng(3)
    x = 1 + rng.choice([-1, 1], 200) * 2.0 ** rng.uniform(-50, -8, 200)
    y = rng.uniform(-700, 700, 200) / np.log(x)
    assert worst_ulp(computed("pow", target, x, y), exact_power, x, y) <= 1.5


@every_target
def test_powers_near_the_ends_of_the_range_need_every_bit_of_the_logarithm(target):
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(1.40, 1.4142, 100), rng.uniform(0.7072, 0.715, 100)])
    y = rng.choice([-1, 1], 200) * rng.uniform(650, 708, 200) / np.log(x)
    assert worst_ulp(computed("pow", target, x, y), exact_power, x, y) <= 1.5


@every_target
@every_float
def test_what_leaves_the_range_is_infinite_or_zero_and_what_does_not_is_neither(dtype, target):
    top, bottom = (128.0, -150.0) if dtype == "f4" else (1024.0, -1075.0)
    points = [((2.0, top), INF), ((2.0, np.finfo(dtype).max), INF), ((2.0, -np.finfo(dtype).max), 0.0)]
    points += [
        ((4.0, top / 2 - 0.5), 2.0 ** (top - 1)),
        ((2.0, bottom - 1), 0.0),
        ((2.0, bottom + 1), 2.0 ** (bottom + 1)),
    ]
    assert_points("pow", target, dtype, points)
