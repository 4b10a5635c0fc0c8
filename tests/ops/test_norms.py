"""Norms: every order of vectors and matrices as NumPy's, axes in any order, kept axes, gradients at zero."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ops.norms import extreme, power_of_size
from tests.autodiff.differences import check_first
from tests.support.computed import computed, float64, gradients
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 2))
Z = X + 1j * RNG.normal(size=X.shape)
INF = np.inf


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, -2.5, INF, -INF])
def test_vectors(order, keep):
    for x in (X, Z):
        for axis in (0, -1, (1,)):
            got = computed(cg.norm(cg.Var(x), order, axis, keepdims=keep))
            want = np.linalg.norm(x, order, axis if isinstance(axis, int) else axis[0], keep)
            assert_near(got, want, "float64 formulas")
            assert got.dtype == "float64"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, -2)])
def test_matrices_over_axes_in_any_order(axes, order, keep):
    for x in (X, Z):
        got = computed(cg.norm(cg.Var(x), order, axes, keepdims=keep))
        assert_near(got, np.linalg.norm(x, order, axes, keep), "float64 formulas")


def test_all_elements_by_default_and_integers_as_float64():
    x = cg.Var(np.array([[3, 0], [0, -4]], "int32"))
    assert computed(cg.norm(x)) == 5 and cg.norm(x).dtype == "float64"
    assert computed(cg.norm(x, 1)) == 4  # of the matrix
    assert computed(cg.norm(x, keepdims=True)).shape == (1, 1)
    assert computed(cg.norm(float64([3.0, -4.0]), 1)) == 7
    assert cg.norm(cg.Var((2,), "float32"), 3).dtype == "float32"


def test_orders_and_axes_that_are_unknown_are_refused():
    x = cg.Var((2, 3, 4), name="x")
    with pytest.raises(ShapeError, match="matrix norm of order 3 is unknown; use 'fro', 'nuc', 1, -1, 2, -2, inf"):
        cg.norm(x, 3, (0, 1))
    with pytest.raises(ShapeError, match=r"3 axes of x float32\[2,3,4\] for a norm of order 2; pass one or two axes"):
        cg.norm(x, 2)
    with pytest.raises(ShapeError, match="name one axis twice"):
        cg.norm(x, 2, (1, -2))


@pytest.mark.parametrize("order", [None, 2, 3, 0.5, 1, 1.5])
def test_the_gradient_at_zero_is_zero(order):
    x = float64([[0.0, 0.0], [3.0, 0.0]])
    got = gradients(cg.norm(x, order, 1), x)
    assert_near(got, [[0, 0], [1, 0]], "float64 formulas")


def test_powers_of_sizes_have_a_value_of_their_own_at_zero():
    x = float64([0.0, 4.0])
    assert computed(power_of_size(x, 0.5, 0.0)).tolist() == [0, 2]
    assert computed(power_of_size(x, -0.5, INF)).tolist() == [INF, 0.5]
    assert gradients(power_of_size(x, 0.5, 0.0), x).tolist() == [0, 0.25]
    assert (computed(extreme(x, INF)(0)), computed(extreme(x, -1)(0))) == (4, 0)


def test_gradients_agree_with_differences():
    for order in (None, 1, 2, 3, -1.5, INF, -INF):
        check_first(lambda x, p=order: cg.norm(x, p, 1), [X[:, :, 0]])
    for order in ("fro", "nuc", 1, 2, -2, INF):
        check_first(lambda x, p=order: cg.norm(x, p, (0, 1)), [X])
