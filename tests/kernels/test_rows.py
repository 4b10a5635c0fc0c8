"""Rows at a position that is data: one position or one for each element of the first axis, clamped to the axis."""

import numpy as np
import pytest

from cgraph.kernels.rows.calls import rows_calls
from cgraph.kernels.rows.signature import SET, TAKE
from cgraph.kernels.target import target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

SHAPES = [((2, 9, 3), 1, 4), ((9, 2, 3), 0, 4), ((2, 3, 9), 2, 5), ((3, 5, 2), 1, 5), ((2, 7), 1, 1)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "axis", "count"), SHAPES)
def test_rows_are_written_and_read_at_one_position(shape, axis, count, target, order):
    rng = np.random.default_rng(3)
    x, start = rng.standard_normal(shape).astype("f4"), np.array(shape[axis] - count, np.int64)
    y = rng.standard_normal((*shape[:axis], count, *shape[axis + 1 :])).astype("f4")
    window = (*[slice(None)] * axis, slice(int(start), int(start) + count))
    want = x.copy()
    want[window] = y
    run_calls(rows_calls(target_named(target), SET, view_of(x), view_of(y), view_of(start), axis), None, order)
    np.testing.assert_array_equal(x, want)
    back = np.zeros_like(y)
    run_calls(rows_calls(target_named(target), TAKE, view_of(x), view_of(back), view_of(start), axis), None, order)
    np.testing.assert_array_equal(back, y)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("axis", [1, 2])
def test_each_element_of_the_first_axis_has_its_own_position(axis, dtype):
    rng = np.random.default_rng(4)
    x = rng.integers(0, 99, (3, 6, 7, 2)).astype(dtype)
    starts, count = np.array([4, 0, 2], np.int64), 2
    y = rng.integers(100, 199, (*x.shape[:axis], count, *x.shape[axis + 1 :])).astype(dtype)
    want = x.copy()
    for i, start in enumerate(starts):
        want[(i, *[slice(None)] * (axis - 1), slice(start, start + count))] = y[i]
    run_calls(rows_calls(target_named("host"), SET, view_of(x), view_of(y), view_of(starts), axis))
    np.testing.assert_array_equal(x, want)
    back = np.zeros_like(y)
    run_calls(rows_calls(target_named("host"), TAKE, view_of(x), view_of(back), view_of(starts), axis))
    np.testing.assert_array_equal(back, y)


def test_positions_may_be_read_with_a_stride():
    x, wide = np.zeros((2, 5), "f4"), np.array([[3, 99], [1, 99]], np.int64)
    y = np.float32([[1, 2], [3, 4]])
    run_calls(rows_calls(target_named("host"), SET, view_of(x), view_of(y), view_of(wide[:, 0]), 1))
    np.testing.assert_array_equal(x, [[0, 0, 0, 1, 2], [0, 3, 4, 0, 0]])


def test_no_rows_are_no_call():
    x, y = np.zeros((2, 5), "f4"), np.zeros((2, 0), "f4")
    assert rows_calls(target_named("host"), SET, view_of(x), view_of(y), view_of(np.array(0, np.int64)), 1) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("starts", [-9, -2, -1, 4, 5, 6, 7, 40, (-2, 5, 7), (7, 0, -3), (-(2**40), 2**40, 4)], ids=str)
def test_rows_outside_the_axis_are_left_out_or_read_as_zeros(starts, target):
    """Seven rows, of which three are written or read, perhaps for each element of the first axis elsewhere."""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((3, n, 2)).astype("f4") for n in (7, 3))
    positions, target = np.array(starts, np.int64), target_named(target)
    want, read = x.copy(), np.zeros_like(y)
    for i, start in enumerate(np.broadcast_to(positions, 3).tolist()):
        for k in range(3):
            if 0 <= start + k < 7:
                want[i, start + k], read[i, k] = y[i, k], x[i, start + k]
    back = np.full_like(y, np.nan)
    run_calls(rows_calls(target, TAKE, view_of(x), view_of(back), view_of(positions), 1), target)
    np.testing.assert_array_equal(back, read)
    run_calls(rows_calls(target, SET, view_of(x), view_of(y), view_of(positions), 1), target)
    np.testing.assert_array_equal(x, want)
