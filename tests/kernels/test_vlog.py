"""Logarithms at their ends: zeros, subnormals, next to 1, powers of the base, where 1 + x loses x."""

import mpmath
import numpy as np
import pytest

from tests.support.primitives import INF, NAN, assert_points, computed, every_float, every_target, worst_ulp

LOGARITHMS = {"log": mpmath.log, "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10}


@every_target
def test_powers_of_two_and_ten_have_exact_logarithms(target):
    n = np.arange(-300, 300)
    np.testing.assert_array_equal(computed("log2", target, 2.0**n), n)
    np.testing.assert_array_equal(computed("log10", target, np.array([float(f"1e{i}") for i in range(23)])), range(23))


@every_target
@every_float
def test_subnormal_powers_of_two_have_exact_logarithms(dtype, target):
    least, normal = (-149, -126) if dtype == "f4" else (-1074, -1022)
    n = np.arange(least, normal + 2)
    np.testing.assert_array_equal(computed("log2", target, np.ldexp(np.ones(len(n), dtype), n)), n.astype(dtype))


@every_target
@every_float
@pytest.mark.parametrize("name", LOGARITHMS)
def test_zeros_have_minus_infinity_and_negative_numbers_nothing(name, dtype, target):
    tiny = np.finfo(dtype).smallest_subnormal
    points = [(0.0, -INF), (-0.0, -INF), (-tiny, NAN), (-1.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN), (1.0, 0.0)]
    assert_points(name, target, dtype, points)


@every_target
@every_float
@pytest.mark.parametrize("name", LOGARITHMS)
def test_next_to_1_and_in_subnormal_numbers_no_bits_are_lost(name, dtype, target):
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).smallest_subnormal
    near = [1 + s * k * eps for k in (0.5, 1, 2, 3, 17, 1001) for s in (1, -1) if k >= 1 or s < 0]
    x = np.array([*near, *(tiny * k for k in (1, 3, 5, 1001)), 0.70710677, 0.7071069, 1.4142135, 1.4142137], dtype)
    assert worst_ulp(computed(name, target, x), LOGARITHMS[name], x) <= 1


@every_target
@every_float
def test_log1p_of_small_numbers_is_the_number_with_its_sign(dtype, target):
    info = np.finfo(dtype)
    small = [0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.tiny, -info.tiny, info.eps / 16]
    assert_points("log1p", target, dtype, [(x, x) for x in small])


@every_target
@every_float
def test_log1p_at_minus_1_beyond_it_and_at_infinity(dtype, target):
    below = np.nextafter(np.array(-1, dtype), -2)
    assert_points(
        "log1p", target, dtype, [(-1.0, -INF), (below, NAN), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)]
    )
    above = np.nextafter(np.array([-1], dtype), 0)
    assert worst_ulp(computed("log1p", target, above), mpmath.log1p, above) <= 1


@every_target
@every_float
def test_log1p_where_the_sum_rounds_away_bits_of_either_term(dtype, target):
    bits = 24 if dtype == "f4" else 53
    x = 2.0 ** np.arange(-bits - 3, bits + 4) * 1.2345678901
    x = np.concatenate([x, -x[x < 1], x * 1.5]).astype(dtype)
    assert worst_ulp(computed("log1p", target, x), mpmath.log1p, x) <= 1


@every_target
def test_log_of_the_largest_number_is_finite(target):
    assert_points("log", target, "f8", [(np.finfo("f8").max, 709.782712893384), (5e-324, -744.4400719213812)])
    assert_points("log10", target, "f8", [(np.finfo("f8").max, 308.2547155599167), (5e-324, -323.3062153431158)], 1)
