"""Inverse trigonometric functions: ends of their domains, where formulas change, every quadrant of atan2."""

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
    worst_ulp,
)

PI = np.pi
FUNCTIONS = {"asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan}


@every_target
@every_float
def test_atan2_at_every_exponent_and_at_both_ends(dtype, target):
    x, y = pairs_at_every_exponent(dtype)
    for one, other in ((x, y), (y, x)):
        error = worst_ulp(computed("atan2", target, one, other), mpmath.atan2, one, other)
        assert error <= (0.51 if dtype == "f4" else 2)


@every_target
@every_float
def test_ends_of_the_domains_have_multiples_of_pi_and_what_is_outside_nothing(dtype, target):
    above = np.nextafter(np.array(1, dtype), 2)
    outside = [(x, NAN) for x in (above, -above, 2.0, -INF, INF, NAN)]
    assert_points("asin", target, dtype, [(1.0, PI / 2), (-1.0, -PI / 2), (0.0, 0.0), (-0.0, -0.0), *outside])
    assert_points("acos", target, dtype, [(1.0, 0.0), (-1.0, PI), (0.0, PI / 2), (-0.0, PI / 2), *outside])
    assert_points("atan", target, dtype, [(INF, PI / 2), (-INF, -PI / 2), (0.0, 0.0), (-0.0, -0.0), (1.0, PI / 4)])


@every_target
@every_float
@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_formulas_change_and_next_to_the_ends_both_sides_are_near(name, dtype, target):
    eps = np.finfo(dtype).eps
    ends = [0.5, 0.5 + eps, 0.5 - eps, 1 - eps, 1 - 5 * eps, 0.41421356, 0.41421357, 2.4142134, 2.4142137, 1e-30]
    x = np.array([s * v for v in ends for s in (1, -1) if name == "atan" or v < 1], dtype)
    assert worst_ulp(computed(name, target, x), FUNCTIONS[name], x) <= 2


@every_target
@every_float
def test_small_and_subnormal_numbers_are_their_own_arcsine_and_arctangent(dtype, target):
    tiny = np.finfo(dtype).smallest_subnormal
    for name in ("asin", "atan"):
        assert_points(name, target, dtype, [(x, x) for x in (tiny, -tiny, 3 * tiny, np.finfo(dtype).tiny)])


@every_target
@every_float
def test_each_quadrant_and_each_axis_has_its_angle(dtype, target):
    points = [((1.0, 1.0), PI / 4), ((1.0, -1.0), 3 * PI / 4), ((-1.0, -1.0), -3 * PI / 4), ((-1.0, 1.0), -PI / 4)]
    points += [((0.0, 1.0), 0.0), ((-0.0, 1.0), -0.0), ((0.0, -1.0), PI), ((-0.0, -1.0), -PI)]
    points += [((2.0, 0.0), PI / 2), ((2.0, -0.0), PI / 2), ((-2.0, 0.0), -PI / 2), ((-2.0, -0.0), -PI / 2)]
    points += [((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0), ((0.0, -0.0), PI), ((-0.0, -0.0), -PI)]
    assert_points("atan2", target, dtype, points, ulp=1)


@every_target
@every_float
def test_infinities_and_subnormal_numbers_have_the_angle_of_their_ratio(dtype, target):
    tiny, large = (float(x) for x in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max))
    points = [((INF, INF), PI / 4), ((INF, -INF), 3 * PI / 4), ((-INF, INF), -PI / 4), ((-INF, -INF), -3 * PI / 4)]
    points += [((INF, 1.0), PI / 2), ((1.0, INF), 0.0), ((-1.0, INF), -0.0), ((1.0, -INF), PI), ((-1.0, -INF), -PI)]
    points += [((tiny, tiny), PI / 4), ((tiny, 1.0), tiny), ((large, large), PI / 4), ((tiny, large), 0.0)]
    points += [((NAN, 1.0), NAN), ((1.0, NAN), NAN), ((NAN, INF), NAN), ((0.0, NAN), NAN), ((3 * tiny, 1.0), 3 * tiny)]
    assert_points("atan2", target, dtype, points, ulp=1)
