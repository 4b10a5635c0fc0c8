"""The gamma function and its derivatives: pointwise, in a float dtype."""

from math import inf, nan, pi
from typing import Any

import numpy as np

from cgraph.ops.elementary import Elementary
from cgraph.ops.family import unary

SHIFTS = 10  # from here on the asymptotic series is exact to the last bits of a float64


def _scipy(name: str, *first: int) -> Any:
    def function(x: np.ndarray) -> np.ndarray:
        import scipy.special

        return np.asarray(getattr(scipy.special, name)(*first, x), x.dtype)

    return staticmethod(function)


class Gamma(Elementary):
    """The gamma function, (x - 1)! for integers x; NaN at negative integers."""

    primitive, numpy = "gamma", _scipy("gamma")

    def grad(self, node, g):
        return (g * node * digamma(node.operands[0]),)


class Lgamma(Elementary):
    """The logarithm of the absolute value of the gamma function; infinity at 0 and negative integers."""

    primitive, numpy = "lgamma", _scipy("gammaln")

    def grad(self, node, g):
        return (g * digamma(node.operands[0]),)


class Digamma(Elementary):
    """The derivative of lgamma; NaN at negative integers.

    Computed by reflection below 0, by recurrence up to 10, and by the asymptotic series from there.
    Source: NIST Digital Library of Mathematical Functions, 5.5.2, 5.5.4, 5.11.2.
    """

    numpy = _scipy("digamma")

    def scalar(self, m, x):
        below = x <= 0.0
        at, total = m.where(below, 1.0 - x, x), m.const(0.0, x.dtype)
        for _ in range(SHIFTS):
            small = at < float(SHIFTS)
            total = m.where(small, total - 1.0 / at, total)
            at = m.where(small, at + 1.0, at)
        value = total + m.log(at) - 0.5 / at - series(at, (1 / 12, 1 / 120, 1 / 252, 1 / 240, 1 / 132, 691 / 32760))
        fraction = x - m.rint(x)
        value = m.where(below, value - pi / m.tan(pi * fraction), value)
        pole = m.where(m.eq(x, 0.0), m.copysign(m.const(-inf, x.dtype), -x), m.const(nan, x.dtype))
        return m.where(below & m.eq(fraction, 0.0), pole, value)

    def grad(self, node, g):
        return (g * trigamma(node.operands[0]),)


class Trigamma(Elementary):
    """The derivative of digamma; infinity at 0 and negative integers.

    Source: NIST Digital Library of Mathematical Functions, 5.15.5, 5.15.6, 5.15.8.
    """

    numpy = _scipy("polygamma", 1)

    def scalar(self, m, x):
        below = x <= 0.0
        at, total = m.where(below, 1.0 - x, x), m.const(0.0, x.dtype)
        for _ in range(SHIFTS):
            small = at < float(SHIFTS)
            total = m.where(small, total + 1.0 / (at * at), total)
            at = m.where(small, at + 1.0, at)
        tail = series(at, (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730))
        value = total + (1.0 + 0.5 / at + tail) / at
        sine = m.sin(pi * (x - m.rint(x)))
        return m.where(below, pi * pi / (sine * sine) - value, value)


def series(x: Any, factors: tuple[float, ...]) -> Any:
    """Return ``z * (f0 - z * (f1 - z * (…)))`` with ``z = 1 / (x * x)``."""
    z = 1.0 / (x * x)
    total = z * factors[-1]
    for factor in reversed(factors[:-1]):
        total = z * (factor - total)
    return total


gamma, lgamma = unary(Gamma, real=True), unary(Lgamma, real=True)
digamma, trigamma = unary(Digamma, real=True), unary(Trigamma, real=True)
