"""stop_gradient and custom_gradient: the value unchanged, the gradient another one, and what backward may return."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.stop import CustomGradient, StopGradient
from tests.support.computed import computed, float64, gradients


def test_a_stopped_value_is_a_constant_to_gradients():
    x = float64([2.0, 3.0])
    stopped = cg.stop_gradient(x)
    assert computed(stopped).tolist() == [2, 3] and cg.stop_gradient(x) is stopped
    assert gradients(x * stopped, x).tolist() == [2, 3]
    assert gradients(stopped * stopped, x).tolist() == [0, 0]
    assert computed(cg.stop_gradient(5)) == 5


def test_gradients_of_ones_own_go_to_the_listed_nodes_and_not_through_the_value():
    x, w = float64([2.0, 3.0], [10.0])
    y = x * x
    node = cg.custom_gradient(y, [w, x], lambda g: [cg.sum(g, keepdims=True) * 7, g * 100])
    assert computed(node).tolist() == [4, 9]
    to_x, to_w, to_y = gradients(node, x, w, y, seed=[1, 10])
    assert (to_x.tolist(), to_w.tolist(), to_y.tolist()) == ([100, 1000], [77], [0, 0])


def test_the_value_itself_may_be_among_the_nodes():
    x = float64([2.0])
    node = cg.custom_gradient(x, [x], lambda g: [g * 3])
    assert gradients(node, x).tolist() == [3]
    assert gradients(node * x, x).tolist() == [2 * 3 + 2]


def test_the_value_and_the_nodes_may_be_arrays_and_numbers():
    x, number = float64([2.0]), 4.0
    array = np.array([5.0])
    node = cg.custom_gradient(array, [array, x, number, [6.0]], lambda g: [g, g * 3, cg.sum(g), g])
    assert [y.shape for y in node.operands] == [(1,), (1,), (1,), (), (1,)] and computed(node).tolist() == [5]
    assert [computed(y).item() for y in node.operands[1:]] == [5, 2, 4, 6]


def test_what_backward_returns_has_the_specs_of_the_nodes():
    x, w = cg.Var((2,), "float64"), cg.Var((3,), "float64")
    for backward, got in (
        (lambda g: [g], r"float64\[2\]"), (lambda g: [g, g], r"float64\[2\], float64\[2\]"),
        (lambda g: [g, w.astype("float32")], r"float64\[2\], float32\[3\]"), (lambda g: [], ""),
    ):  # fmt: skip
        message = rf"test_stop.py:\d+: backward returned {got} for float64\[2\], float64\[3\]; return equal specs"
        with pytest.raises(ShapeError, match=message):
            cg.gradient(cg.sum(cg.custom_gradient(x, [x, w], backward)), x)


def test_both_are_views_and_two_functions_are_two_nodes():
    view = View(Pointer("x", 8), (2,), (16,), "f8")
    first, second = (lambda g: [g]), (lambda g: [g])
    assert StopGradient().alias(view) is view is CustomGradient(first).alias(view, "other")
    x = cg.Var((2,))
    assert cg.custom_gradient(x, [x], first) is cg.custom_gradient(x, [x], first)
    assert cg.custom_gradient(x, [x], first) is not cg.custom_gradient(x, [x], second)
    np.testing.assert_array_equal(CustomGradient(first).meaning(np.ones(2), None), np.ones(2))
