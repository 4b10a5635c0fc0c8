"""The same elements in another arrangement are NumPy's: every axis from both ends, both orders, no elements."""

from itertools import permutations, product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import NoMeaningError
from tests.numpy.evaluated import compare, drawn

X = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("order", ["C", "F", "A", "B"])
def test_reshape_and_ravel_count_in_both_orders(order):
    for shape in ((4, 6), (-1,), (2, -1, 3), (24, 1), 24, (5, 5), (4, 3, 2)):
        compare(f"np.reshape(x, {shape}, order={order!r})", x=X)
    compare(f"np.ravel(x, {order!r})", x=X)


def test_axes_move_to_before_every_other():
    for axis, start in product(range(-4, 4), range(-4, 5)):
        compare(f"np.rollaxis(x, {axis}, {start})", x=X)
    for axis in range(3):
        compare(f"np.rollaxis(x, {axis})", x=X)
    for axes in [*permutations(range(3)), (-1, 0, 1), (0, 0, 1), (0, 1)]:
        compare(f"np.transpose(x, {axes}), np.permute_dims(x, {axes})", x=X)
    compare("np.transpose(x), np.matrix_transpose(x)", x=X)


def test_quarter_turns_from_the_first_axis_to_the_second():
    for k, axes in product(range(-5, 6), ((0, 1), (1, 0), (2, 0), (-1, 1), (1, 1), (0, -3))):
        compare(f"np.rot90(x, {k}, {axes})", x=X)
    compare("np.rot90(x)", x=X)
    compare("np.fliplr(x), np.flipud(x)", x=X)
    compare("np.fliplr(x)", x=X[0, 0])


@pytest.mark.parametrize("rank", range(4))
def test_new_axes_lie_where_numpys_lie(rank):
    x = X[(0,) * (3 - rank)]
    for n in (1, 2, 3):
        compare(f"np.atleast_{n}d(x)", x=np.asarray(x))
        compare(f"np.atleast_{n}d(x, y)", x=np.asarray(x), y=np.ones(2))


def test_operands_broadcast_to_one_shape():
    compare("np.broadcast_arrays(x, y, z)", x=X[:, :1], y=X[0, :, :1], z=np.array(3.0))
    compare("np.broadcast_arrays(x, y)", x=X, y=np.ones(3))


def test_each_element_repeats_as_often_as_its_own_count():
    for axis in (None, 0, 1, -1):
        for counts in (0, 1, 3, [2], [1, 0, 2], [0, 1], [1, 0, 2, 5], -1, list(range(24))):
            compare(f"np.repeat(x, {counts}, axis={axis})", x=X)
    assert np.repeat(cg.Const(X), cg.Const(np.array([1, 2, 0])), axis=1).shape == (2, 3, 4)
    with pytest.raises(NoMeaningError, match="np.take"):
        np.repeat(cg.Const(X), cg.Var((3,), "int64"), axis=1)


def test_elements_start_again_when_there_are_too_few():
    for shape in (0, 1, 7, 24, 25, 50, (2, 0), (5, 10), (), (3, 3, 3)):
        compare(f"np.resize(x, {shape})", x=X)
    compare("np.resize(x, (2, 2))", x=np.zeros(0))


def test_windows_along_axes_in_any_order():
    view = "np.lib.stride_tricks.sliding_window_view"
    for window, axis in (
        (2, 0), (3, 1), (4, -1), ((2, 3), (0, 2)), ((3, 2), (2, 0)), ((1, 2, 3), None), ((2, 2), (1, 1)), (5, 2),
        (2, None), ((2, 2), 0),
    ):  # fmt: skip
        compare(f"{view}(x, {window}, axis={axis})", x=X)
    compare(f"{view}(x, 2)", x=drawn((5,)))


@pytest.mark.parametrize(
    ("window", "axis"),
    [(2, -1), ((2, 3), (-2, -1)), ((3, 2), (-1, -2)), ((2, 2), (0, -1)), ((2, 4), (-1, 1)), ((2, 2), (-1, -1)),
     ((2, 2, 3), (2, 0, 1)), ((2, 3, 2), None), ((1,), (0,)), ((), ())],
)  # fmt: skip
def test_windows_lie_along_axes_of_either_sign_in_their_order(window, axis):
    x = np.arange(60.0).reshape(3, 4, 5)
    want = np.lib.stride_tricks.sliding_window_view(x, window, axis)
    got = cg.numpy.lib.stride_tricks.sliding_window_view(cg.Var(x.shape, "float64").assign(x), window, axis)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.eval(), want)
