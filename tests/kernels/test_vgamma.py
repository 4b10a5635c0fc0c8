"""The gamma function and its logarithm: factorials, poles, the end of the range, a value for each lane."""

import math

import numpy as np
from scipy import special

from tests.support.primitives import INF, NAN, assert_points, computed, every_float, every_target
from tests.support.tolerance import assert_near


@every_target
@every_float
def test_gamma_and_its_logarithm(dtype, target):
    x = np.array([0.5, 1, 4, 10.25, -0.5, -3.5, 30, 1e-3, INF, NAN], dtype)
    for name, f in (("gamma", special.gamma), ("lgamma", special.gammaln)):
        want = f(x.astype("f8"))
        assert_near(computed(name, target, x), want.astype(dtype), "gamma")


@every_target
def test_each_lane_has_its_own_factorial(target):
    n = np.arange(1, 38)  # whole vectors and elements after them
    want = [float(math.factorial(i - 1)) for i in n]
    assert_near(computed("gamma", target, n.astype("f8")), np.array(want), "gamma")
    assert_near(computed("lgamma", target, n.astype("f8")), np.array([math.log(x) for x in want]), "gamma")


@every_target
@every_float
def test_poles_ends_and_no_number_are_those_of_c(dtype, target):
    beyond = 36.0 if dtype == "f4" else 172.0
    points = [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (-30.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN), (beyond, INF)]
    assert_points("gamma", target, dtype, points)
    points = [(0.0, INF), (-0.0, INF), (-1.0, INF), (-30.0, INF), (-INF, INF), (INF, INF), (NAN, NAN), (1.0, 0.0)]
    assert_points("lgamma", target, dtype, [*points, (2.0, 0.0)])


@every_target
@every_float
def test_the_logarithm_is_that_of_the_magnitude(dtype, target):
    """gamma(-1/2) = -2 sqrt(pi), gamma(-3/2) = 4/3 sqrt(pi) (DLMF 5.4.6, 5.5.1)."""
    root = math.sqrt(math.pi)
    want = np.array([-2 * root, 4 / 3 * root], dtype)
    x = np.array([-0.5, -1.5], dtype)
    assert_near(computed("gamma", target, x), want, "gamma")
    assert_near(computed("lgamma", target, x), np.log(np.abs(want.astype("f8"))).astype(dtype), "gamma")
