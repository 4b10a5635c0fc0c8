"""Polynomials fitted to one and to several rows of values, with weights, and the number of coefficients."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from tests.numpy.evaluated import compare, drawn
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


@pytest.mark.parametrize("function", ["polyadd", "polysub", "polymul"])
def test_operands_of_every_pair_of_lengths(function):
    for m, n in product(range(1, 5), repeat=2):
        for dtype in ("float64", "int32", "complex128"):
            compare(f"np.{function}(a, b)", dtype, a=drawn((m,), dtype) + 1, b=drawn((n,), dtype, 1) + 1)
    compare(f"np.{function}(a, 3), np.{function}(2.5, a)", a=drawn((3,)))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_derivatives_and_integrals_of_every_degree(n):
    p = drawn((n,)) + 1
    for m in range(n + 1):
        compare(f"np.polyder(p, {m}), np.polyint(p, {m})", p=p)
    compare(
        "np.polyder(p), np.polyint(p), np.polyint(p, 2, 3.0), np.polyint(p, k=5), np.polyint(p, 2, [1.0, 2.0])", p=p
    )


def test_values_at_places_of_any_shape_and_by_any_number_of_coefficients():
    for n, shape in product((0, 1, 3), ((), (4,), (2, 3), (0,))):
        compare("np.polyval(p, x)", p=drawn((n,)), x=drawn(shape, seed=1))
    compare("np.polyval([1, 2, 3], x), np.polyval(p, 2), np.polyval([p[0], 1.5], x)", p=drawn((3,)), x=drawn((2,)))
    for n in range(4):
        compare("np.poly(p)", p=drawn((n,)) + 1)
    compare("np.poly(p)", p=np.array([1, 2, 3]))
