"""Reshapes of values whose lengths a run decides: elements keep their order, lengths cancel, room is bounded."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx.dynamic.bounds import Size
from cgraph.formats.onnx.dynamic_ops.reshape import (
    common_prefix,
    is_contiguous,
    max_lengths,
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
    sizes = [length(c, f"k{i}", 24) for i in range(4)]
    with pytest.raises(UnknownError, match="24 elements would need room for 331,776"):
        max_lengths(c, X, sizes)
