"""Reshapes of values whose lengths a run decides: elements keep their order, lengths cancel, room is bounded."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx.dynamic.bounds import Size
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.formats.onnx.dynamic_ops.reshape import (
    common_prefix,
    is_contiguous,
    max_lengths,
    needs_room,
    ravel,
    reshape_to,
    rest_of,
    unravel,
)
from cgraph.formats.unspecified import UnknownError
from cgraph.ops.leaf import Var
from tests.support.onnx_context import context, holds, length, ragged, value_of

X = Var((4, 3, 2), "float32", "x")
VALUES = np.arange(24, dtype="f4").reshape(4, 3, 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_elements_keep_their_order(axis, n):
    c = context(X)
    size = length(c, "n", X.shape[axis])
    x = ragged(X, {axis: size})
    want = VALUES[tuple(slice(n) if a == axis else slice(None) for a in range(3))]
    rest = X.size // X.shape[axis]
    for target in ([-1], [size, -1], [-1, size], [1, -1], [rest, -1], [size, rest], [rest, size]):
        y = reshape_to(c, x, target)
        shape = [n if isinstance(k, Size) else k for k in target]
        shape = [n * rest // max(-np.prod(shape), 1) if k == -1 and n else (0 if k == -1 else k) for k in shape]
        if -1 in target:
            others = int(np.prod([k for k, t in zip(shape, target) if t != -1]))
            shape = [(want.size // others if others else rest) if t == -1 else k for k, t in zip(shape, target)]
        got = value_of(y, {X: VALUES, size.node: n})
        assert got.shape == tuple(shape), target
        np.testing.assert_array_equal(got, want.reshape(shape))
    assert holds(c, {size.node: n})


def test_two_lengths_of_a_run():
    c = context(X)
    n, m = length(c, "n", 4), length(c, "m", 3)
    x = ragged(X, {0: n, 1: m})
    y = reshape_to(c, x, [n, -1])
    for i, j in ((2, 3), (4, 1), (0, 2)):
        got = value_of(y, {X: VALUES, n.node: i, m.node: j})
        np.testing.assert_array_equal(got, VALUES[:i, :j].reshape(i, 2 * j))
    flat = reshape_to(c, x, [-1])
    np.testing.assert_array_equal(value_of(flat, {X: VALUES, n.node: 3, m.node: 2}), VALUES[:3, :2].reshape(-1))


def test_a_target_of_a_run_is_checked():
    c = context(X)
    n = length(c, "n", 24)
    y = reshape_to(c, X, [n, 2])
    np.testing.assert_array_equal(value_of(y, {X: VALUES, n.node: 12}), VALUES.reshape(12, 2))
    assert holds(c, {n.node: 12}) and not holds(c, {n.node: 11})
    with pytest.raises(FormatError, match="lengths known only at run time do not fit"):
        reshape_to(c, X, [5, 5])


def test_lengths_that_are_the_same_cancel():
    c = context(X)
    n = length(c, "n", 4)
    assert rest_of(c, [n, 3, 2], [n]) == 6 and rest_of(c, [n, 3, 2], [n, 2]) == 3
    assert rest_of(c, [n, 3, 2], [6]) is n or rest_of(c, [n, 3, 2], [6]) == n
    assert isinstance(rest_of(c, [n, 3, 2], [2]), Size) and rest_of(c, [4, 3], [12]) == 1
    with pytest.raises(FormatError, match=r"shape \[0\] leaves axis -1 undetermined"):
        rest_of(c, [n, 3], [0])


def test_lengths_that_do_not_cancel_are_divided_when_run():
    """Also of no elements; a remaining product of 0 leaves the rest open."""
    c = context(X)
    n, m = length(c, "n", 4), length(c, "m", 4)

    def rest(old, others, **values):
        got = rest_of(c, old, others)
        if not isinstance(got, Size):
            return got
        return int(evaluate([got.node], {v.node: np.array(values[v.node.label]) for v in (n, m)})[0])

    for i, j in ((4, 2), (3, 1), (4, 4), (2, 0), (0, 3)):
        assert rest([n, 3], [m], n=i, m=j) == i * 3 // max(j, 1)
        assert rest([n, 3, 2], [m, 2], n=i, m=j) == i * 6 // max(2 * j, 1)
        assert rest([m, n, 3], [n, 2], n=i, m=j) == j * 3 // 2
        assert rest([n, n, 3], [n], n=i, m=j) == i * 3
        assert rest([n, 5], [3], n=i, m=j) == i * 5 // 3
        assert rest([n, 0], [2], n=i, m=j) == 0 and rest([n, m], [], n=i, m=j) == i * j
    with pytest.raises(FormatError, match=r"shape \[2, 0\] leaves axis -1 undetermined"):
        rest_of(c, [n, 3], [2, 0])
    with pytest.raises(FormatError, match=r"shape \[0\] leaves axis -1 undetermined"):
        rest_of(c, [3], [m, 0])


SHAPES = [
    ((2, 3, 4, 5), [6, 4, 5]), ((2, 3, 4, 5), [3, 2, 4, 5]), ((2, 3, 4, 5), [1, 6, 4, 5]),
    ((2, 3, 4, 5), [2, 3, 20]), ((2, 3, 4, 5), [2, 12, 5]), ((4, 5), [4, 1, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "target"), SHAPES)
@pytest.mark.parametrize("dynamic", [(0,), (1,), (2,), (3,), (2, 3), (0, 3), (0, 2)])
def test_axes_before_and_behind_those_that_change_keep_their_lengths(shape, target, dynamic):
    """Each dynamic axis that stays has its length at its new place; what changes is of fixed length here."""
    x = Var(shape, "float32", "v")
    front = common_prefix(shape, target)
    back = common_prefix(shape[front:][::-1], target[front:][::-1])
    if any(front <= a < len(shape) - back or a >= len(shape) for a in dynamic):
        return
    c = context(x)
    sizes = {a: length(c, f"n{a}", shape[a]) for a in dynamic}
    moved = [a if a < front else a + len(target) - len(shape) for a in dynamic]
    new = [sizes[dynamic[moved.index(i)]] if i in moved else n for i, n in enumerate(target)]
    y = reshape_to(c, ragged(x, sizes), new)
    values = np.arange(x.size, dtype="f4").reshape(shape)
    for cut in (0, 1):
        run = {size.node: shape[a] - cut - (a == 3) for a, size in sizes.items()}
        index = tuple(slice(run[sizes[a].node] if a in sizes else None) for a in range(len(shape)))
        part = values[index]
        want = part.reshape([run[k.node] if isinstance(k, Size) else k for k in new])
        np.testing.assert_array_equal(value_of(y, {x: values, **run}), want)
        assert holds(c, run)


@pytest.mark.parametrize("rows", [4, 100])
def test_a_count_of_rows_is_that_of_the_rows_where_other_counts_need_too_much_room(rows):
    """Few rows of few elements may become any number of rows; of many, a run checks that they stay as many."""
    x = Var((rows, rows), "float32", "v")
    c = context(x)
    n, m = length(c, "n", rows), length(c, "m", rows)
    y = reshape_to(c, ragged(x, {0: n}), [m, -1])
    values = np.arange(x.size, dtype="f4").reshape(x.shape)
    for i, j in ((4, 4), (4, 2), (2, 4)):
        run = {n.node: i, m.node: j}
        if rows == 4 or i == j:
            np.testing.assert_array_equal(value_of(y, {x: values, **run}), values[:i].reshape(j, -1))
        assert holds(c, run) is (rows == 4 or i == j)


def test_a_count_of_rows_of_a_fixed_number_is_not_taken_for_it():
    """A result of any other number of rows would need too much room."""
    x = Var((100, 100), "float32", "v")
    c = context(x)
    m = length(c, "m", 100)
    with pytest.raises(UnknownError, match="10000 elements would need room for 1,000,000"):
        reshape_to(c, x, [m, -1])


def test_room_is_needed_beyond_64_times_the_elements_or_what_is_small():
    assert not needs_room(0, [SMALL]) and needs_room(0, [SMALL + 1]) and needs_room(0, [2, SMALL])
    assert not needs_room(1000, [64, 1000]) and needs_room(1000, [64_001]) and not needs_room(10, [SMALL])


def test_a_length_that_is_minus_one_when_run_is_the_rest():
    c = context(X)
    n, k = length(c, "n", 4), length(c, "k", 9, -1)
    y = reshape_to(c, ragged(X, {0: n}), [k, 2])
    for i, j, rows in ((4, -1, 12), (3, -1, 9), (3, 9, 9), (0, -1, 0)):
        got = value_of(y, {X: VALUES, n.node: i, k.node: j})
        np.testing.assert_array_equal(got, VALUES[:i].reshape(rows, 2))
        assert holds(c, {n.node: i, k.node: j})
    assert not holds(c, {n.node: 3, k.node: 8})
    flat = length(c, "f", 24, -1)
    got = value_of(reshape_to(c, ragged(X, {0: n}), [flat]), {X: VALUES, n.node: 3, flat.node: -1})
    np.testing.assert_array_equal(got, VALUES[:3].reshape(-1))
    from_one = length(c, "m", 9, 1)
    z = reshape_to(c, ragged(X, {0: n}), [from_one, 2, 3])
    np.testing.assert_array_equal(value_of(z, {X: VALUES, n.node: 2, from_one.node: 2}), VALUES[:2].reshape(2, 2, 3))


def test_a_scalar_and_no_axes():
    c = context(Var((), "float32", "s"))
    x = Var((), "float32", "s")
    assert reshape_to(c, x, []).shape == () and reshape_to(c, x, [1, -1]).shape == (1, 1)
    n = length(c, "n", 1)
    one = ragged(Var((1,), "float32", "o"), {0: n})
    value = value_of(reshape_to(c, one, []), {one.node.operands[0]: np.float32([3]), n.node: 1})
    assert value.shape == () and value == 3


def test_common_axes_and_elements_side_by_side():
    c = context(X)
    n, m = length(c, "n", 4), length(c, "m", 4)
    assert common_prefix([2, n, 3], [2, n, 4]) == 2 and common_prefix([2], [2, 3]) == 1 and common_prefix([n], [m]) == 0
    assert is_contiguous([n, 3]) and is_contiguous([1, n, 3]) and is_contiguous([]) and not is_contiguous([3, n])
    assert not is_contiguous([n, m]) and is_contiguous([n, 1])


def test_a_flat_index_and_its_digits():
    assert [int(evaluate([x], {})[0]) for x in unravel(23, [4, 3, 2])] == [3, 2, 1]
    assert [int(evaluate([x], {})[0]) for x in unravel(5, [0, 2])] == [0, 1]
    assert ravel([3, 2, 1], [4, 3, 2]) == 23 and ravel([], []) == 0


def test_room_is_at_most_the_elements_and_not_far_more():
    c = context(X)
    n, m = length(c, "n", 100), length(c, "m", 5)
    assert max_lengths(c, X, [n, 2]) == [12, 2] and max_lengths(c, X, [m, 2]) == [5, 2]
    assert max_lengths(c, X, [n, 0]) == [24, 0] and max_lengths(c, X, [n, 5]) == [4, 5]
    sizes = [length(c, f"k{i}", 24) for i in range(4)]
    with pytest.raises(UnknownError, match="24 elements would need room for 331,776"):
        max_lengths(c, X, sizes)
