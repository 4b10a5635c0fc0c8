"""Sine, cosine and tangent: zeros, symmetry to the bit, quadrants, multiples of pi, the limit of the reduction."""

import mpmath
import numpy as np
import pytest

from tests.support.primitives import INF, NAN, assert_points, computed, every_float, every_target, same, worst_ulp

FUNCTIONS = {"sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan}
LIMIT = {"f4": 1.0e5, "f8": 1.5e6}  # from here on the C library reduces
every_name = pytest.mark.parametrize("name", FUNCTIONS)


@every_target
@every_name
def test_huge_arguments_and_those_next_to_multiples_of_half_pi(name, target):
    x8 = np.array([1e22, 2.0**1000, 1e300, 2.0**300, 1.5e6, 1.6e6, np.pi, 11 * np.pi / 2, 1e6 * np.pi])
    x4 = np.array([1e5, 1.1e5, 3e38, 16367173 * 2.0**72, 355, 1e10, 99999.5], "f4")
    for x in (x8, x4):
        assert worst_ulp(computed(name, target, x), FUNCTIONS[name], x) <= 2


@every_target
@every_float
def test_zeros_keep_their_sign_and_small_numbers_their_value(dtype, target):
    tiny = np.finfo(dtype).smallest_subnormal
    for name in ("sin", "tan"):
        assert_points(name, target, dtype, [(x, x) for x in (0.0, -0.0, tiny, -tiny)])
    assert_points("cos", target, dtype, [(x, 1.0) for x in (0.0, -0.0, tiny, -tiny)])


@every_target
@every_float
@every_name
def test_an_infinity_has_no_angle(name, dtype, target):
    assert_points(name, target, dtype, [(INF, NAN), (-INF, NAN), (NAN, NAN)])


@every_target
def test_multiples_of_pi_as_floats_have_the_published_values(target):
    """The float64 next to pi is 1.2246467991473532e-16 below it (OEIS A000796 to 32 digits)."""
    rest = 1.2246467991473532e-16
    assert_points("sin", target, "f8", [(np.pi, rest), (-np.pi, -rest), (2 * np.pi, -2 * rest)])
    assert_points("cos", target, "f8", [(np.pi / 2, rest / 2), (np.pi, -1.0), (-np.pi, -1.0), (2 * np.pi, 1.0)])
    assert_points("tan", target, "f8", [(np.pi, -rest), (np.pi / 2, 1.633123935319537e16)], ulp=2)


@every_target
@every_float
@every_name
def test_every_quadrant_has_its_sign_and_its_value(name, dtype, target):
    x = (np.arange(-16, 17) * (np.pi / 4) + 0.3).astype(dtype)
    got = computed(name, target, x)
    assert worst_ulp(got, FUNCTIONS[name], x) <= 2
    np.testing.assert_array_equal(np.sign(got), np.sign(getattr(np, name)(x.astype("f8"))))
    sign = 1 if name == "cos" else -1
    np.testing.assert_array_equal(computed(name, target, -x), sign * got)


@every_target
@every_float
@every_name
def test_both_sides_of_the_limit_are_exact_and_a_large_lane_leaves_its_neighbours_alone(name, dtype, target):
    limit = np.array([LIMIT[dtype]], dtype)
    ends = np.concatenate([limit, np.nextafter(limit, INF), np.nextafter(limit, 0), -limit, limit * 3])
    assert worst_ulp(computed(name, target, ends), FUNCTIONS[name], ends) <= 2
    x = np.linspace(-3, 3, 64).astype(dtype)
    alone = computed(name, target, x)
    beside = x.copy()
    beside[17] = 1e30
    mixed = computed(name, target, beside)
    keep = np.arange(64) != 17
    assert same(mixed[keep], alone[keep], 0).all()
    assert worst_ulp(mixed[17:18], FUNCTIONS[name], beside[17:18]) <= 2
