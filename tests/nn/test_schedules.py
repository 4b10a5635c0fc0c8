"""Learning rates by step: against plain formulas, before, at and behind each of their ends."""

from itertools import product
from math import cos, exp, pi

import numpy as np
import pytest

import cgraph as cg
from nn import optim
from tests.support.tolerance import assert_near

STEPS = np.arange(0, 14)
RATES = {
    "const": (optim.Const(0.1), lambda i: 0.1),
    "decay": (optim.Decay(0.1, 0.1), lambda i: 0.1 / (1 + 0.1 * i)),
    "exp_decay": (optim.ExpDecay(0.1, 0.5), lambda i: 0.1 * exp(-0.5 * i)),
    "schedule": (optim.Schedule((0.5, 0.2, 0.1)), lambda i: (0.5, 0.2, 0.1, 0.1, 0.1, 0.1)[i]),
    "cosine": (optim.Cosine(0.4, 4, floor=0.1), lambda i: 0.1 + 0.15 * (1 + cos(pi * min(i / 4, 1)))),
    "warmup": (optim.Cosine(0.4, 6, warmup=2), lambda i: 0.2 * (i + 1) if i < 2 else 0.2 * (1 + cos(pi * (i - 2) / 4))),
    "trapezoid": (optim.Trapezoid(0.4, 6, 2, 2), lambda i: (0.2, 0.4, 0.4, 0.4, 0.4, 0.2)[i]),
    "steps": (optim.Steps(0.4, (3, 5), 0.5, 2), lambda i: (0.2, 0.4, 0.4, 0.2, 0.2, 0.1)[i]),
}


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


@pytest.mark.parametrize("name", RATES)
def test_each_rate_follows_its_formula(name):
    rate, want = RATES[name]
    assert_near(rates(rate)[:6], [want(i) for i in range(6)], "float32 normalised")


@pytest.mark.parametrize("rate", [rate for rate, _ in RATES.values()], ids=RATES)
def test_a_rate_is_a_float32_number_without_state(rate):
    node = rate.at(cg.Var((), "float32", "step"))
    assert node.dtype == np.float32 and node.shape == () and rate.state() == {}


def test_the_rate_of_a_step_is_that_of_the_rule_by_default():
    step = cg.Const(np.float32(3))
    assert optim.Decay(0.5, 1.0).current(step, {}).eval() == np.float32(0.125)


def test_the_default_rates():
    assert optim.Const() == optim.Const(0.001)
    assert optim.Cosine(0.1, 5) == optim.Cosine(0.1, 5, 0, 0.0)
    assert optim.Steps(0.1, (3,)) == optim.Steps(0.1, (3,), 0.1, 0)
