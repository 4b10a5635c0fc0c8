"""Rows at a position that is data, in blocks of threads: rows that lie outside, several axes, items of every size."""

import numpy as np
import pytest

from cgraph.kernels.rows import gpu_calls as gpu_rows
from cgraph.kernels.rows.calls import rows_calls
from cgraph.kernels.rows.signature import SET, TAKE
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of


def in_blocks(calls):
    assert calls and all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)


@pytest.mark.parametrize("dtype", ["u1", "f4", "c8"])
@pytest.mark.parametrize("start", [np.array(1), np.array([-1, 3])], ids=["one", "each"])
def test_rows_at_a_position(start, dtype):
    x, y = (np.arange(2 * n * 70).reshape(2, n, 70).astype(dtype) for n in (4, 2))
    written, read = x.copy(), np.zeros_like(y)
    for i in range(2):
        for row in range(2):
            place = start[i] + row if start.ndim else start + row
            if 0 <= place < 4:
                written[i, place], read[i, row] = y[i, row], x[i, place]
    out, given = np.full_like(y, 7), x.copy()
    in_blocks(rows_calls(BLOCKS, TAKE, view_of(x), view_of(out), view_of(start), 1))
    in_blocks(rows_calls(BLOCKS, SET, view_of(given), view_of(y), view_of(start), 1))
    np.testing.assert_array_equal(out, read)
    np.testing.assert_array_equal(given, written)


def by_numpy(x, y, start, axis):
    """`x` with the rows of `y`, and the rows of `x` at these places, zero outside."""
    written, read = x.copy(), np.zeros_like(y)
    moved, taken, given = (np.moveaxis(v, axis, 1) for v in (written, read, y))
    for i in range(len(x)):
        for row in range(y.shape[axis]):
            place = (start[i] if start.ndim else start) + row
            if 0 <= place < x.shape[axis]:
                taken[i, row], moved[i, place] = np.moveaxis(x, axis, 1)[i, place], given[i, row]
    return written, read


@pytest.mark.parametrize("dtype", ["u1", "i2", "f8", "c16"])
@pytest.mark.parametrize("start", [np.array(-2), np.array(3), np.array(9), np.array([4, -1, 2])], ids=str)
@pytest.mark.parametrize("axis, shape, rows", [(1, (3, 5, 4), 2), (2, (3, 2, 5, 50), 3), (3, (3, 2, 2, 5), 4)])
def test_rows_along_any_axis(axis, shape, rows, start, dtype):
    """Blocks between the first axis and that of the rows; items behind it; what lies behind the result stays."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    y = -np.arange(x.size // x.shape[axis] * rows).reshape(*shape[:axis], rows, *shape[axis + 1 :]).astype(dtype)
    written, read = by_numpy(x, y, start, axis)
    room, given = np.full(y.size + 9, 7).astype(dtype), x.copy()
    out = room[: y.size].reshape(y.shape)
    in_blocks(rows_calls(BLOCKS, TAKE, view_of(x), view_of(out), view_of(start), axis))
    in_blocks(rows_calls(BLOCKS, SET, view_of(given), view_of(y), view_of(start), axis))
    np.testing.assert_array_equal(out, read)
    np.testing.assert_array_equal(given, written)
    assert (room[y.size :] == np.array(7).astype(dtype)).all()


def test_no_rows_and_more_items_than_threads_have_numbers(monkeypatch):
    x, y, none = np.zeros((4, 3), "f4"), np.zeros((2, 3), "f4"), np.zeros((0, 3), "f4")
    views = view_of(x), view_of(y), view_of(np.array(0))
    assert rows_calls(BLOCKS, TAKE, view_of(x), view_of(none), views[2], 0) == []
    for most, is_block in ((7, True), (6, False)):
        monkeypatch.setattr(gpu_rows, "MOST_ELEMENTS", most)
        (call,) = rows_calls(BLOCKS, TAKE, *views, 0)
        assert call.kernel.is_block == is_block
