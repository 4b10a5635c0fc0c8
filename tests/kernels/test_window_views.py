"""Views of windows and groups of channels beside NumPy's own views, and the program that selects by index."""

import numpy as np
import pytest

from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import host_target
from cgraph.kernels.views.window_views import reorder_axes, repeat_axes, select_matches, split_axis, window_places
from tests.support.kernels import run_calls, view_of

X = np.arange(2 * 6 * 5 * 4, dtype="i4").reshape(2, 6, 5, 4)[:, :, ::2, 1:]


def shows(view, array):
    """The view addresses the elements of an array that is a view of `X`."""
    got = view_of(array)
    assert (view.shape, view.dtype) == (got.shape, got.dtype)
    assert view.at.base.ctypes.data + view.at.offset == array.ctypes.data
    assert [s for s, n in zip(view.strides, view.shape) if n > 1] == [
        s for s, n in zip(got.strides, got.shape) if n > 1
    ]


@pytest.mark.parametrize(("axis", "groups"), [(1, 3), (1, 2), (1, 1), (1, 6), (3, 3), (0, 2)])
def test_an_axis_is_split_into_groups_and_their_elements(axis, groups):
    shape = (*X.shape[:axis], groups, X.shape[axis] // groups, *X.shape[axis + 1 :])
    strides = (*X.strides[:axis], X.strides[axis] * shape[axis + 1], *X.strides[axis:])
    shows(split_axis(view_of(X), axis, groups), np.lib.stride_tricks.as_strided(X, shape, strides))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_axes_are_reordered_as_by_transpose(order):
    shows(reorder_axes(view_of(X), order), X.transpose(order))


@pytest.mark.parametrize(("axis", "lengths"), [(0, (3,)), (2, (2, 7)), (4, (5,)), (1, ())])
def test_new_axes_repeat_the_view(axis, lengths):
    whole = np.broadcast_to(X.reshape(*X.shape[:axis], *(1 for _ in lengths), *X.shape[axis:]), (
        *X.shape[:axis], *lengths, *X.shape[axis:]
    ))  # fmt: skip
    view = repeat_axes(view_of(X), axis, *lengths)
    assert view.shape == whole.shape and view.strides[axis : axis + len(lengths)] == (0,) * len(lengths)
    assert view.strides[:axis] + view.strides[axis + len(lengths) :] == X.strides


def test_places_of_a_window_count_in_c_order():
    view = window_places((2, 3))
    assert view.shape == (2, 3) and view.dtype == "i4" and view.is_contiguous
    assert view.at.base.tolist() == list(range(6))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_operand_0_is_selected_where_the_other_two_are_equal(dtype):
    x = np.array([7, -1, 3, 4, 5], dtype)
    a, b, out = np.array([0, 1, 2, 3, -1], "i4"), np.array([0, 2, 2, 1, -1], "i4"), np.full(5, 9, dtype)
    target = host_target()
    run_calls(pointwise_calls(target, select_matches(dtype), view_of(out), *map(view_of, (x, a, b))), target)
    assert out.tolist() == [7, 0, 3, 0, 5]
