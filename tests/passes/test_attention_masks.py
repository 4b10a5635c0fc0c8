"""Masks under other leading axes; what hides later keys."""

from math import inf, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.passes.attention_masks import is_lower_triangle, number_of_later_keys, regrouped


def splits(draw, n):
    """Axes whose lengths multiply to `n`, some of length 1."""
    axes = [1] * draw(st.integers(0, 1))
    while n > 1:
        axes.append(draw(st.sampled_from([x for x in range(1, n + 1) if n % x == 0])))
        n //= axes[-1]
    return tuple(axes)


@pytest.mark.slow
@settings(max_examples=200)
@given(data=st.data())
def test_a_regrouped_array_is_the_broadcast_one_under_other_axes(data):
    size = data.draw(st.sampled_from([1, 2, 6, 8, 12]))
    old, new = splits(data.draw, size), splits(data.draw, size)
    narrow = tuple(data.draw(st.sampled_from([1, n])) for n in old)
    x = np.arange(prod(narrow)).reshape(narrow)
    shape, full = regrouped(narrow, old, new)
    got = np.broadcast_to(np.broadcast_to(x, full).reshape(shape), new)
    np.testing.assert_array_equal(got, np.broadcast_to(x, old).reshape(new))


@pytest.mark.parametrize(
    "narrow, old, new, shape, full",
    [
        ((1, 64, 1), (1, 64, 3), (64, 3), (64, 1), (1, 64, 1)),
        ((1, 1, 3), (1, 64, 3), (64, 3), (1, 3), (1, 1, 3)),
        ((8,), (8,), (2, 4), (2, 4), (8,)),
        ((1,), (8,), (2, 4), (1, 1), (1,)),
        ((2, 1), (2, 4), (8,), (8,), (2, 4)),
        ((), (), (1, 1), (1, 1), ()),
    ],
)
def test_axes_are_broadcast_only_where_they_are_joined_with_others(narrow, old, new, shape, full):
    assert regrouped(narrow, old, new) == (shape, full)


def test_numbers_that_hide_later_keys():
    triangle = np.tri(4, dtype=bool)
    for low in (-inf, -1e38):
        assert number_of_later_keys(cg.Const(np.where(triangle, 0, low).astype("float32"))) == np.float32(low)
    assert number_of_later_keys(cg.Const(np.where(triangle, 0, -1.0).astype("float32"))) is None
    assert number_of_later_keys(cg.Const(np.where(triangle.T, 0, -inf).astype("float32"))) is None


def test_a_lower_triangle_may_be_made_or_given():
    assert is_lower_triangle(cg.tril(cg.full((3, 5), True, "bool")))
    assert is_lower_triangle(cg.Const(np.tri(3, dtype=bool)))
    assert not is_lower_triangle(cg.Const(np.tri(3, 3, 1, dtype=bool)))
    assert not is_lower_triangle(cg.Var((3, 3), "bool"))
