"""Slices, joins, repeats and frames whose bounds a run decides, beside NumPy for every bound."""

from itertools import product

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx.dynamic.bounds import Size
from cgraph.formats.onnx.dynamic.value import Ragged, node_in, pads_zeros
from cgraph.formats.onnx.dynamic_ops.slices import (
    clip_index,
    expand_to,
    join_along,
    limit_count,
    pad_axis,
    repeat,
    slice_axis,
    wrap_index,
)
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.ops.rows import SetRows
from tests.support.onnx_context import context, holds, length, ragged, value_of

X = Var((2, 5), "float32", "x")
VALUES = np.arange(10, dtype="f4").reshape(2, 5)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_bounds_of_a_run_are_those_of_a_slice(step):
    c = context(X)
    start, end, n = (length(c, name, most, -9) for name, most in (("s", 9), ("e", 9), ("n", 5)))
    y = slice_axis(c, ragged(X, {1: n}), 1, start, end, step)
    for s, e, m in product((-9, -2, 0, 1, 4, 7), (-9, -1, 0, 2, 5, 9), (0, 1, 3, 5)):
        got = value_of(y, {X: VALUES, start.node: s, end.node: e, n.node: m})
        whole = VALUES[:, :m]
        if step > 0:
            want = whole[:, s:e:step]
        else:  # an end below the first element is ONNX's way to the first
            want = whole[:, s : (None if e < -m else e) : step] if s >= -m else whole[:, :0]
        np.testing.assert_array_equal(got, want, err_msg=str((s, e, m)))


@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_start_of_now_is_a_view(start):
    c = context(X)
    n = length(c, "n", 5)
    y = slice_axis(c, ragged(X, {1: n}), 1, start, 99, 2)
    for m in (0, 2, 5):
        np.testing.assert_array_equal(value_of(y, {X: VALUES, n.node: m}), VALUES[:, :m][:, start::2])
    with pytest.raises(FormatError, match="step 0 is not supported"):
        slice_axis(c, X, 1, 0, 3, 0)


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("opened", ["start", "end", "length", "start end", "end length", "start length"])
def test_each_of_start_end_and_length_may_be_known_now_or_when_run(opened, step):
    choices = {"start": (-9, -3, 0, 4), "end": (-9, -2, 2, 9), "length": (0, 3, 5)}
    open_names = opened.split()
    known = [name for name in choices if name not in open_names]
    for fixed in product(*(choices[name] if name != "length" else (5,) for name in known)):
        now = dict(zip(known, fixed))
        c = context(X)
        ends = {name: (5, 0) if name == "length" else (9, -9) for name in open_names}
        sizes = {name: length(c, name, *bounds) for name, bounds in ends.items()}
        x = ragged(X, {1: sizes["length"]}) if "length" in sizes else X
        y = slice_axis(c, x, 1, sizes.get("start", now.get("start")), sizes.get("end", now.get("end")), step)
        for run in product(*(choices[name] for name in open_names)):
            given = now | dict(zip(open_names, run))
            s, e, m = given["start"], given["end"], given["length"]
            whole = VALUES[:, :m]
            if step > 0:
                want = whole[:, s:e:step]
            else:
                want = whole[:, s : (None if e < -m else e) : step] if s >= -m else whole[:, :0]
            got = value_of(y, {X: VALUES, **{sizes[name].node: k for name, k in zip(open_names, run)}})
            np.testing.assert_array_equal(got, want, err_msg=str(given))


def test_positions_between_a_number_and_a_few_further_are_as_many_at_most():
    for apart, step, most in ((3, 1, 3), (3, 2, 2), (-2, 1, 0), (0, 1, 0), (4, 2, 2)):
        c = context(X)
        count = Var((), "int64", "count")
        limit_count(c, count, apart, step)
        assert c.limits.bounds(count)[1] == most
        assert all(holds(c, {count: k}) is (k <= most) for k in range(5))
        assert f"there are more than {most} positions" in c.limits.checks[0].text
    c = context(X)
    limit_count(c, count, None, 1)
    assert not c.limits.checks


def test_indices_are_wrapped_and_clipped():
    assert [wrap_index(at, 5) for at in (-6, -1, 0, 4, 7)] == [-1, 4, 0, 4, 7]
    assert [clip_index(at, 0, 5) for at in (-6, 0, 3, 5, 7)] == [0, 0, 3, 5, 5]


@pytest.mark.parametrize("axis", [0, -2])
def test_values_are_joined_without_gaps(axis):
    y = Var((3, 5), "float32", "y")
    more = 100 + np.arange(15, dtype="f4").reshape(3, 5)
    c = context(X)
    n, m = length(c, "n", 2), length(c, "m", 3)
    joined = join_along(c, [ragged(X, {0: n}), ragged(y, {0: m}), X], axis)
    for i, j in product((0, 1, 2), (0, 2, 3)):
        got = value_of(joined, {X: VALUES, y: more, n.node: i, m.node: j})
        np.testing.assert_array_equal(got, np.concatenate([VALUES[:i], more[:j], VALUES]))


def test_other_axes_of_joined_values_have_one_length():
    y = Var((2, 4), "float32", "y")
    c = context(X)
    n, m = length(c, "n", 5), length(c, "m", 4)
    joined = join_along(c, [ragged(X, {1: n}), ragged(y, {1: m})], 0)
    more = np.arange(8, dtype="f4").reshape(2, 4)
    got = value_of(joined, {X: VALUES, y: more, n.node: 3, m.node: 3})
    np.testing.assert_array_equal(got, np.concatenate([VALUES[:, :3], more[:, :3]]))
    assert holds(c, {n.node: 3, m.node: 3}) and not holds(c, {n.node: 3, m.node: 2})


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("dynamic", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_every_other_axis_of_joined_values_is_cut(axis, dynamic, swapped):
    """The arrays have unequal room along each axis whose length a run decides."""
    beside = [a for a in range(3) if a != axis]
    cut = [beside[i] for i in dynamic]
    rooms = [[4, 3, 5], [4, 3, 5]]
    for i, a in enumerate(cut):
        rooms[(i + swapped) % 2][a] += 2
    operands = [Var(tuple(room), "float32", name) for room, name in zip(rooms, "xy")]
    values = [i * 1000 + np.arange(x.size, dtype="f4").reshape(x.shape) for i, x in enumerate(operands)]
    c = context(*operands)
    lengths = [{a: length(c, f"{x.name}{a}", x.shape[a]) for a in cut} for x in operands]
    joined = join_along(c, [ragged(x, n) for x, n in zip(operands, lengths)], axis)
    for sizes in product((0, 1, 3), repeat=len(cut)):
        run = {n[a].node: m for n in lengths for a, m in zip(cut, sizes)}
        index = tuple(slice(dict(zip(cut, sizes)).get(a)) for a in range(3))
        got = value_of(joined, {**dict(zip(operands, values)), **run})
        np.testing.assert_array_equal(got, np.concatenate([x[index] for x in values], axis))
        assert holds(c, run)
        for a in cut:
            assert not holds(c, {**run, lengths[1][a].node: run[lengths[1][a].node] + 1})


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(3,), (1, 2), (0, 3), (3, 0)])
def test_parts_are_written_into_the_first_array_if_it_has_room(dtype, axis, sizes):
    """The state of a loop has room for all rounds; the array that it had is not copied."""
    shape = np.array([2, 5])
    shape[axis] = 8
    x = Var(tuple(shape), dtype, "x")
    parts = [Var((m, 5) if axis == 0 else (2, m), dtype, f"part{m}") for m in sizes]
    c = context(x, *parts)
    n = length(c, "n", 5)
    joined = join_along(c, [Ragged(x, {axis: n}), *parts], axis)
    assert any(isinstance(node.op, SetRows) for node in post_order([node_in(joined)]))
    assert node_in(joined).shape == x.shape
    values = {v: (np.arange(1, v.size + 1) * 3 % 7).reshape(v.shape).astype(dtype) for v in (x, *parts)}
    for m in (0, 2, 5):
        got = value_of(joined, {**values, n.node: m})
        want = [values[x][:m] if axis == 0 else values[x][:, :m], *(values[v] for v in parts)]
        np.testing.assert_array_equal(got, np.concatenate(want, axis))
    wide = Ragged(x, {axis: Size(n.node, 0, 6)})
    assert not any(isinstance(node.op, SetRows) for node in post_order([node_in(join_along(c, [wide, *parts], axis))]))


def test_what_is_known_to_be_zero_stays_zero_behind_fixed_parts_alone():
    x, part = Var((2, 8), "float32", "x"), Var((2, 3), "float32", "part")
    c = context(x, part)
    n, m = length(c, "n", 5), length(c, "m", 3)
    state = Ragged(x, {1: n})
    assert not pads_zeros(c.limits, state) and not pads_zeros(c.limits, join_along(c, [state, part], 1))
    c.limits.zero_padded[x] = {1: n.node}
    joined = join_along(c, [state, part], 1)
    assert pads_zeros(c.limits, joined)
    assert not pads_zeros(c.limits, Ragged(joined.node, {1: n}))
    assert not pads_zeros(c.limits, join_along(c, [state, ragged(part, {1: m})], 1))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_rows_from_a_computed_start_inside_the_axis_have_a_fixed_number(rows):
    c = context(X)
    at = Var((), "int64", "at")
    c.limits.at_most(at, 5 - rows, 0)
    y = slice_axis(c, X, 1, c.limits.length(at), c.limits.length(at + rows), 1)
    assert isinstance(y, Node) and y.shape == (2, rows)
    for start in range(6 - rows):
        np.testing.assert_array_equal(value_of(y, {X: VALUES, at: start}), VALUES[:, start : start + rows])
    assert not c.limits.checks


@pytest.mark.parametrize(("least", "most"), [(0, 3), (-1, 2)])
def test_rows_that_may_lie_outside_the_axis_have_none(least, most):
    c = context(X)
    at = Var((), "int64", "at")
    c.limits.at_most(at, most, least)
    y = slice_axis(c, X, 1, c.limits.length(at), c.limits.length(at + 3), 1)
    assert isinstance(y, Ragged)
    for start in range(least, most + 1):
        np.testing.assert_array_equal(value_of(y, {X: VALUES, at: start}), VALUES[:, start : start + 3 or None])


def test_a_whole_axis_is_repeated():
    c = context(X, X, maximum={"y": 6})
    n, times = length(c, "n", 2), length(c, "t", 3)
    y = repeat(c, ragged(X, {0: n}), 0, times)
    for i, t in product((0, 1, 2), (0, 1, 3)):
        np.testing.assert_array_equal(value_of(y, {X: VALUES, n.node: i, times.node: t}), np.tile(VALUES[:i], (t, 1)))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_frames_of_a_run(mode):
    c = context(X, X)
    n, before, size = length(c, "n", 5), length(c, "b", 4, -3), length(c, "k", 12)
    y = pad_axis(c, ragged(X, {1: n}), 1, before, size, mode, 7.5)
    more = {"constant_values": 7.5} if mode == "constant" else {}
    for m, b, a in product((3, 5), (0, 1, 2), (0, 2)):
        got = value_of(y, {X: VALUES, n.node: m, before.node: b, size.node: m + a + b})
        np.testing.assert_array_equal(got, np.pad(VALUES[:, :m], ((0, 0), (b, a)), mode, **more))
    got = value_of(y, {X: VALUES, n.node: 4, before.node: -2, size.node: 3})
    if mode == "constant":
        np.testing.assert_array_equal(got, [[2, 3, 7.5], [7, 8, 7.5]])
    with pytest.raises(FormatError, match="mode 'odd' is not supported. Use constant, edge, reflect or wrap"):
        pad_axis(c, X, 1, before, size, "odd", 0)


def test_one_element_is_repeated_to_a_length_of_a_run_and_others_must_equal_it():
    x = Var((1, 5), "float32", "one")
    c = context(x, x)
    n, m = length(c, "n", 4), length(c, "m", 5)
    y = expand_to(c, x, [3, n, 5])
    row = np.arange(5, dtype="f4").reshape(1, 5)
    assert value_of(y, {x: row, n.node: 2}).tolist() == np.broadcast_to(row, (3, 2, 5)).tolist()
    assert not c.limits.checks
    np.testing.assert_array_equal(value_of(expand_to(c, x, [m]), {x: row, m.node: 5}), row)
    assert all(holds(c, {m.node: k}) is (k in (1, 5)) for k in range(6))
    with pytest.raises(FormatError, match="5 elements along axis 1 cannot be repeated to 4"):
        expand_to(c, x, [4])


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("known", [True, False])
def test_a_slice_has_room_for_its_maximum_or_for_what_may_be_in_it(step, known):
    """A maximum of the result bounds one of an open length alone."""
    for most in (None, 2):
        c = context(X, maximum={} if most is None else {"y": most})
        n = length(c, "n", 4)
        start, end = (0, 5) if step > 0 else (4, -9)
        y = slice_axis(c, X if known else ragged(X, {1: n}), 1, start, end, step)
        room = -(-(5 if known else 4) // abs(step))
        assert node_in(y).shape == (2, room if known or most is None else min(room, most))
