"""Sorting in blocks of threads: NumPy's stable order, in either direction, of the first items, along any axis."""

import numpy as np
import pytest

from cgraph.kernels.sort import gpu_calls
from cgraph.kernels.sort.calls import search_calls, sort_calls, sort_nbytes, unique_calls, unique_nbytes
from tests.kernels.test_sort import numbers, scratch_for
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of


def both(x, axis, index="i8", most=None, descending=False):
    """The sorted items and their places."""
    shape = (*x.shape[:axis], most or x.shape[axis], *x.shape[axis + 1 :])
    values, places = np.zeros(shape, x.dtype), np.full(shape, -1, index)
    scratch = scratch_for(sort_nbytes(BLOCKS, x.shape, axis, x.dtype.str[1:], index, most))
    calls = sort_calls(BLOCKS, view_of(values), view_of(places), view_of(x), axis, scratch, descending)
    assert all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)
    return values, places


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape, axis", [((2, 1), 1), ((3, 64), 1), ((2, 65), 1), ((9, 4), 0), ((2, 7, 3), 1)])
def test_stable_order(shape, axis, dtype):
    x = numbers(shape, "b1" if dtype == "?" else dtype)
    values, places = both(x, axis, "i4")
    np.testing.assert_array_equal(places, np.argsort(x, axis, kind="stable"))
    assert values.tobytes() == np.take_along_axis(x, places.astype("i8"), axis).tobytes()


def test_descending_with_nan_last_and_the_first_items_alone():
    x = numbers((3, 70), "f4")
    values, places = both(x, 1, most=20, descending=True)
    order = np.array([sorted(range(70), key=lambda i: (np.isnan(row[i]), -np.nan_to_num(row[i]))) for row in x])
    np.testing.assert_array_equal(places, order[:, :20])
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1)[:, :20])


def test_places_or_values_alone_in_place_and_of_strided_views():
    x = np.random.default_rng(0).random((4, 80)).astype("f4")
    places = np.zeros((4, 40), "i8")
    run_on_gpu(sort_calls(BLOCKS, None, view_of(places), view_of(x[:, ::-2]), 1, scratch_for(1 << 16)))
    np.testing.assert_array_equal(places, np.argsort(x[:, ::-2], 1))
    want = np.sort(x[:, ::-2], 1)
    run_on_gpu(sort_calls(BLOCKS, view_of(x[:, ::-2]), None, view_of(x[:, ::-2]), 1, scratch_for(1 << 16)))
    np.testing.assert_array_equal(x[:, ::-2], want)


@pytest.mark.parametrize("n, descending", [(4097, False), (9000, True)])
def test_rows_that_no_block_holds_are_sorted_in_pieces(n, descending):
    x = np.round(np.random.default_rng(n).standard_normal((n, 2)).astype("f4"), 2)
    x[::1000, 1] = np.nan
    values, places = both(x, 0, "i4", descending=descending)
    order = np.argsort(-x if descending else x, 0, kind="stable")
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 0))


def test_the_first_of_a_long_row_and_a_long_row_in_place():
    x = np.random.default_rng(0).integers(0, 99, 5000)
    places = np.zeros(70, "i8")
    scratch = scratch_for(sort_nbytes(BLOCKS, x.shape, 0, "i8", "i8", 70))
    run_on_gpu(sort_calls(BLOCKS, None, view_of(places), view_of(x), 0, scratch))
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable")[:70])
    want, scratch = np.sort(x), scratch_for(sort_nbytes(BLOCKS, x.shape, 0, "i8", ""))
    run_on_gpu(sort_calls(BLOCKS, view_of(x), None, view_of(x), 0, scratch))
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("side", ["left", "right"])
def test_binary_search(side):
    row, v = (
        np.sort(np.round(np.random.default_rng(1).random(50), 1)),
        np.round(np.random.default_rng(2).random(300), 1),
    )
    out = np.zeros(300, "i8")
    (call,) = search_calls(BLOCKS, view_of(out), view_of(row), view_of(v), side == "right")
    assert call.kernel.is_block
    run_on_gpu([call])
    np.testing.assert_array_equal(out, np.searchsorted(row, v, side))


def test_distinct_values():
    x, out, count = numbers((600,), "f4"), np.zeros(10, "f4"), np.zeros(1, "i8")
    scratch = scratch_for(unique_nbytes(BLOCKS, 600, "f4"))
    calls = unique_calls(BLOCKS, view_of(out), view_of(count), view_of(x), scratch, -9)
    assert all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)
    want = np.unique(x)
    np.testing.assert_array_equal(out[: count[0]], want)
    assert count[0] == len(want) and (out[count[0] :] == -9).all()


@pytest.mark.parametrize("n, merges", [(4095, 0), (4096, 0), (4097, 1), (8192, 1), (8193, 2), (16384, 2), (16385, 3)])
def test_pieces_are_merged_in_pairs(n, merges):
    x = np.zeros((2, n), "f4")
    nbytes = sort_nbytes(BLOCKS, x.shape, 1, "f4", "i4")
    places = np.zeros((2, n), "i4")
    room = scratch_for(nbytes)
    calls = sort_calls(BLOCKS, view_of(x), view_of(places), view_of(x), 1, room)
    families = [call.kernel.family for call in calls]
    assert families == ["sort.gpu.rows"] + ["sort.gpu.merge"] * merges
    assert calls[0].tasks == 2 * -(-n // 4096)


def test_as_many_items_as_two_pieces():
    n = 8192
    x = np.random.default_rng(n).integers(0, 999, n)
    values, places = both(x, 0, most=n - 3)
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable")[: n - 3])
    np.testing.assert_array_equal(values, np.sort(x)[: n - 3])


def test_the_bytes_of_merges_are_two_buffers_of_keys_and_of_places():
    line = lambda size: -(-size // 64) * 64  # noqa: E731
    for dtype, size in (("f4", 4), ("i8", 8), ("u1", 1)):
        for index, item in (("", 0), ("i4", 4), ("i8", 4)):
            want = 2 * (line(3 * 4097 * size) + line(3 * 4097 * item))
            assert gpu_calls.sort_nbytes(3, 4097, dtype, index) == want
            assert gpu_calls.sort_nbytes(3, 4096, dtype, index) == 0
