"""Masks under other leading axes; what hides later keys."""

from math import inf, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.passes.attention_masks import HIDDEN, is_lower_triangle, number_of_later_keys, regrouped


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
        ((1, 1), (2, 4), (8,), (1,), (1, 1)),
        ((1, 4), (2, 4), (8,), (8,), (2, 4)),
        ((2, 1, 3), (2, 4, 3), (8, 3), (8, 3), (2, 4, 3)),
        ((1, 1, 3), (2, 4, 3), (8, 3), (1, 3), (1, 1, 3)),
        ((2, 1, 1, 5), (2, 3, 4, 5), (6, 20), (6, 20), (2, 3, 4, 5)),
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


def test_the_largest_number_that_hides_a_later_key_is_said_and_must_hide_it():
    low = np.where(np.tri(3, dtype=bool), 0, -1e35)
    low[0, 2] = -inf
    assert number_of_later_keys(cg.Const(low)) == -1e35 and number_of_later_keys(cg.Const(low[None, None])) == -1e35
    for at, value in (((0, 2), HIDDEN), ((0, 1), -1.0), ((1, 2), 0.0), ((2, 0), -1e35), ((1, 1), 1.0)):
        other = low.copy()
        other[at] = value
        assert number_of_later_keys(cg.Const(other)) is None
    assert number_of_later_keys(cg.Const(np.stack([low, low]))) is number_of_later_keys(cg.Const(np.zeros(3))) is None
    assert number_of_later_keys(cg.Var((3, 3))) is None


def test_numbers_that_a_choice_by_a_triangle_makes_hide_later_keys():
    seen = cg.tril(cg.full((4, 4), True, "bool"))

    def chosen(visible=seen, zero=0.0, low=-inf):
        return cg.where(visible, cg.Const(np.asarray(zero, "f4")), cg.Const(np.asarray(low, "f4")))

    assert number_of_later_keys(chosen()) == -inf and number_of_later_keys(chosen(low=-1e35)) == np.float32(-1e35)
    for other in (
        chosen(low=HIDDEN / 2),
        cg.where(seen, cg.zeros((), "float64"), cg.Const(np.float64(HIDDEN))),
        chosen(zero=1.0), chosen(cg.tril(cg.full((4, 4), True, "bool"), 1)),
        chosen(cg.Var((4, 4), "bool")), cg.where(seen, np.float32(0), cg.Var((), "float32")), chosen(low=[-inf] * 4),
    ):  # fmt: skip
        assert number_of_later_keys(other) is None


def test_a_triangle_in_the_graph_is_of_ones_at_and_below_the_diagonal():
    ones = cg.full((3, 5), 1.0, "float32")
    assert is_lower_triangle(cg.tril(ones)) and is_lower_triangle(cg.tril(ones).astype("bool"))
    assert is_lower_triangle(cg.broadcast_to(cg.tril(ones), (2, 3, 5)))
    for other in (
        cg.tril(ones, 1),
        cg.tril(ones, -1),
        cg.triu(ones),
        cg.tril(cg.zeros((3, 5))),
        cg.tril(cg.Var((3, 5))),
    ):
        assert not is_lower_triangle(other)


def test_a_lower_triangle_may_be_made_or_given():
    assert is_lower_triangle(cg.tril(cg.full((3, 5), True, "bool")))
    assert is_lower_triangle(cg.Const(np.tri(3, dtype=bool)))
    assert not is_lower_triangle(cg.Const(np.tri(3, 3, 1, dtype=bool)))
    assert not is_lower_triangle(cg.Var((3, 3), "bool"))
