"""The error function, its complement and the normal distribution: far tails, symmetry, where formulas change."""

import mpmath
import numpy as np
import pytest
from scipy import special

from tests.support.primitives import INF, NAN, assert_points, computed, every_float, every_target, same, worst_ulp


@every_target
@every_float
def test_the_normal_distribution_is_as_exact_as_its_largest_value_everywhere(dtype, target):
    x = np.linspace(-40, 40, 20001).astype(dtype)
    got, want = computed("ndtr", target, x).astype("f8"), special.ndtr(x.astype("f8"))
    assert np.abs(got - want).max() < {"f4": 1e-7, "f8": 1e-15}[dtype]
    assert (got[x < -14] < 1e-38).all() and (np.diff(got) >= -1e-7).all()


@every_target
@every_float
def test_infinities_zeros_and_no_number(dtype, target):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    assert_points("erf", target, dtype, [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (tiny, tiny)])
    assert_points("erfc", target, dtype, [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (-0.0, 1.0), (NAN, NAN), (-tiny, 1.0)])
    assert_points("ndtr", target, dtype, [(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (NAN, NAN), (tiny, 0.5)])


@every_target
@every_float
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_where_formulas_change_both_sides_are_near(name, dtype, target):
    eps = np.finfo(dtype).eps
    x = np.array([s * v for v in (0.5, 0.5 + eps, 1, 1 - eps, 1 + eps, 3.999, 4.001, 2.5) for s in (1, -1)], dtype)
    bound = {"erf": 2, "erfc": 4}[name] if dtype == "f8" or name == "erf" else 0.51
    assert worst_ulp(computed(name, target, x), getattr(mpmath, name), x) <= bound


@every_target
@every_float
def test_the_error_function_is_odd_and_its_complement_ends_at_2(dtype, target):
    x = np.linspace(0.01, 6, 64).astype(dtype)
    np.testing.assert_array_equal(computed("erf", target, -x), -computed("erf", target, x))
    left = computed("erfc", target, -x)
    assert (left > 1).all() and same(left, 2 - special.erfc(x.astype("f8")).astype(dtype), 1).all()


@every_target
def test_the_far_tail_of_the_complement_ends_in_subnormal_numbers_and_then_zero(target):
    x = np.array([26.0, 26.5, 26.6, 27.0, 27.2, 27.3, 28.0, 29.0, 30.0])
    got = computed("erfc", target, x)
    with mpmath.workdps(60):
        want = np.array([float(mpmath.erfc(v)) for v in x])
    assert got[-3:].tolist() == [0, 0, 0] and (got[:5] > 0).all()
    assert (np.abs(got - want) <= 4 * np.spacing(want)).all()
    assert_points("erfc", target, "f4", [(10.0, float(special.erfc(10.0))), (11.0, 0.0), (1e30, 0.0)])
    assert_points("erfc", target, "f8", [(1e300, 0.0), (-1e300, 2.0)])


@every_target
@every_float
def test_both_sides_of_the_normal_distribution_sum_to_1(dtype, target):
    x = np.linspace(0, 5, 64).astype(dtype)
    sums = computed("ndtr", target, x).astype("f8") + computed("ndtr", target, -x)
    assert np.abs(sums - 1).max() <= np.finfo(dtype).eps
