"""Hyperbolic functions and their inverses: zeros, where formulas change, where results leave the range."""

import mpmath
import numpy as np
import pytest

from tests.support.primitives import INF, NAN, assert_points, computed, every_float, every_target, same, worst_ulp

ODD = ["sinh", "tanh", "asinh", "atanh"]
FUNCTIONS = {name: getattr(mpmath, name) for name in (*ODD, "cosh", "acosh")}
LAST = {"f4": 89.415985, "f8": 710.4758600739439}  # the largest number of the dtype whose cosh is finite


@every_target
@every_float
@pytest.mark.parametrize("name", ODD)
def test_odd_functions_keep_zeros_tiny_numbers_and_signs(name, dtype, target):
    info = np.finfo(dtype)
    assert_points(name, target, dtype, [(x, x) for x in (0.0, -0.0, info.smallest_subnormal, -info.tiny)])
    x = np.linspace(0.01, 0.99, 64).astype(dtype)
    np.testing.assert_array_equal(computed(name, target, -x), -computed(name, target, x))


@every_target
@every_float
def test_even_functions_forget_the_sign(dtype, target):
    x = np.linspace(0, 80, 64).astype(dtype)
    np.testing.assert_array_equal(computed("cosh", target, -x), computed("cosh", target, x))
    assert_points("cosh", target, dtype, [(0.0, 1.0), (-0.0, 1.0)])


@every_target
@every_float
def test_at_infinity_and_without_a_number(dtype, target):
    for name, up, down in (("sinh", INF, -INF), ("cosh", INF, INF), ("tanh", 1.0, -1.0), ("asinh", INF, -INF)):
        assert_points(name, target, dtype, [(INF, up), (-INF, down), (NAN, NAN)])
    for name in ("acosh", "atanh"):
        assert_points(name, target, dtype, [(INF, INF if name == "acosh" else NAN), (-INF, NAN), (NAN, NAN)])


@every_target
@every_float
def test_results_are_finite_up_to_the_last_argument_that_has_one(dtype, target):
    last = np.array([LAST[dtype]], dtype)
    beyond = np.nextafter(last, INF)
    for name, f in (("sinh", mpmath.sinh), ("cosh", mpmath.cosh)):
        got = computed(name, target, last)
        assert np.isfinite(got).all() and worst_ulp(got, f, last) <= 3
        assert np.isinf(computed(name, target, beyond + 1)).all()
    assert_points("tanh", target, dtype, [(LAST[dtype], 1.0), (-1e30, -1.0), (25.0, 1.0)])


@every_target
@every_float
@pytest.mark.parametrize(
    ("name", "points"),
    [("tanh", [0.55, 1, 9]), ("sinh", [1, 40]), ("cosh", [40, 1]), ("asinh", [2.0**28, 1]), ("acosh", [2.0**28, 1.5])],
)
def test_where_formulas_change_both_sides_are_near(name, points, dtype, target):
    x = np.array([p * (1 + s * 2.0**-20) for p in points for s in (-1, 0, 1)], dtype)
    assert worst_ulp(computed(name, target, x), FUNCTIONS[name], x) <= 2


@every_target
@every_float
def test_inverses_at_the_ends_of_their_domains(dtype, target):
    above, below = (np.nextafter(np.array(1, dtype), side) for side in (2, 0))
    assert_points("acosh", target, dtype, [(1.0, 0.0), (below, NAN), (0.0, NAN), (-1.0, NAN)])
    assert_points("atanh", target, dtype, [(1.0, INF), (-1.0, -INF), (above, NAN), (-above, NAN), (-3.0, NAN)])
    for name, x in (("acosh", above), ("atanh", below), ("atanh", -below)):
        x = x.reshape(1)
        assert worst_ulp(computed(name, target, x), FUNCTIONS[name], x) <= 2


@every_target
@every_float
def test_the_largest_numbers_have_finite_inverses(dtype, target):
    x = np.array([np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
    with np.errstate(over="ignore"):
        assert same(computed("asinh", target, x), np.arcsinh(x.astype("f8")).astype(dtype), 2).all()
    np.testing.assert_array_equal(computed("acosh", target, x[:1]), computed("asinh", target, x[:1]))
