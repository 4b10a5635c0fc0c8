"""Mathematics without a C library: large angles, the gamma function, remainders, beside exact and published values."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special

from cgraph.kernels.llvm.rare import RARE, lgamma, remainder
from cgraph.kernels.llvm.vfloat import lane_by_lane
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.emitted import applied, every_target
from tests.support.primitives import INF, NAN, same, worst_ulp
from tests.support.tolerance import assert_near

ALONE = replace(host_target(), has_libc=False)


def computed(f, *xs, target=ALONE):
    return applied(lambda k, *vs: lane_by_lane(k, lambda *us: f(k, *us), *vs), target, *xs, lanes=0)


@every_target
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles_of_either_sign_are_near(name, target):
    rng = np.random.default_rng(1)
    x = 2.0 ** rng.uniform(16, 1023, 200) * rng.choice([-1, 1], 200)
    x[:4] = 5.319372648326541e255, 6381956970095103.0 * 2.0**797, 2.0**1023, np.finfo("f8").max  # near pi/2 times n
    with mpmath.workprec(1200):
        exact = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x]
    got = computed(RARE[name], x, target=replace(target, has_libc=False))
    bound = 4 if name == "tan" else 2
    assert worst_ulp(got, lambda v: exact[list(x).index(float(v))], x) <= bound
    sign = 1 if name == "cos" else -1
    np.testing.assert_array_equal(computed(RARE[name], -x), sign * computed(RARE[name], x))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_infinities_have_no_angle(name):
    assert np.isnan(computed(RARE[name], np.array([INF, -INF, NAN]))).all()


def test_gamma_is_the_factorial_and_leaves_the_range_where_c_does():
    n = np.arange(1, 171, dtype="f8")
    want = np.array([float(math.factorial(int(i) - 1)) for i in n])
    assert (np.abs(computed(RARE["tgamma"], n) - want) <= 16 * np.spacing(want)).all()
    ends = np.array([0.0, -0.0, -1, -2, -170, INF, NAN, 171.7, 1e300, -200.5])
    assert same(computed(RARE["tgamma"], ends), np.array([INF, -INF, NAN, NAN, NAN, INF, NAN, INF, INF, -0.0])).all()


@pytest.mark.parametrize("f", [RARE["tgamma"], lgamma])
def test_below_zero_gamma_is_reflected_with_its_sign(f):
    x = np.array([-0.5, -1.5, -2.5, -3.25, -10.5, -20.75])
    want = special.gamma(x) if f is not lgamma else special.gammaln(x)
    assert_near(computed(f, x), want, "float64 formulas")


def test_the_logarithm_of_gamma_at_its_zeros_its_poles_and_on_both_sides_of_each_recurrence():
    x = np.array([1.0, 2.0, 0.0, -0.0, -1.0, -30.0, INF, -INF, NAN])
    assert same(computed(lgamma, x), np.array([0, 0, INF, INF, INF, INF, INF, INF, NAN]), 0).all()
    x = np.array([0.49, 0.5, 0.51, 1.49, 1.5, 1.51, 2.49, 2.5, 2.51, 3.51, 7.99, 8.0, 8.01, 1e-300, 1e300])
    want = np.array([float(mpmath.loggamma(v)) for v in x])
    assert (np.abs(computed(lgamma, x) - want) <= 8 * np.spacing(np.abs(want))).all()


@every_target
def test_the_remainder_is_exact_at_any_distance_of_exponents(target):
    rng = np.random.default_rng(4)
    x, y = (rng.uniform(-1, 1, 200) * 2.0 ** rng.integers(-1060, 1023, 200) for _ in range(2))
    tiny = 5e-324
    ends = [
        (5, 3),
        (-6, 3),
        (6, -3),
        (0.0, 2),
        (-0.0, 2),
        (tiny, 3),
        (7 * tiny, 3 * tiny),
        (1, tiny),
        (2.0**1023, tiny),
    ]
    low, near = (rng.integers(1, 2**53, 400) * tiny for _ in range(2))  # on both sides of the least normal number
    x, y = (np.concatenate([a, b, c]) for a, b, c in zip((x, y), np.array(ends).T, (-low, near)))
    got = computed(remainder, x, y, target=replace(target, has_libc=False))
    want = [float(abs(Fraction(a)) % abs(Fraction(b))) for a, b in zip(x, y)]
    np.testing.assert_array_equal(got, np.copysign(want, x))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def test_no_remainder_by_zero_or_of_an_infinity_but_any_number_is_left_by_an_infinity():
    x, y = np.array([1.0, INF, NAN, 1.0, -2.5, 0.0]), np.array([0.0, 2.0, 1.0, NAN, INF, -INF])
    assert same(computed(remainder, x, y), np.array([NAN, NAN, NAN, NAN, -2.5, 0.0]), 0).all()
    short = computed(remainder, np.array([5.5, -7], "f4"), np.array([2, 4], "f4"))
    assert short.dtype == np.float32 and short.tolist() == [1.5, -3]
