"""Streams of random numbers inside and outside of traced functions."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError
from cgraph.numpy.random import default_rng
from tests.support.tolerance import all_near, assert_near


def draws(rng):
    return (
        rng.random(3), rng.standard_normal((2, 2)), rng.normal(1.0, np.array([2.0, 3.0])), rng.uniform(-1, 1, 4),
        rng.integers(3, 9, 20), rng.integers(5), rng.exponential(2.0, 3), rng.permutation(6),
        rng.random(dtype="float32"), rng.permutation(np.arange(12.0).reshape(4, 3)),
    )  # fmt: skip


def test_a_stream_gives_the_same_numbers_traced_and_not_and_advances():
    inside, outside = default_rng(7), default_rng(7)
    f = cg.jit(draws)
    rounds = []
    for _ in range(2):
        rounds.append(f(inside))
        for x, y in zip(rounds[-1], draws(outside), strict=True):
            assert np.asarray(x).dtype == np.asarray(y).dtype
            assert_near(x, y, "float32 formulas near zero")
        assert inside.key.tolist() == outside.key.tolist()
    assert not np.array_equal(rounds[0][0], rounds[1][0])


def test_a_stream_inside_of_a_tree_advances_and_one_that_is_returned_goes_on():
    def f(state):
        x = state["rng"].random()
        return {"rng": state["rng"], "x": x}

    state = {"rng": default_rng(1), "x": 0.0}
    own, g = default_rng(1), cg.jit(f)
    for _ in range(3):
        state = g(state)
        assert state["x"] == own.random()


def test_a_stream_made_inside_draws_the_same_in_each_call():
    f = cg.jit(lambda x: x + default_rng(3).standard_normal(3))
    assert np.array_equal(f(np.zeros(3)), f(np.zeros(3)))
    assert all_near(f(np.zeros(3)), default_rng(3).standard_normal(3))


def test_a_stream_advances_through_gradients_and_nested_functions():
    @cg.jit
    def noisy(x, rng):
        return np.sum(x * rng.random(3))

    def f(x, rng):
        return cg.grad(noisy)(x, rng), noisy(x, rng), rng.random()

    inside, outside = default_rng(5), default_rng(5)
    slope, value, last = cg.jit(f)(np.ones(3), inside)
    assert all_near(slope, outside.random(3)) and all_near(value, outside.random(3).sum())
    assert last == outside.random() and inside.key.tolist() == outside.key.tolist()


def test_distributions_have_their_moments():
    rng = default_rng(0)
    for values, mean, deviation in [
        (rng.random(20_000), 0.5, 12**-0.5),
        (rng.normal(3.0, 2.0, 20_000), 3.0, 2.0),
        (rng.exponential(2.0, 20_000), 2.0, 2.0),
        (rng.integers(0, 10, 20_000), 4.5, np.sqrt(99 / 12)),
    ]:
        assert abs(values.mean() - mean) < 0.05 * deviation and abs(values.std() - deviation) < 0.05 * deviation
    assert set(rng.integers(2, 5, 100).tolist()) == {2, 3, 4}
    assert set(rng.integers(2, 5, 100, endpoint=True).tolist()) == {2, 3, 4, 5}
    assert sorted(rng.permutation(7).tolist()) == list(range(7))


def test_ranges_that_are_empty_are_refused():
    with pytest.raises(ArgumentError, match="1 to 2"):
        default_rng(0).integers(5, 5)
