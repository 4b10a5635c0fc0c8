"""Sorting, the largest items, binary search and distinct values against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.sort.calls import (
    inserts,
    rows_of_group,
    search_calls,
    selects,
    sort_calls,
    sort_nbytes,
    unique_calls,
    unique_nbytes,
)
from cgraph.kernels.sort.signature import FEW, LEAST_ROOM
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.strided import filled, strided

SHAPES = st.lists(st.sampled_from([1, 2, 3, 9, 17, 100]), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from(["f4", "f8", "i4", "i8", "u1", "b1"])


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 12) -> np.ndarray:
    """Few distinct values, so that many are equal; NaN, infinities and both zeros among floats."""
    rng = np.random.default_rng(seed)
    if dtype[0] == "f":
        return rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 7], dtype), shape)
    return rng.integers(0, 9, shape).astype("bool" if dtype == "b1" else dtype)


def scratch_for(nbytes: int) -> View:
    return view_of(np.full(nbytes, 0xAA, np.uint8))


@given(data=st.data(), shape=SHAPES, dtype=DTYPES, target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS))
def test_sort_and_argsort_are_numpys_stable_ones(data, shape, dtype, target, order):
    axis = data.draw(st.integers(0, len(shape) - 1))
    axes = data.draw(st.permutations(range(len(shape))))
    base = numbers(tuple(shape[a] for a in axes), dtype)
    x = base.transpose(np.argsort(axes))
    view = View(Pointer(base), x.shape, x.strides, dtype)
    index = data.draw(st.sampled_from(["i4", "i8"]))
    values, places = filled(np.ascontiguousarray(x)), np.full(shape, -1, index)
    scratch = scratch_for(sort_nbytes(host_target(), shape, axis, dtype, index))
    run_calls(
        sort_calls(target_named(target), view_of(values), view_of(places), view, axis, scratch),
        target_named(target),
        order,
    )
    np.testing.assert_array_equal(places, np.argsort(x, axis, kind="stable"))
    assert values.tobytes() == np.take_along_axis(x, places.astype(np.int64), axis).tobytes()
    alone = filled(values)
    scratch = scratch_for(sort_nbytes(host_target(), shape, axis, dtype, ""))
    run_calls(sort_calls(target_named(target), view_of(alone), None, view, axis, scratch), target_named(target), order)
    assert alone.tobytes() == values.tobytes()


@pytest.mark.parametrize("n", [1000, 4097, 30000])
def test_long_rows_are_sorted(n):
    x = np.random.default_rng(13).random((2, n)).astype("f4")
    out, places = filled(x), np.zeros(x.shape, np.int64)
    run_calls(
        sort_calls(
            host_target(),
            view_of(out),
            view_of(places),
            view_of(x),
            1,
            scratch_for(sort_nbytes(host_target(), x.shape, 1, "f4", "i8")),
        )
    )
    np.testing.assert_array_equal(out, np.sort(x, 1))
    np.testing.assert_array_equal(places, np.argsort(x, 1, kind="stable"))


@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from(["f4", "i4", "i8"]), order=st.sampled_from(ORDERS))
def test_the_largest_come_first_equal_ones_in_order_and_nan_last(data, shape, dtype, order):
    axis = data.draw(st.integers(0, len(shape) - 1))
    most = data.draw(st.integers(1, shape[axis]))
    x = numbers(shape, dtype)
    keys = -x.astype("f8")
    want = np.take(np.argsort(keys, axis, kind="stable"), np.arange(most), axis)
    values, places = np.zeros(want.shape, dtype), np.full(want.shape, -1)
    scratch = scratch_for(sort_nbytes(host_target(), shape, axis, dtype, "i8", most))
    run_calls(
        sort_calls(host_target(), view_of(values), view_of(places), view_of(x), axis, scratch, descending=True),
        order=order,
    )
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u1", "u8", "b1"])
def test_few_of_many_are_selected_as_if_all_were_sorted(dtype, descending, target):
    x = numbers((3, 2000), dtype)
    if dtype[0] in "fi":
        x[1] = np.random.default_rng(1).normal(0, 40, 2000).astype(dtype)
    most = 300
    results = []
    for wanted in (most, 2000):
        values, places = filled(x[:, :wanted]), np.full((3, wanted), -1)
        room = sort_nbytes(host_target(), x.shape, 1, dtype, "i8", wanted)
        calls = sort_calls(
            host_target(), view_of(values), view_of(places), view_of(x), 1, scratch_for(room), descending
        )
        run_calls(calls, target_named(target))
        results.append((values[:, :most], places[:, :most], room))
    (values, places, room), (all_values, all_places, more) = results
    np.testing.assert_array_equal(places, all_places)
    assert values.tobytes() == np.ascontiguousarray(all_values).tobytes()
    assert room < more / 6


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_the_first_few_are_those_of_a_whole_sort_in_rows_of_any_order(dtype, descending, target):
    """On both sides of the most items that are inserted one by one, and of whole vectors; contiguous or not; in rows
    of one buffer for the first items, and of several.
    """
    rng = np.random.default_rng(9)
    sizes = (1, 1), (8, 2), (19, 16), (31, 30), (70, FEW), (70, FEW + 1), (200, 7)
    rooms = (4 * LEAST_ROOM - 1, FEW + 1), (8 * LEAST_ROOM + 13, FEW + 1), (4 * LEAST_ROOM + 5, LEAST_ROOM + 1)
    for n, most in (*sizes, *rooms):
        rows = [
            rng.normal(0, 40, n).astype(dtype),
            numbers((n,), dtype),
            np.zeros(n, dtype),
            np.sort(numbers((n,), dtype)),
        ]
        x = np.stack([*rows, rows[-1][::-1], np.sort(rows[0]), np.sort(rows[0])[::-1]])
        keys = np.nan_to_num(x, nan=np.inf, posinf=1e30, neginf=-1e30) if dtype[0] == "f" else x.astype("i8")
        keys = np.where(np.isnan(x), np.inf, -keys) if descending else keys
        want = np.argsort(keys, 1, kind="stable")[:, :most]
        for rows_of in (x, np.asfortranarray(x), np.ascontiguousarray(x[:, ::-1])[:, ::-1]):
            values, places = filled(x[:, :most]), np.full((len(x), most), -1)
            room = sort_nbytes(target_named(target), x.shape, 1, dtype, "i8", most)
            views = view_of(values), view_of(places), view_of(rows_of), 1, scratch_for(room), descending
            run_calls(sort_calls(target_named(target), *views), target_named(target))
            np.testing.assert_array_equal(places, want)
            assert values.tobytes() == np.take_along_axis(x, want, 1).tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"])
def test_the_first_items_are_exact_where_keys_differ_by_one_in_any_byte(dtype, descending, target):
    """Bytes of 0, 1, 127, 128, 254 and 255 next to one another, so that digits meet their neighbours and both ends."""
    rng, size = np.random.default_rng(3), int(dtype[1:])
    digits = rng.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), (4, 2000, size))
    digits[1:, :, : size - 1] = digits[1:, :1, : size - 1]  # rows that differ in their highest byte alone
    digits[2:, :, size - 1] = 0x41
    digits[2:, :, 0] = rng.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), (2, 2000))
    x = np.ascontiguousarray(digits).view(dtype)[..., 0]
    x = np.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0) if dtype[0] == "f" else x
    for most in (1, 7, 499, 500):
        values, places = filled(x[:, :most]), np.full((4, most), -1)
        room = sort_nbytes(target_named(target), x.shape, 1, dtype, "i8", most)
        views = view_of(values), view_of(places), view_of(x), 1, scratch_for(room), descending
        run_calls(sort_calls(target_named(target), *views), target_named(target))
        np.testing.assert_array_equal(
            values, np.sort(x, 1)[:, ::-1][:, :most] if descending else np.sort(x, 1)[:, :most]
        )
        np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
        same = values[:, 1:] == values[:, :-1]
        assert (places[:, 1:] > places[:, :-1])[same].all()


@given(
    data=st.data(),
    n=st.sampled_from([0, 1, 7, 300]),
    side=st.sampled_from(["left", "right"]),
    dtype=DTYPES,
    order=st.sampled_from(ORDERS),
)
def test_searchsorted_is_numpys(data, n, side, dtype, order):
    row, row_view = data.draw(strided((n,), "u1" if dtype == "b1" else dtype, fixed=True))
    row[...] = np.sort(numbers((n,), dtype, seed=14))
    row_view = View(row_view.at, (n,), row.strides, dtype)
    shape = data.draw(SHAPES)
    x, view = data.draw(strided(shape, "u1" if dtype == "b1" else dtype))
    base = view.at.base
    base[...] = numbers(base.shape, dtype, seed=15)
    out = np.full(shape, -1)
    run_calls(
        search_calls(host_target(), view_of(out), row_view, View(view.at, shape, view.strides, dtype), side == "right"),
        order=order,
    )
    np.testing.assert_array_equal(out, np.searchsorted(row.astype(dtype), x.astype(dtype), side))


@pytest.mark.parametrize("most", [0, 2, 50])
@pytest.mark.parametrize("dtype", ["f4", "i8", "b1"])
@pytest.mark.parametrize("shape", [(0,), (1,), (6, 7)])
def test_unique_gives_the_first_distinct_values_and_the_count(shape, dtype, most):
    x = numbers(shape, dtype, seed=16)
    want = np.unique(x)
    out, count = np.zeros(most, x.dtype), np.zeros((), np.int64)
    turned = View(Pointer(x), x.shape[::-1], x.strides[::-1], dtype)
    scratch = scratch_for(unique_nbytes(host_target(), x.size, dtype))
    run_calls(unique_calls(host_target(), view_of(out), view_of(count), turned, scratch, fill=1))
    assert count == len(want)
    np.testing.assert_array_equal(out[: len(want)], want[:most])
    assert (out[len(want) :] == 1).all()


def test_nothing_to_sort_needs_no_call():
    x = np.zeros((3, 5), "f4")
    assert sort_calls(host_target(), None, None, view_of(x), 1, None) == []
    for shape, axis in (((0, 5), 1), ((3, 0), 1), ((3, 0), 0)):
        x = np.zeros(shape, "f4")
        assert sort_calls(host_target(), view_of(x), None, view_of(x), axis, None) == []
        assert sort_nbytes(host_target(), shape, axis, "f4", "i8") == 0
    assert search_calls(host_target(), view_of(np.zeros(0, "i8")), view_of(x), view_of(np.zeros(0, "f4"))) == []


@pytest.mark.parametrize(
    ("index", "most", "n", "inserted", "selected"),
    [
        ("i8", FEW, FEW, True, True), ("i8", FEW + 1, 4 * FEW + 4, False, True),
        ("i8", FEW + 1, 4 * FEW + 3, False, False),
        ("i4", FEW, 4 * FEW, False, False), ("", 1, 1000, False, False), ("i4", 1, 1000, False, False),
        ("i8", 250, 1000, False, True), ("i8", 251, 1000, False, False),
    ],
)  # fmt: skip
def test_the_first_items_are_inserted_selected_or_sorted(index, most, n, inserted, selected):
    """With int64 places: few in registers, a quarter of a row by their digits, more with all items."""
    assert (inserts(index, most), selects(index, most, n)) == (inserted, selected)
    x, values = np.zeros((3, n), "f4"), np.zeros((3, most), "f4")
    places = np.zeros((3, most), index) if index else None
    room = scratch_for(sort_nbytes(host_target(), x.shape, 1, "f4", index, most))
    views = view_of(values), None if places is None else view_of(places), view_of(x)
    [call] = sort_calls(host_target(), *views, 1, room)
    want = "few_rows" if inserted else "leading_rows" if selected else "rows"
    assert call.kernel.family == f"sort.{want}"


@pytest.mark.parametrize(
    ("rows", "n", "each"),
    [(1, 10, 1), (64, 4096, 1), (65, 4096, 2), (129, 5000, 3), (10, 1000, 4), (3, 1000, 3), (1000, 8, 512), (5, 0, 5)],
)
def test_groups_of_rows_are_at_most_64_and_of_many_items(rows, n, each):
    assert rows_of_group(rows, n) == each


@pytest.mark.parametrize("index", ["", "i4", "i8"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_the_bytes_of_a_sort_are_two_buffers_for_each_group(dtype, index):
    item = int(dtype[1:]) + (int(index[1:]) if index else 0)
    for shape, axis, n, groups in (((3, 5000), 1, 5000, 3), ((100, 5000), 1, 5000, 50), ((100, 2, 90), 0, 100, 5)):
        assert sort_nbytes(host_target(), shape, axis, dtype, index) == groups * (-(-2 * n * item // 64) * 64)
    some = LEAST_ROOM if index == "i8" else 5000
    room = sort_nbytes(host_target(), (3, 5000), 1, dtype, index, FEW + 1)
    assert room == 3 * (-(-2 * some * item // 64) * 64)
    assert sort_nbytes(host_target(), (3, 5000), 1, dtype, "i8", FEW) == 0


@pytest.mark.parametrize("index", ["i4", "i8"])
def test_many_rows_in_groups_of_several(index):
    """More rows than groups, along either axis, and in place."""
    x = np.random.default_rng(3).integers(0, 99, (131, 70)).astype("f4")
    for axis in (0, 1):
        values, places = filled(x), np.full(x.shape, -1, index)
        room = scratch_for(sort_nbytes(host_target(), x.shape, axis, "f4", index))
        for order in ORDERS:
            run_calls(sort_calls(host_target(), view_of(values), view_of(places), view_of(x), axis, room), order=order)
            np.testing.assert_array_equal(places, np.argsort(x, axis, kind="stable"))
            np.testing.assert_array_equal(values, np.sort(x, axis))
        own = x.copy()
        room = scratch_for(sort_nbytes(host_target(), x.shape, axis, "f4", ""))
        run_calls(sort_calls(host_target(), view_of(own), None, view_of(own), axis, room))
        np.testing.assert_array_equal(own, values)


def test_a_workspace_that_is_too_small_is_refused():
    x = np.zeros((3, 5000), "f4")
    need = sort_nbytes(host_target(), x.shape, 1, "f4", "")
    with pytest.raises(ValueError, match=f"these calls need {need}"):
        sort_calls(host_target(), view_of(x), None, view_of(x), 1, scratch_for(need - 1))
