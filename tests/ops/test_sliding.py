"""Windows as a further axis: every axis and length as NumPy's, the view, and the gradient that adds overlaps."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.sliding import Sliding
from tests.autodiff.differences import check_second
from tests.support.computed import computed, gradients

X = np.arange(2 * 3 * 4.0).reshape(2, 3, 4)


@pytest.mark.parametrize("axis, length", [(0, 1), (0, 2), (1, 2), (1, 3), (2, 1), (-1, 4), (-2, 2)])
def test_windows_are_numpys_and_gradients_are_sums_over_them(axis, length):
    x = cg.Var(X)
    want = np.lib.stride_tricks.sliding_window_view(X, length, axis)
    node = cg.sliding(x, length, axis)
    np.testing.assert_array_equal(computed(node), want)
    seed = np.arange(1.0, want.size + 1).reshape(want.shape)
    sums = np.zeros_like(X)
    n = X.shape[axis] - length + 1
    for j in range(length):
        np.moveaxis(sums, axis, 0)[j : j + n] += np.moveaxis(seed[..., j], axis, 0)
    np.testing.assert_array_equal(gradients(node, x, seed=seed), sums)


def test_a_window_needs_an_element_and_an_axis_that_holds_it():
    x = cg.Var((2, 3))
    for length in (0, -1, 4):
        with pytest.raises(ShapeError, match=f"windows of {length} do not fit an axis of 3; pass a length from 1 to 3"):
            cg.sliding(x, length)
    assert cg.sliding(cg.Var((0, 3)), 2).shape == (0, 2, 2)


def test_the_new_axis_has_the_stride_of_the_axis_it_slides_along():
    view = View(Pointer("x", 4), (5, 6), (-64, 8), "f8")
    assert Sliding(0, 2).alias(view) == View(Pointer("x", 4), (4, 6, 2), (-64, 8, -64), "f8")
    assert Sliding(1, 3).alias(view) == View(Pointer("x", 4), (5, 4, 3), (-64, 8, 8), "f8")


def test_second_gradients_and_nodes_of_each_field():
    check_second(lambda x: cg.square(cg.sliding(x, 2, 0)), [X[:, :, 0]])
    x = cg.Var((4, 4))
    assert len({apply(Sliding(*f), x) for f in ((0, 2), (1, 2), (0, 3))}) == 3
    assert cg.sliding(x, 2) is cg.sliding(x, np.int64(2), 1)
