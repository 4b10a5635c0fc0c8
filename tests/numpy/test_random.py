"""Streams of random numbers inside and outside of traced functions, ends of ranges, shapes and refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, DTypeError, GraphError
from cgraph.numpy import random
from cgraph.numpy.random import MOST, RandomStream, common_shape, default_rng
from tests.support.tolerance import all_near, assert_near


def draws(rng):
    return (
        rng.random(3), rng.standard_normal((2, 2)), rng.normal(1.0, np.array([2.0, 3.0])), rng.uniform(-1, 1, 4),
        rng.integers(3, 9, 20), rng.integers(5), rng.exponential(2.0, 3), rng.permutation(6),
        rng.lognormal(0.0, 0.5, 3), rng.choice(6, (2, 2)), rng.choice(np.arange(8.0), 5, replace=False), rng.choice(4),
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


def test_parameters_move_and_scale_the_same_draws():
    unit = default_rng(2).random(4)
    assert all_near(default_rng(2).uniform(-3.0, 5.0, 4), unit * 8 - 3)
    assert all_near(default_rng(2).exponential(4.0, 4), -4 * np.log(1 - unit))
    assert default_rng(2).integers(10, 17, 4).tolist() == (10 + np.floor(unit * 7)).tolist()
    assert default_rng(2).integers(7, size=4).tolist() == np.floor(unit * 7).tolist()
    assert all_near(default_rng(2).normal(3.0, 0.5, 4), default_rng(2).standard_normal(4) * 0.5 + 3)
    order = np.argsort(unit)
    assert default_rng(2).permutation(4).tolist() == order.tolist()
    assert default_rng(2).permutation(np.array([5, 6, 7, 8])).tolist() == (5 + order).tolist()


def test_shapes_are_those_of_the_parameters_unless_a_size_is_given():
    assert common_shape(None, np.ones((3, 1)), np.ones(2)) == (3, 2) and common_shape((4,), np.ones(4)) == (4,)
    rng = default_rng(0)
    assert rng.normal(np.zeros((3, 1)), np.ones(2)).shape == rng.uniform(np.zeros((3, 1)), np.ones(2)).shape == (3, 2)
    assert rng.exponential(np.ones(5)).shape == (5,) and rng.random((0, 2)).shape == (0, 2)
    assert np.ndim(rng.random()) == 0 and rng.standard_normal(3, "float32").dtype == "float32"


def test_integers_have_the_ends_of_their_dtype_and_the_widest_range():
    rng = default_rng(1)
    assert set(rng.integers(-128, 127, 4000, "int8", endpoint=True).tolist()) == set(range(-128, 128))
    assert rng.integers(7, 8, 3).tolist() == [7, 7, 7] and rng.integers(7, 7, 3, endpoint=True).tolist() == [7, 7, 7]
    assert 0 <= rng.integers(MOST) < MOST and rng.integers(-5, MOST - 5, 2).min() >= -5
    for low, high, endpoint in ((0, MOST + 1, False), (0, MOST, True), (3, 2, False), (3, 1, True)):
        with pytest.raises(ArgumentError, match="pass a range of 1 to 2"):
            rng.integers(low, high, endpoint=endpoint)


def test_a_stream_from_outside_of_a_traced_function_is_refused():
    outer = default_rng(0)
    with pytest.raises(GraphError, match="from outside is used in a traced function"):
        cg.jit(lambda x: x + outer.random())(np.zeros(1))
    assert outer.key.tolist() == default_rng(0).key.tolist(), "it has not advanced"


@pytest.mark.parametrize(
    ("owner", "name", "text"),
    [
        (default_rng(0), "poisson", r"'poisson'; draw with numpy\.random\.default_rng outside"),
        (default_rng(0), "posson", r"'posson'; see dir\(stream\)"),
        (random, "nowhere", r"'nowhere'; use default_rng\(seed\)$"),
    ],
)
def test_missing_methods_and_functions_name_the_way_out(owner, name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(owner, name)


def test_a_choice_takes_elements_and_without_replacement_each_once():
    rng = default_rng(2)
    assert set(rng.choice(np.array([3.0, 5.0]), 50).tolist()) == {3.0, 5.0}
    assert sorted(rng.choice(6, 6, replace=False).tolist()) == [0, 1, 2, 3, 4, 5]
    assert rng.choice(np.arange(6).reshape(3, 2)).shape == (2,)
    with pytest.raises(ArgumentError, match="7 of 6 elements; pass replace=True, or a size of at most 6"):
        rng.choice(6, 7, replace=False)


def test_numpys_global_generator_is_numpys_outside_of_a_traced_function():
    assert random.rand is np.random.rand and random.RandomState is np.random.RandomState
    with pytest.raises(
        AttributeError, match=r"no attribute 'rand'; use default_rng\(seed\), or numpy.random.rand outside"
    ):
        cg.jit(lambda x: x + random.rand())(np.zeros(3))
    with pytest.raises(AttributeError, match=r"use default_rng\(seed\)\.normal, or numpy.random.normal outside"):
        cg.jit(lambda x: x + random.normal())(np.zeros(3))


@pytest.mark.parametrize("draw", ["random", "standard_normal"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int32", "uint8", "bool", "complex64"])
def test_a_dtype_of_no_random_floats_is_refused_inside_and_outside_and_draws_nothing(draw, dtype):
    for rng in (default_rng(1), RandomStream(cg.Const(np.array([3, 4], "uint32")))):
        key = rng.key
        with pytest.raises(DTypeError, match="is not supported for random floats; use float32 or float64"):
            getattr(rng, draw)(3, dtype)
        assert rng.key is key


def test_each_parameter_has_its_place_its_name_and_its_default():
    normal, unit = default_rng(3).standard_normal(5), default_rng(3).random(5)
    rows = [
        ("normal", (4.0, 0.5), {"loc": 4.0, "scale": 0.5}, normal * 0.5 + 4, normal),
        ("lognormal", (1.0, 0.25), {"mean": 1.0, "sigma": 0.25}, np.exp(normal * 0.25 + 1), np.exp(normal)),
        ("uniform", (-1.0, 7.0), {"low": -1.0, "high": 7.0}, unit * 8 - 1, unit),
        ("exponential", (3.0,), {"scale": 3.0}, -3 * np.log1p(-unit), -np.log1p(-unit)),
    ]
    for name, values, named, want, plain in rows:
        for args, words in (((*values, 5), {}), (values, {"size": (5,)}), ((), named | {"size": 5})):
            assert_near(getattr(default_rng(3), name)(*args, **words), want, "float64 formulas near zero")
        assert_near(getattr(default_rng(3), name)(size=5), plain, "float64 formulas near zero")
        assert_near(getattr(default_rng(3), name)(), plain[0], "float64 formulas near zero")


@pytest.mark.parametrize("size", [None, 0, 4, (2, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("replace", [True, False])
def test_choices_are_elements_at_drawn_integers_or_at_a_permutation(size, replace):
    rows = np.arange(30.0).reshape(10, 3) * 2
    count = int(np.prod(() if size is None else size))
    shape = () if size is None else np.empty(size).shape
    drawn = default_rng(5).integers(10, size=size) if replace else default_rng(5).permutation(10)[:count].reshape(shape)
    np.testing.assert_array_equal(default_rng(5).choice(10, size, replace), drawn)
    np.testing.assert_array_equal(default_rng(5).choice(rows, size, replace=replace), rows[drawn])
    inside = cg.jit(lambda rng, rows: rng.choice(rows, size, replace))(default_rng(5), rows)
    np.testing.assert_array_equal(inside, rows[drawn])


def test_nothing_is_drawn_from_nothing_and_a_stream_shows_its_key():
    assert default_rng(0).permutation(0).shape == default_rng(0).choice(4, 0).shape == (0,)
    assert default_rng(0).permutation(np.zeros((0, 3))).shape == (0, 3)
    assert repr(default_rng(0)) == f"<RandomStream {default_rng(0).key}>"
