"""Rates before, at and behind each of their ends; bounds and penalties of any number of weights of any rank."""

from itertools import product
from math import cos, pi

import numpy as np
import pytest

import cgraph as cg
import nn
from nn import optim
from tests.nn.support import assert_close, draw
from tests.support.tolerance import assert_near

STEPS = np.arange(0, 14)


def rates(rule) -> np.ndarray:
    step = cg.Var((), "float32", "step")
    function = cg.compile(rule.at(step), step, engine="reference")
    return np.array([function(np.float32(i)) for i in STEPS])


@pytest.mark.parametrize("steps", [1, 4, 9])
def test_a_cosine_rises_falls_and_stays(steps):
    for warmup, floor in product((0, 1, 3, 9, 11), (0.0, 0.1)):

        def want(i, warmup=warmup, floor=floor):
            if i < warmup:
                return 0.4 * (i + 1) / warmup
            share = min(max((i - warmup) / max(steps - warmup, 1), 0), 1)
            return floor + (0.4 - floor) * (1 + cos(pi * share)) / 2

        found = rates(optim.Cosine(0.4, steps, warmup, floor))
        assert_near(found, [want(i) for i in STEPS], "float32 normalised")


@pytest.mark.parametrize("steps", [1, 4, 9])
def test_a_trapezoid_rises_stays_falls_and_ends_at_nothing(steps):
    for warmup, fall in product((0, 1, 3, 9), (0, 1, 3, 9)):
        want = [0.4 * min(max(min((i + 1) / max(warmup, 1), (steps - i) / max(fall, 1)), 0), 1) for i in STEPS]
        assert_near(rates(optim.Trapezoid(0.4, steps, warmup, fall)), want, "float32 normalised")


@pytest.mark.parametrize("warmup", [0, 1, 4])
@pytest.mark.parametrize("at", [(), (0,), (3,), (3, 3), (2, 5, 13)])
def test_steps_multiply_by_the_factor_at_each_place(warmup, at):
    want = [0.4 * min((i + 1) / max(warmup, 1), 1) * 0.5 ** sum(i >= j for j in at) for i in STEPS]
    assert_near(rates(optim.Steps(0.4, at, 0.5, warmup)), want, "float32 sums")


@pytest.mark.parametrize("given", [(0.5,), (0.5, 0.2), (0.5, 0.2, 0.1, 0.7)])
def test_the_last_rate_of_a_schedule_stays(given):
    want = [given[min(i, len(given) - 1)] for i in STEPS]
    assert_near(rates(optim.Schedule(given)), want, "float32 formulas")
    assert_near(rates(optim.Const(0.3)), 0.3, "float32 formulas")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("limit", [0.5, 3.0, 100.0])
def test_all_gradients_together_are_shortened_alike(count, limit):
    values = [draw(*[2, 3, 1][: i % 3 + 1], seed=i) for i in range(count)]
    norm = np.sqrt(sum((x.astype("float64") ** 2).sum() for x in values))
    for mine, x in zip(optim.ClipL2(limit).clip([cg.Const(x) for x in values]), values, strict=True):
        assert_close(mine.eval(), x * np.float32(min(1, limit / norm)))


@pytest.mark.parametrize("kind", ["L1", "L2", "Elastic"])
def test_weights_of_two_axes_and_more_have_a_penalty(kind):
    """Biases and scales, of one axis or none, have none; all others are added up."""
    shapes = {"a": (), "b": (3,), "c": (2, 3), "d": (2, 1, 2), "e": (1, 2, 2, 3)}
    weights = {name: nn.Parameter(shape).assign(draw(*shape, seed=i)) for i, (name, shape) in enumerate(shapes.items())}
    rule = {"L1": optim.L1(0.5), "L2": optim.L2(0.5), "Elastic": optim.Elastic(0.5, 2.0)}[kind]
    absolute, square = {"L1": (0.5, 0), "L2": (0, 0.5), "Elastic": (0.5, 2.0)}[kind]
    found = nn.Optimiser(regularisation=rule).penalty(weights)
    want = sum(absolute * np.abs(x.value).sum() + square * (x.value**2).sum() for n, x in weights.items() if n in "cde")
    assert_near(found.eval(), want, "float32 sums")
    assert nn.Optimiser(regularisation=rule).penalty({"a": weights["a"], "b": weights["b"]}) is None
    assert nn.Optimiser().penalty(weights) is None


@pytest.mark.parametrize("momentum", [None, optim.Standard(0.5), optim.Nesterov(0.5)])
@pytest.mark.parametrize("method", [optim.GradientDescent(), optim.Adam(), optim.Adagrad(), optim.RMSprop()])
def test_each_weight_has_slots_of_its_own(method, momentum):
    """Two weights trained together go where each goes alone: nothing of one reaches the other."""
    optimiser = nn.Optimiser(method, optim.Const(0.1), momentum)
    targets = {"one": draw(2, 3), "two": 5 * draw(3, seed=1)}

    def trained(names):
        weights = {n: nn.Parameter(targets[n].shape).assign(np.zeros_like(targets[n])) for n in names}
        state = optimiser.state(weights)
        loss = sum(cg.sum(cg.square(weights[n] - targets[n])) for n in names)
        edges, rate = optimiser.updates(weights, cg.gradient(loss, list(weights.values())), state)
        step = cg.compile(rate, [], updates=edges, engine="reference")
        for _ in range(4):
            step()
        assert int(state["step"].value) == 4
        return {n: x.value for n, x in weights.items()}

    together = trained(["one", "two"])
    for name in targets:
        np.testing.assert_array_equal(together[name], trained([name])[name])
