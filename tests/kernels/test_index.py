"""Gather, scatter, one-hot, nonzero and triangles against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.index.calls import (
    ScatterRule,
    nonzero_calls,
    one_hot_calls,
    put_along_axis_calls,
    scatter_calls,
    take_along_axis_calls,
    take_calls,
    triangle_calls,
)
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.strided import filled, strided

SHAPES = st.lists(st.sampled_from([1, 2, 3, 5, 17, 40]), min_size=1, max_size=3).map(tuple)
EMPTY = st.lists(st.sampled_from([0, 1, 3, 8, 33]), max_size=2).map(tuple)
HERE = host_target()
HOW = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@given(data=st.data(), target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS))
def test_take_is_numpys(data, target, order):
    shape, index_shape = data.draw(SHAPES), data.draw(EMPTY)
    axis = data.draw(st.integers(0, len(shape) - 1))
    x, x_view = data.draw(strided(shape, data.draw(st.sampled_from(["u1", "f4", "f8"]))))
    indices = (
        np.random.default_rng(5)
        .integers(-shape[axis], shape[axis], index_shape)
        .astype(data.draw(st.sampled_from(["i4", "i8"])))
    )
    want = np.take(x, indices, axis)
    out = filled(want)
    run_calls(take_calls(HERE, view_of(out), x_view, view_of(indices), axis), target_named(target), order)
    assert out.tobytes() == want.tobytes()


PLACES = {
    "transposed": lambda shape: (np.full(shape[::-1], -7.0, "f4"), lambda base: base.T),
    "every second": lambda shape: (np.full((*shape[:-1], 2 * shape[-1]), -7.0, "f4"), lambda base: base[..., ::2]),
    "backwards": lambda shape: (np.full(shape, -7.0, "f4"), lambda base: base[..., ::-1]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_results_of_a_take_may_lie_anywhere(place, axis, turned):
    x = np.random.default_rng(8).random((6, 5, 7), "f4")
    x = x.transpose(2, 0, 1) if turned else x
    indices = np.array([[3, -1], [0, 2]])
    want = np.take(x, indices, axis)
    base, seen = PLACES[place](want.shape)
    out = seen(base)
    run_calls(take_calls(HERE, view_of(out), view_of(x), view_of(indices), axis))
    assert out.tobytes() == want.tobytes()
    out[...] = -7.0
    assert (base == -7.0).all()  # what lies between


@given(data=st.data(), target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS))
def test_take_along_axis_is_numpys(data, target, order):
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(0, len(shape) - 1))
    x, x_view = data.draw(strided(shape, "f4"))
    index_shape = (*shape[:axis], data.draw(st.sampled_from([0, 1, 4, 30])), *shape[axis + 1 :])
    indices = np.random.default_rng(6).integers(-shape[axis], shape[axis], index_shape)
    want = np.take_along_axis(x, indices, axis)
    out = filled(want)
    run_calls(take_along_axis_calls(HERE, view_of(out), x_view, view_of(indices), axis), target_named(target), order)
    assert out.tobytes() == want.tobytes()


def test_an_index_outside_is_reported_and_reads_the_nearest_element():
    x, indices = np.arange(10.0), np.array([3, 10, -11, -1])
    error, out = np.zeros(1, np.int64), np.zeros(4)
    run_calls(take_calls(HERE, view_of(out), view_of(x), view_of(indices), 0, Pointer(error)))
    assert out.tolist() == [3, 9, 0, 9] and error[0] == 1


def test_indices_inside_report_nothing():
    x, indices, error = np.arange(10.0), np.array([3, -10]), np.zeros(1, np.int64)
    run_calls(take_calls(HERE, view_of(np.zeros(2)), view_of(x), view_of(indices), 0, Pointer(error)))
    assert error[0] == 0


def test_an_update_outside_is_reported_and_left_out():
    out, error = np.arange(4.0), np.zeros(1, np.int64)
    indices, updates = np.array([1, 4, -5, -1]), np.array([10.0, 20, 30, 40])
    run_calls(
        scatter_calls(HERE, view_of(out), view_of(indices), view_of(updates), ScatterRule(0, "set", Pointer(error)))
    )
    assert out.tolist() == [0, 10, 2, 40] and error[0] == 1


def test_taking_from_nothing_is_refused():
    with pytest.raises(ValueError, match="axis of 0 elements"):
        take_calls(HERE, view_of(np.zeros(2)), view_of(np.zeros(0)), view_of(np.zeros(2, np.int64)), 0)


@given(
    data=st.data(), target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS), how=st.sampled_from([*HOW, "set"])
)
def test_updates_at_equal_places_are_done_in_order(data, target, order, how):
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(0, len(shape) - 1))
    dtype = data.draw(st.sampled_from(["f4", "f8", "i4"]))
    index_shape = data.draw(EMPTY)
    rng = np.random.default_rng(7)
    x = rng.integers(-9, 9, shape).astype(dtype) / (1 if dtype == "i4" else 7)
    x = x.astype(dtype)
    updates = rng.integers(-9, 9, (*shape[:axis], *index_shape, *shape[axis + 1 :])).astype(dtype)
    indices = rng.integers(-shape[axis], shape[axis], index_shape)
    want, out = np.moveaxis(x.copy(), axis, 0), x.copy()
    flat = np.moveaxis(updates.reshape(*shape[:axis], indices.size, *shape[axis + 1 :]), axis, 0)
    for i, update in zip(indices.ravel(), flat):
        want[i] = HOW[how](want[i], update) if how != "set" else update
    run_calls(
        scatter_calls(HERE, view_of(out), view_of(indices), view_of(updates), ScatterRule(axis, how)),
        target_named(target),
        order,
    )
    np.testing.assert_array_equal(out, np.moveaxis(want, 0, axis))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", [*HOW, "set"])
@pytest.mark.parametrize("apart", ["nothing", "the result", "the updates", "both"])
def test_whole_rows_are_written_where_either_array_lies_apart(apart, how, order):
    """One position for all columns, every second element of the one, the other, or both."""
    rng = np.random.default_rng(3)
    x, updates = rng.integers(-9, 9, (6, 33)).astype("f4"), rng.integers(-9, 9, (4, 33)).astype("f4")
    indices = np.array([1, -1, 1, 0])
    want = x.copy()
    for i, update in zip(indices, updates):
        want[i] = HOW[how](want[i], update) if how != "set" else update
    out, given_updates = (np.zeros((len(v), 66), "f4") for v in (x, updates))
    out = out[:, ::2] if apart in ("the result", "both") else out[:, :33]
    given_updates = given_updates[:, 1::2] if apart in ("the updates", "both") else given_updates[:, 33:]
    out[...], given_updates[...] = x, updates
    run_calls(
        scatter_calls(HERE, view_of(out), view_of(indices), view_of(given_updates), ScatterRule(0, how)), order=order
    )
    np.testing.assert_array_equal(out, want)


@given(data=st.data(), target=st.sampled_from(TARGETS), order=st.sampled_from(ORDERS))
def test_put_along_axis_is_numpys(data, target, order):
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(8)
    index_shape = (*shape[:axis], data.draw(st.sampled_from([0, 1, 5])), *shape[axis + 1 :])
    x, updates = rng.random(shape), rng.random(index_shape)
    indices = rng.integers(-shape[axis], shape[axis], index_shape)
    want, out = x.copy(), x.copy()
    np.put_along_axis(want, indices, updates, axis)
    run_calls(
        put_along_axis_calls(HERE, view_of(out), view_of(indices), view_of(updates), ScatterRule(axis)),
        target_named(target),
        order,
    )
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_hot_marks_the_index_and_nothing_else(axis):
    indices = np.random.default_rng(9).integers(-7, 7, (5, 4))
    want = np.moveaxis(np.where(np.eye(7, dtype=bool)[indices], 2.5, -1.0), -1, axis).astype("f4")
    out = np.full(want.shape, np.nan, "f4")
    run_calls(one_hot_calls(host_target(), view_of(out), view_of(indices), axis, -1.0, 2.5))
    np.testing.assert_array_equal(out, want)


def test_one_hot_of_an_index_outside_is_off():
    out = np.full((2, 3), np.nan)
    run_calls(one_hot_calls(host_target(), view_of(out), view_of(np.array([3, 1])), 1))
    assert out.tolist() == [[0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("dtype", ["f4", "i8", "b1", "u1"])
@pytest.mark.parametrize("most", [0, 3, 200])
def test_nonzero_gives_the_first_places_and_the_count(dtype, most):
    x = np.random.default_rng(10).integers(0, 2, (3, 7, 5)).astype("bool" if dtype == "b1" else dtype)
    want = np.stack(np.nonzero(x))
    out, count = np.full((3, most), -5), np.zeros((), np.int64)
    scratch = np.zeros(x.size, x.dtype)
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    for given_x in (x, turned):
        owner = given_x if given_x.base is None else given_x.base
        view = View(Pointer(owner), given_x.shape, given_x.strides, dtype)
        run_calls(nonzero_calls(host_target(), view_of(out), view_of(count), view, view_of(scratch), fill=-1))
        n = want.shape[1]
        assert count == n
        np.testing.assert_array_equal(out[:, : min(n, most)], want[:, :most])
        assert (out[:, n:] == -1).all()


@given(data=st.data(), upper=st.booleans(), order=st.sampled_from(ORDERS))
def test_triangles_are_numpys(data, upper, order):
    shape = (*data.draw(EMPTY), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40)))
    diagonal = data.draw(st.integers(-12, 45))
    x, x_view = data.draw(strided(shape, data.draw(st.sampled_from(["u1", "f8"]))))
    want = np.ascontiguousarray((np.triu if upper else np.tril)(x, diagonal))
    out = filled(want)
    run_calls(triangle_calls(HERE, view_of(out), x_view, diagonal, upper), order=order)
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize(("places", "outside"), [([0, 2, -3], 0), ([0, 3, 1], 1), ([-4, 0, 0], 1)])
@pytest.mark.parametrize("how", ["take", "take_along_axis", "put_along_axis", "scatter"])
def test_positions_are_looked_at_where_nothing_is_moved(how, places, outside, dtype):
    """Rows of no elements: along the axis the positions count all the same."""
    x, out, error = np.zeros((3, 0)), np.zeros((3, 0)), np.zeros(1, np.int64)
    indices = np.repeat(np.array(places, dtype), 2)[::2]  # strided
    view, empty = view_of(indices), view_of(np.zeros((3, 0), dtype))
    calls = {
        "take": lambda: take_calls(HERE, view_of(out), view_of(x), view, 0, Pointer(error)),
        "take_along_axis": lambda: take_along_axis_calls(HERE, view_of(out), view_of(x), empty, 0, Pointer(error)),
        "put_along_axis": lambda: put_along_axis_calls(
            HERE, view_of(x), empty, view_of(out), ScatterRule(0, "set", Pointer(error))
        ),
        "scatter": lambda: scatter_calls(HERE, view_of(x), view, view_of(out), ScatterRule(0, "add", Pointer(error))),
    }[how]()
    for target in TARGETS:
        error[0] = 0
        run_calls(calls, target_named(target))
        assert error[0] == (outside if how in ("take", "scatter") else 0)
    assert not take_calls(HERE, view_of(out), view_of(x), view, 0)  # nobody listens


REPEATED = {
    "one update": lambda shape, axis: (shape, ()),
    "one update for each position": lambda shape, axis: (shape, with_ones(shape, *{0, 1, 2} - {axis})),
    "positions that others share": lambda shape, axis: (with_ones(shape, *{0, 1, 2} - {axis}), shape),
    "positions that some share": lambda shape, axis: (with_ones(shape, (axis + 1) % 3), shape),
    "one position": lambda shape, axis: (with_ones(shape, axis), shape),
    "one position and one update": lambda shape, axis: (with_ones(shape, axis), with_ones(shape, axis)),
}


def with_ones(shape, *axes):
    return tuple(1 if axis in axes else n for axis, n in enumerate(shape))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("how", ["set", "add"])
def test_positions_and_updates_repeat_along_axes_of_one_element(how, axis, name, target):
    """Three places along an axis of 5 elements, or one; in another integer dtype, too."""
    rng, whole = np.random.default_rng(4), [4, 5, 6]
    whole[axis] = 3
    sizes = REPEATED[name](tuple(whole), axis)
    out = rng.integers(-9, 9, [5 if a == axis else n for a, n in enumerate(whole)]).astype("f4")
    indices = rng.integers(-5, 5, sizes[0]).astype("i4")
    updates = np.asarray(rng.integers(-9, 9, sizes[1]), "f4")
    want, shape = out.copy(), np.broadcast_shapes(*sizes)
    for place in np.ndindex(shape):
        at = (*place[:axis], int(np.broadcast_to(indices, shape)[place]), *place[axis + 1 :])
        update = np.broadcast_to(updates, shape)[place]
        want[at] = update if how == "set" else want[at] + update
    views = view_of(out), view_of(indices), view_of(updates)
    run_calls(put_along_axis_calls(target_named(target), *views, ScatterRule(axis, how)), target_named(target))
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [0, 1])
def test_a_take_along_an_axis_repeats_either_side_along_axes_of_one_element(side, axis):
    rng, sizes = np.random.default_rng(5), [[4, 5, 6], [4, 5, 6]]
    sizes[1][axis] = 3
    for other in {0, 1, 2} - {axis}:
        own = [list(size) for size in sizes]
        own[side][other] = 1
        x, indices = rng.random(own[0], "f4"), rng.integers(-own[0][axis], own[0][axis], own[1])
        want = taken(x, indices, axis)
        out = np.full(want.shape, np.nan, "f4")
        run_calls(take_along_axis_calls(HERE, view_of(out), view_of(x), view_of(indices), axis))
        np.testing.assert_array_equal(out, want)


def taken(x, indices, axis):
    """The elements at the positions, where all other axes are as long as the longer of both."""
    shape = list(np.maximum(x.shape, indices.shape))
    shape[axis] = indices.shape[axis]
    out = np.empty(shape, x.dtype)
    for place in np.ndindex(*shape):
        index = int(np.broadcast_to(indices, shape)[place])
        out[place] = x[tuple(index if a == axis else p % x.shape[a] for a, p in enumerate(place))]
    return out


@pytest.mark.parametrize("how", [*HOW, "set"])
def test_a_position_just_outside_is_reported_and_the_last_ones_inside_are_not(how):
    for place, outside in ((3, 0), (-4, 0), (4, 1), (-5, 1), (2**40, 1), (-(2**40), 1)):
        out, error = np.arange(1.0, 5), np.zeros(1, np.int64)
        want = out.copy()
        if not outside:
            want[place] = 7 if how == "set" else HOW[how](want[place], 7)
        views = view_of(out), view_of(np.array([place])), view_of(np.array([7.0]))
        run_calls(put_along_axis_calls(HERE, *views, ScatterRule(0, how, Pointer(error))))
        assert out.tolist() == want.tolist() and error[0] == outside, place


def test_nonzero_of_a_strided_array_needs_a_workspace_of_its_size():
    x, out, count = np.ones((4, 6), "f4")[:, ::2], np.zeros((2, 12), np.int64), np.zeros((), np.int64)
    views = view_of(out), view_of(count), view_of(x)
    for room in (None, view_of(np.zeros(11, "f4"))):
        with pytest.raises(ValueError, match="these calls need 48"):
            nonzero_calls(HERE, *views, room)
    assert nonzero_calls(HERE, *views, view_of(np.zeros(12, "f4")))


def test_triangles_of_one_matrix_are_those_of_many():
    x = np.arange(1.0, 13).reshape(3, 4)
    for shape in ((3, 4), (1, 3, 4), (2, 1, 3, 4)):
        for upper, function in ((True, np.triu), (False, np.tril)):
            out = np.full(shape, np.nan)
            run_calls(triangle_calls(HERE, view_of(out), view_of(x), -1, upper))
            np.testing.assert_array_equal(out, np.broadcast_to(function(x, -1), shape))


def test_positions_that_are_not_one_axis_are_refused():
    out, updates = np.zeros((5, 3)), np.zeros((2, 4, 3))
    indices = np.zeros((2, 4), np.int64)
    for places, changes in ((indices.T.copy().T, updates), (indices, np.zeros((2, 5, 3))[:, :4])):
        with pytest.raises(ValueError, match="are not one axis"):
            scatter_calls(HERE, view_of(out), view_of(places), view_of(changes), ScatterRule(0))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_position_without_axes_is_one_row(axis):
    x = np.arange(12.0).reshape(3, 4)
    for how, place in (("set", -1), ("add", 1), ("max", 2)):
        out, updates = x.copy(), np.full(np.delete(x.shape, axis), 5.0)
        want = np.moveaxis(x.copy(), axis, 0)
        want[place] = updates if how == "set" else HOW[how](want[place], updates)
        views = view_of(out), view_of(np.array(place)), view_of(updates)
        run_calls(scatter_calls(HERE, *views, ScatterRule(axis, how)))
        np.testing.assert_array_equal(out, np.moveaxis(want, 0, axis))
        taken_row = np.zeros(updates.shape)
        run_calls(take_calls(HERE, view_of(taken_row), view_of(x), view_of(np.array(place)), axis))
        np.testing.assert_array_equal(taken_row, np.take(x, place, axis))


@pytest.mark.parametrize(
    ("shape", "axis", "step", "how"),
    [((9, 70), 0, 1, "run"), ((9, 70), 0, 2, "strided"), ((9, 70), 1, 1, "each"), ((9, 7, 6), 1, 1, "run")],
)
def test_rows_of_one_position_are_moved_as_runs(shape, axis, step, how):
    x = np.random.default_rng(0).random((*shape[:-1], step * shape[-1]))[..., ::step]
    indices = np.array([3, -1, 2])
    want = np.take(x, indices, axis)
    out = np.full(want.shape, np.nan)
    [call] = take_calls(HERE, view_of(out), view_of(x), view_of(indices), axis)
    assert call.kernel.params == (8, "i8", how)
    run_calls([call])
    np.testing.assert_array_equal(out, want)
    apart = np.full((*want.shape, 2), np.nan)
    [call] = take_calls(HERE, view_of(apart[..., 0]), view_of(x), view_of(indices), axis)
    assert call.kernel.params[2] == ("strided" if how == "run" else how)
    run_calls([call])
    np.testing.assert_array_equal(apart[..., 0], want)
