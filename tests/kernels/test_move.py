"""Copies of any strides against NumPy's assignment."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.families import signature_of
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.move.calls import (
    boxes_around,
    copy_calls,
    cut_axis,
    fill_calls,
    flip,
    move_calls,
    moves_in_order,
    part,
)
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.strided import strided

SEED = 7
SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 17, 33, 70])


@given(data=st.data(), target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS))
def test_a_copy_is_numpys_assignment(data, target, order):
    shape = tuple(data.draw(st.lists(SIZES, max_size=4)))
    shape = shape if np.prod(shape, initial=1) <= 40000 else shape[:2]
    dtype = data.draw(st.sampled_from(["u1", "i2", "f4", "f8"]))
    x, x_view = data.draw(strided(shape, dtype, fixed=False))
    out, out_view = data.draw(strided(shape, dtype, fixed=True))
    base = out_view.at.base
    want = base.copy()
    start = want.reshape(-1)[out_view.at.offset // out.itemsize :]
    np.lib.stride_tricks.as_strided(start, shape, out.strides)[...] = x
    run_calls(copy_calls(target_named(target), out_view, x_view), target_named(target), order)
    assert base.tobytes() == want.tobytes()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((300, 517), (1, 0)), ((5, 70, 130), (0, 2, 1)), ((33, 6, 40), (2, 1, 0)), ((3, 50, 70), (1, 2, 0))],
)
def test_a_transpose_is_numpys(shape, axes, dtype, target, order):
    x = np.random.default_rng(SEED).integers(0, 100, shape).astype(dtype)
    flipped = x[::-1, :, ...].transpose(axes)
    for seen, offset in ((x.transpose(axes), 0), (flipped, (shape[0] - 1) * x.strides[0])):
        out = np.full(seen.shape, 101, dtype)
        view = View(Pointer(x, offset), seen.shape, seen.strides, dtype)
        run_calls(copy_calls(target_named(target), view_of(out), view), target_named(target), order)
        np.testing.assert_array_equal(out, seen)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_a_few_runs_alternate_and_are_taken_apart(runs, dtype, target, order):
    """Rows around the length of a vector, in parts of larger arrays, some of which run backwards."""
    target = target_named(target)
    x = np.random.default_rng(SEED).integers(0, 100, (3, 2, runs, 70)).astype(dtype)
    for columns in (1, 2, 15, 16, 17, 33, 70):
        together = x[::-1, 1, :, 70 - columns :].transpose(0, 2, 1)
        apart = np.ascontiguousarray(x.transpose(0, 1, 3, 2))[:, 0, :columns].transpose(0, 2, 1)
        for seen in (together, apart, apart[:, ::-1], together[..., ::-1]):
            wide = np.full((seen.shape[0] + 2, *seen.shape[1:]), 101, dtype)
            base = seen.base if seen.base is not None else seen
            while base.base is not None:
                base = base.base
            offset = seen.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            view = View(Pointer(base, offset), seen.shape, seen.strides, dtype)
            run_calls(copy_calls(target, view_of(wide[1:-1]), view), target, order)
            np.testing.assert_array_equal(wide[1:-1], seen)
            assert (wide[0] == 101).all() and (wide[-1] == 101).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_a_row_may_be_copied_in_several_blocks_of_columns(dtype, order, monkeypatch):
    """Blocks of 32 bytes, and of 8 items with steps."""
    monkeypatch.setattr("cgraph.kernels.move.calls.TASK_BYTES", 32)
    monkeypatch.setattr("cgraph.kernels.move.calls.STRIDED_BLOCK", 8)
    x = np.random.default_rng(SEED).integers(0, 100, (3, 210)).astype(dtype)
    columns = (slice(70), slice(69, None, -1), slice(None, None, 3), slice(None, None, -3))
    sources = [*(x[:, c] for c in columns), np.broadcast_to(x[:, :1], (3, 70))]
    for target, seen, step in product(map(target_named, TARGETS), sources, (1, 2)):
        wide = np.full((3, 70, step), 101, dtype)
        run_calls(copy_calls(target, view_of(wide[..., 0]), view_of(seen)), target, order)
        np.testing.assert_array_equal(wide[..., 0], seen)
        assert (wide[..., 1:] == 101).all()
    for runs in (x[:, :140].reshape(3, 70, 2).transpose(0, 2, 1), x[:, :140].reshape(3, 2, 70).transpose(0, 2, 1)):
        for target in map(target_named, TARGETS):
            out = np.full(runs.shape, 101, dtype)
            run_calls(copy_calls(target, view_of(out), view_of(runs)), target, order)
            np.testing.assert_array_equal(out, runs)


@given(st.data())
def test_every_call_has_rows_that_its_table_of_axes_describes(data):
    """A kernel divides by the extent of the first axis of the table: without one it reads what follows the table."""
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(shape))))
    x, out = np.zeros(shape, "f4").transpose(order), np.zeros([shape[i] for i in order], "f4")
    for target in TARGETS:
        for call in copy_calls(target_named(target), view_of(out), view_of(x)):
            args = dict(zip(signature_of(call.kernel.family).args, call.args))
            assert args.get("rank", 1) >= 1, call


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("start", [0, 1, 4, 7])
def test_results_larger_than_the_cache_are_written_past_it(start, target, monkeypatch):
    monkeypatch.setattr("cgraph.kernels.move.calls.STREAM_BYTES", 4096)
    x = np.random.default_rng(SEED).random(100_003, np.float32)
    raw = np.zeros(x.nbytes + 16, np.uint8)
    view = View(Pointer(raw, start), x.shape, x.strides, "f4")
    run_calls(copy_calls(host_target(), view, view_of(x)), target_named(target), "single")
    np.testing.assert_array_equal(raw[start : start + x.nbytes].view("f4"), x)
    run_calls(fill_calls(host_target(), view, 3.0), target_named(target), "single")
    assert (raw[start : start + x.nbytes].view("f4") == 3.0).all()
    assert not raw[:start].any() and not raw[start + x.nbytes :].any()


@pytest.mark.parametrize(("dtype", "value"), [("b1", True), ("u1", 255), ("i4", -3), ("f8", 0.1), ("f4", np.nan)])
def test_a_fill_writes_the_value_converted(dtype, value):
    out = np.zeros((3, 40, 5), np.dtype(dtype if dtype != "b1" else "bool"))
    run_calls(fill_calls(host_target(), view_of(out), value))
    np.testing.assert_array_equal(out, np.full_like(out, value))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("far", [-2400, -960, -56, -8, 0, 8, 1000, 2400])
def test_contiguous_elements_move_to_a_place_that_overlaps_theirs(far, target):
    """Axes may lie in any order, as those of rows in a ring."""
    target = target_named(target)
    assert moves_in_order(target)
    raw = np.arange(900, dtype="i8")
    x = View(Pointer(raw, 2400), (3, 2, 4, 12), (12 * 8, 4 * 36 * 8, 36 * 8, 8), "i8")
    out = View(Pointer(raw, 2400 + far), x.shape, x.strides, "i8")
    calls = move_calls(target, out, x)
    assert [call.kernel.family for call in calls] == ["move.overlapping" if abs(far) < x.size * 8 else "move.runs"]
    want = raw.copy()
    want[300 + far // 8 : 300 + far // 8 + x.size] = raw[300 : 300 + x.size]
    run_calls(calls, target)
    np.testing.assert_array_equal(raw, want)


def test_overlapping_elements_that_are_not_contiguous_are_not_moved():
    raw = np.arange(100, dtype="i8")
    x = View(Pointer(raw), (4, 4), (64, 8), "i8")
    for out in (View(Pointer(raw, 8), (4, 4), (64, 8), "i8"), View(Pointer(raw, 8), (4, 4), (32, 8), "i8")):
        with pytest.raises(ValueError, match="overlap: only elements in one order"):
            move_calls(host_target(), out, x)


def test_items_of_another_size_are_refused():
    out, x = np.zeros(3, "f8"), np.zeros(3, "f4")
    with pytest.raises(ValueError, match="items of 8 and 4 bytes"):
        copy_calls(host_target(), view_of(out), view_of(x))


def test_bytes_of_other_memory_are_copied_wherever_they_lie():
    raw, other = np.arange(100, dtype="i8"), np.zeros(100, "i8")
    out, x = View(Pointer(other, 8), (4, 4), (64, 8), "i8"), View(Pointer(raw), (4, 4), (64, 8), "i8")
    run_calls(move_calls(host_target(), out, x))
    np.testing.assert_array_equal(other[1:33].reshape(4, 8)[:, :4], raw[:32].reshape(4, 8)[:, :4])


def shown(view):
    """The elements of a view, in C order."""
    out = np.zeros(view.shape, view.dtype)
    run_calls(copy_calls(host_target(), view_of(out), view))
    return out


X = np.arange(5 * 6 * 7, dtype="i4").reshape(5, 6, 7)


@pytest.mark.parametrize(("starts", "lengths"), [
    ((1, 2, 3), (2, 3, 1)), ((0, 2, 0), (5, 1, 7)), ((0, 0, 0), (5, 6, 7)), ((3, 0, 6), (2, 6, 1)),
    ((0, 0, 0), (1, 1, 1)), ((2, 3, 4), (0, 0, 0)), ((5, 0, 0), (0, 6, 7)),
])  # fmt: skip
def test_boxes_around_a_box_have_every_other_element_once(starts, lengths):
    box = X[tuple(slice(a, a + n) for a, n in zip(starts, lengths))]
    around = [shown(view) for view in boxes_around(view_of(X), starts, lengths)]
    np.testing.assert_array_equal(np.sort(np.concatenate([box.ravel(), *map(np.ravel, around)])), X.ravel())


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("start", "count", "step"), [(0, 3, 1), (1, 2, 2), (4, 5, -1), (3, 2, -2), (4, 1, 9), (2, 0, 1)]
)
def test_a_part_is_a_slice_of_its_axis(axis, start, count, step):
    x = view_of(X[:, ::-1].transpose(2, 0, 1))
    want = X[:, ::-1].transpose(2, 0, 1).take([start + i * step for i in range(count)], axis)
    got = part(x, axis, start, count, step)
    assert got.shape == want.shape
    np.testing.assert_array_equal(shown(got), want)


@pytest.mark.parametrize("axes", [(), (0,), (2, 0), (0, 1, 2), (1, 1)])
@pytest.mark.parametrize("shape", [(5, 6, 7), (5, 0, 7), (1, 6, 1)])
def test_a_flip_is_numpys_along_each_of_its_axes(axes, shape):
    x = X[tuple(slice(n) for n in shape)]
    want = x
    for axis in axes:
        want = np.flip(want, axis)
    np.testing.assert_array_equal(shown(flip(view_of(x), axes)), want)


@pytest.mark.parametrize(("count", "limit", "cut"), [
    (10, 10, (10, 1)), (9, 10, (9, 1)), (19, 10, (19, 1)), (20, 10, (10, 2)), (29, 10, (14, 2)), (35, 10, (11, 3)),
    (0, 10, (0, 1)), (1, 1, (1, 1)), (7, 1, (1, 7)),
])  # fmt: skip
def test_blocks_of_an_axis_have_at_least_the_limit(count, limit, cut):
    assert cut_axis(count, limit) == cut


def family_of(out, x, target=None):
    return [call.kernel.family.removeprefix("move.") for call in copy_calls(target or host_target(), out, x)]


def seen(shape, strides, base="x", dtype="f4"):
    return View(Pointer(base), shape, strides, dtype)


def test_the_way_of_a_copy_is_that_of_its_strides():
    """Runs of neighbours, one item for all, backwards, squares, items of a few runs, and item by item."""
    out = seen((40, 50), (200, 4), "out")
    assert family_of(out, seen((40, 50), (240, 4))) == ["runs"] and family_of(out, seen((40, 50), (240, 0))) == [
        "fills"
    ]
    assert family_of(out, seen((40, 50), (240, -4))) == ["backward"]
    assert family_of(out, seen((40, 50), (240, 8))) == ["strided"]
    assert family_of(out, seen((40, 50), (4, 160))) == ["tiles"]
    assert family_of(seen((40, 3), (12, 4), "out"), seen((40, 3), (4, 160))) == ["zips"]
    assert family_of(seen((3, 40), (160, 4), "out"), seen((3, 40), (4, 12))) == ["unzips"]
    assert family_of(seen((40, 50), (400, 8), "out"), seen((40, 50), (240, 4))) == ["strided"]
    assert family_of(seen((40, 8), (32, 4), "out"), seen((40, 8), (4, 160))) in (["tiles"], ["strided"])


@pytest.mark.parametrize("runs", [2, 7, 8])
def test_at_most_seven_runs_alternate(runs):
    together = family_of(seen((40, runs), (4 * runs, 4), "out"), seen((40, runs), (4, 160)))
    apart = family_of(seen((runs, 40), (160, 4), "out"), seen((runs, 40), (4, 4 * runs)))
    assert (together == ["zips"]) == (apart == ["unzips"]) == (runs < 8)


def test_short_rows_of_neighbours_are_one_wider_item():
    """Of two, four or eight bytes."""

    def moved(dtype, count):
        size = int(dtype[1:])
        out, x = (seen((30, count), (step * size, size), name, dtype) for name, step in (("out", 9), ("x", 11)))
        [call] = copy_calls(host_target(), out, x)
        return call.kernel.params[0], dict(zip(signature_of(call.kernel.family).args, call.args))["columns"]

    assert moved("u1", 2) == (2, 30) and moved("u1", 4) == moved("i2", 2) == (4, 30) and moved("f4", 2) == (8, 30)
    assert moved("u1", 3) == (1, 3) and moved("f4", 4) == (4, 4) and moved("f8", 2) == (8, 2)


@pytest.mark.parametrize(
    ("rows", "columns", "is_past"),
    [(8192, 1024, True), (8191, 1024, False), (9000, 1023, False), (1, 1 << 23, True), (1, (1 << 23) - 1, False)],
)
def test_results_of_32_mebibytes_in_rows_of_a_page_are_written_past_the_cache(rows, columns, is_past):
    out, x = (seen((rows, columns), (4 * columns + more, 4), name) for name, more in (("out", 64), ("x", 128)))
    [call] = copy_calls(host_target(), out, x)
    assert call.kernel.params == (4, is_past)


def test_a_last_axis_of_few_items_gives_way_to_the_longest():
    def last(shape):
        strides = [8 * step for step in (10**6, 10**3, 1)]
        out, x = seen(shape, (*strides,), "out"), seen(shape, tuple(3 * s for s in strides))
        [call] = copy_calls(host_target(), out, x)
        assert call.kernel.family == "move.strided"
        return dict(zip(signature_of(call.kernel.family).args, call.args))["columns"]

    assert last((3, 40, 15)) == 40 and last((3, 40, 16)) == 16 and last((3, 9, 8)) == 9 and last((3, 9, 9)) == 9


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("shape", [(70, 33), (300, 9), (5, 70, 40)])
def test_squares_of_every_size_are_transposed_in_either_direction(shape, direction):
    """As many lanes as fit; the axis along which the items lie may run backwards."""
    rng = np.random.default_rng(SEED)
    for target, dtype in product(map(target_named, TARGETS), ("u1", "i2", "f4", "f8")):
        memory = rng.integers(0, 100, (*shape[:-2], shape[-1], shape[-2])).astype(dtype)
        x = memory.swapaxes(-1, -2)[..., ::direction, :]
        out = np.full(shape, 101, dtype)
        run_calls(copy_calls(target, view_of(out), view_of(x)), target)
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(
    ("dtype", "rows", "columns", "tasks"),
    [("f4", 1, 32_768, 1), ("f4", 1, 65_535, 1), ("f4", 1, 65_536, 2), ("f4", 1, 98_304, 3), ("u1", 1, 131_072, 1),
     ("f8", 3, 16_384, 3), ("f4", 33, 1000, 2), ("f4", 32, 1000, 1), ("f4", 64, 1000, 2), ("f4", 65, 1000, 3)],
)  # fmt: skip
def test_a_task_copies_about_128_kibibytes(dtype, rows, columns, tasks):
    """Some rows, or a block of the columns of one."""
    size = int(dtype[1:])
    out, x = (
        seen((rows, columns), (size * (columns + more), size), name, dtype) for name, more in (("out", 5), ("x", 9))
    )
    [call] = copy_calls(host_target(), out, x)
    assert call.tasks == tasks and call.kernel.family == "move.runs"
