"""The polynomials of the vector mathematics are as close as they must be, and nearly the best of their degree."""

import mpmath
import pytest
from mpmath import mpf

from cgraph.kernels.llvm import varc, verf, vexp, vhyperbolic, vlog, vpow, vtrig
from tests.support.minimax import chebyshev, minimax, value

HALF_LN2 = mpf("0.3473")
SMALL_SQUARE = mpf("0.1716") ** 2  # of s = f / (2 + f) for m next to sqrt(2)


def odd(f):
    """``(f(r) - r) / r**3`` as a function of z = r**2."""
    return lambda z: (f(mpmath.sqrt(z)) - mpmath.sqrt(z)) / mpmath.sqrt(z) ** 3


def ratio(s):
    """``log((1 + s) / (1 - s)) / s``"""
    return mpmath.log((1 + s) / (1 - s)) / s


# exact function, and the weight that makes an error relative to the result
EXP = (lambda r: (mpmath.expm1(r) - r) / r**2, lambda r: r * r)
LOG = (lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3, lambda f: f * f)
RATIO = (lambda z: (ratio(mpmath.sqrt(z)) - 2) / z, lambda z: z)
RATIO_TAIL = (lambda z: ((ratio(mpmath.sqrt(z)) - 2) / z - mpf(2) / 3) / z, lambda z: z * z)
SIN = (odd(mpmath.sin), lambda z: z)
TAN = (odd(mpmath.tan), lambda z: z)
ASIN = (odd(mpmath.asin), lambda z: z)
ATAN = (odd(mpmath.atan), lambda z: z)
SINH = (odd(mpmath.sinh), lambda z: z)
TANH = (odd(mpmath.tanh), lambda z: z)
ERF = (lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1, lambda z: 1)

TAILS = (  # the error of the normal distribution may grow as its tail shrinks
    lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)), 2) / x,
    lambda x: mpmath.log(2) * x * mpmath.sqrt(mpmath.erfc(x / mpmath.sqrt(2))),
)

# name: coefficients, function and weight, interval, bits that are kept
TABLE = {
    "exp f4": (vexp.TAIL["f4"], EXP, (-HALF_LN2, HALF_LN2), 27.5),
    "exp f8": (vexp.TAIL["f8"], EXP, (-HALF_LN2, HALF_LN2), 56),
    "log f4": (vlog.SHORT, LOG, (mpf("-0.2929"), mpf("0.41422")), 29.5),
    "log f8": (vlog.RATIO, RATIO, (mpf(0), SMALL_SQUARE), 57.5),
    "log for pow": (vpow.RATIO, RATIO_TAIL, (mpf(0), SMALL_SQUARE), 65),
    "sin f4": (vtrig.SIN["f4"], SIN, (mpf(0), (mpmath.pi / 2) ** 2), 26.5),
    "sin f8": (vtrig.SIN["f8"], SIN, (mpf(0), (mpmath.pi / 2) ** 2), 57),
    "tan": (vtrig.TAN, TAN, (mpf(0), (mpmath.pi / 4) ** 2), 57),
    "asin": (varc.ASIN, ASIN, (mpf(0), mpf(1) / 4), 55.5),
    "atan": (varc.ATAN, ATAN, (mpf(0), (mpmath.sqrt(2) - 1) ** 2), 57),
    "sinh": (vhyperbolic.SINH, SINH, (mpf(0), mpf(1)), 56),
    "tanh f4": (vhyperbolic.TANH["f4"], TANH, (mpf(0), mpf("0.55") ** 2), 28.5),
    "tanh f8": (vhyperbolic.TANH["f8"], TANH, (mpf(0), mpf("0.55") ** 2), 54),
    "erf f4": (verf.NEAR["f4"], ERF, (mpf(0), mpf(1)), 29),
    "erf f8": (verf.NEAR["f8"], ERF, (mpf(0), mpf(1)), 54.5),
    "ndtr f4": (verf.LOG2_TAILS, TAILS, (mpf(0), mpf("5.6")), 27),
}


def worst_error(name):
    """The largest weighted error of the coefficients as they are in the code."""
    coefficients, (f, weight), (low, high), _ = TABLE[name]
    exact = [mpf(c) for c in coefficients]
    return max(weight(x) * abs(value(exact, x) - f(x)) for x in chebyshev(low, high, 101))


@pytest.mark.parametrize("name", TABLE)
def test_a_polynomial_keeps_the_bits_that_its_format_needs(name):
    with mpmath.workdps(90):
        assert worst_error(name) < mpf(2) ** -TABLE[name][3]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_a_polynomial_is_near_the_best_of_its_degree_but_for_rounded_coefficients(name):
    coefficients, (f, weight), (low, high), _ = TABLE[name]
    _, least = minimax(f, weight, low, high, len(coefficients) - 1)
    with mpmath.workdps(90):
        rounding = max(abs(weight(x)) for x in (low, high)) * max(map(abs, coefficients)) / 2**33
        assert worst_error(name) < 3 * least + (rounding if name.endswith("f4") else mpf(2) ** -53)
