"""The Bessel function i0 is NumPy's on both sides of 8, for numbers of any size and sign."""

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.evaluated import compare
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_values_near_8_and_far_from_it(dtype):
    x = np.array([0.0, 1e-9, 0.5, 1.0, 3.75, 7.5, 7.999, 8.0, 8.001, 8.5, 12.0, 20.0, 30.0])
    x = np.concatenate([x, -x]) if dtype != "uint8" else x
    if dtype == "float32":  # NumPy computes these in float64
        compare("np.i0(x.astype('float64'))", x=x)
    else:
        compare("np.i0(x)", x=x.astype(dtype))


def test_the_gradient_is_that_of_the_formula_which_is_selected():
    """It is i1, at 0, near 8 and where the other formula overflows, too."""
    special = pytest.importorskip("scipy.special")
    x = np.array([0.0, 1e-300, 0.5, 7.999, 8.0, 8.001, 30.0, 700.0])
    x = np.concatenate([x, -x])
    node = cg.Var(x.shape, "float64")
    gradient = cg.compile(cg.gradient(cg.sum(cg.numpy.i0(node)), node), [node])(x)
    assert_near(gradient, special.i1(x), "float64 formulas near zero")


def test_no_elements_and_ends():
    compare("np.i0(x)", x=np.zeros((0, 3)))
    compare("np.i0(x)", x=np.array(2.0))
    compare("np.i0(x)", x=np.array([np.nan, 700.0]))
