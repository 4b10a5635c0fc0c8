"""The gamma function and its derivatives: published values, poles, reflection, recurrence, dtypes."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.gamma import series
from tests.autodiff.differences import check_first
from tests.support.computed import computed, float64, gradients
from tests.support.tolerance import assert_near

INF, NAN = math.inf, math.nan
EULER = 0.5772156649015329  # Euler's constant; the values below are in DLMF, chapter 5
ZETA = math.pi**2 / 6


def by_kernels(*nodes):
    """The values of the kernels, whose formulas are of this module; `computed` returns SciPy's."""
    computed(*nodes)
    values = cg.compile(list(nodes))()
    return values[0] if len(nodes) == 1 else values


def test_values_at_integers_and_halves():
    x = float64([1.0, 2.0, 5.0, 0.5, -0.5, 11.0])
    root = math.sqrt(math.pi)
    assert_near(by_kernels(cg.gamma(x)), [1, 1, 24, root, -2 * root, 3628800], "float64 formulas")
    want = [0, 0, math.log(24), math.log(root), math.log(2 * root), math.log(3628800)]
    assert_near(by_kernels(cg.lgamma(x)), want, "float64 formulas near zero")
    halves = -EULER - 2 * math.log(2)
    harmonic = [sum(1 / k for k in range(1, n)) - EULER for n in (1, 2, 5, 11)]
    want = [*harmonic[:3], halves, halves + 2, harmonic[3]]
    assert_near(by_kernels(cg.digamma(x)), want, "float64 formulas")
    squares = [ZETA - sum(1 / k**2 for k in range(1, n)) for n in (1, 2, 5, 11)]
    want = [*squares[:3], math.pi**2 / 2, math.pi**2 / 2 + 4, squares[3]]
    assert_near(by_kernels(cg.trigamma(x)), want, "float64 formulas")


def test_poles_and_ends():
    x = float64([0.0, -0.0, -1.0, -2.0, INF])
    np.testing.assert_array_equal(by_kernels(cg.gamma(x)), [INF, -INF, NAN, NAN, INF])
    np.testing.assert_array_equal(by_kernels(cg.lgamma(x)), [INF] * 5)
    np.testing.assert_array_equal(by_kernels(cg.digamma(x)), [-INF, INF, NAN, NAN, INF])
    np.testing.assert_array_equal(by_kernels(cg.trigamma(x)), [INF, INF, INF, INF, 0])
    assert computed(cg.gamma(float64([171.0, 172.0]))).tolist()[1] == INF
    assert_near(by_kernels(cg.lgamma(float64([172.0]))), [math.lgamma(172)], "float64 formulas")


@pytest.mark.parametrize("at", [-7.25, -0.75, 0.1, 2.5, 9.5, 9.999, 10.0, 10.5, 1e6])
def test_recurrence_and_reflection_hold_on_both_sides_of_the_series(at):
    x, above, mirrored = float64([at], [at + 1], [1 - at])
    psi, psi_above, psi_mirrored = by_kernels(cg.digamma(x), cg.digamma(above), cg.digamma(mirrored))
    assert_near(psi_above - psi, [1 / at], "float64 formulas near zero")
    slope, slope_above = by_kernels(cg.trigamma(x), cg.trigamma(above))
    assert_near(slope - slope_above, [1 / at**2], "float64 formulas near zero")
    if at != round(at):
        assert_near(psi_mirrored - psi, [math.pi / math.tan(math.pi * at)], "float64 formulas near zero")


def test_gradients_are_the_next_function():
    at = [0.5, 3.0, -1.5]
    x = float64(at)
    np.testing.assert_array_equal(gradients(cg.lgamma(x), x), computed(cg.digamma(x)))
    np.testing.assert_array_equal(gradients(cg.digamma(x), x, seed=[1, 2, 3]), computed(cg.trigamma(x)) * [1, 2, 3])
    check_first(cg.gamma, [np.array(at)])


def test_dtypes():
    for name in ("gamma", "lgamma", "digamma", "trigamma"):
        function = getattr(cg, name)
        assert [str(function(cg.Var((1,), d)).dtype) for d in ("int8", "int32", "float32")] == [
            "float32", "float64", "float32",
        ]  # fmt: skip
    single = cg.Var(np.array([0.3, 4.5, 33.0], "float32"))
    assert_near(computed(cg.lgamma(single)), [math.lgamma(v) for v in single.value.tolist()], "float32 formulas")


def test_the_series_alternates():
    assert series(0.5, (2.0, 3.0, 5.0)) == 4 * (2 - 4 * (3 - 4 * 5))
