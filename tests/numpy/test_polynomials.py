"""Polynomials fitted to one and to several rows of values, with weights, and the number of coefficients."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X = np.linspace(-2, 3, 9)


@pytest.mark.parametrize("deg", [0, 1, 2])
@pytest.mark.parametrize("columns", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_column_of_values_has_its_own_coefficients(deg, columns, weighted):
    """Also where there are as many columns as coefficients."""
    y = RNG.standard_normal(9 if columns is None else (9, columns))
    w = RNG.uniform(0.5, 2, 9) if weighted else None
    want = np.polyfit(X, y, deg, w=w)
    nodes = [cg.Var(v.shape, "float64").assign(v) for v in (X, y)]
    got = cg.numpy.polyfit(*nodes, deg, w=None if w is None else cg.Const(w)).eval()
    assert got.shape == want.shape
    assert_near(got, want, "float64 conditioned")


def test_positions_and_values_are_as_many():
    for x, y in ((X, X[1:]), (X[None], X), (X, np.zeros((9, 2, 2)))):
        with pytest.raises(ShapeError, match="differ in number; give one value for each position"):
            cg.numpy.polyfit(cg.Const(x), cg.Const(y), 1)
