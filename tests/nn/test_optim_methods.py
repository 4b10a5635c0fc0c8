"""Directions of gradient methods: one step from slots of any value, by NumPy in float64."""

import inspect

import numpy as np
import pytest

import cgraph as cg
from nn import optim
from nn.optim.methods import correction
from tests.support.tolerance import assert_near

W, G, M, S = (np.array(x) for x in ([1.0, -2, 3], [0.5, -4, 0.25], [0.125, 1, -2], [4.0, 0.25, 9]))
STEP = 3
RMS = 0.75 * S + 0.25 * G**2
MEAN, SQUARES = 0.5 * M + 0.5 * G, 0.75 * S + 0.25 * G**2
ADAM = MEAN / (1 - 0.5**4) / (np.sqrt(SQUARES / (1 - 0.75**4)) + 0.125)
CASES = {
    "descent": (optim.GradientDescent(), G, {}),
    "adagrad": (optim.Adagrad(eps=0.5), G / (np.sqrt(S + G**2) + 0.5), {"squares": S + G**2}),
    "rmsprop": (optim.RMSprop(decay=0.75, eps=0.5), G / (np.sqrt(RMS) + 0.5), {"squares": RMS}),
    "adam": (optim.Adam(beta1=0.5, beta2=0.75, eps=0.125), ADAM, {"mean": MEAN, "squares": SQUARES}),
    "adamw": (
        optim.AdamW(beta1=0.5, beta2=0.75, eps=0.125, decay=0.25),
        ADAM + 0.25 * W,
        {"mean": MEAN, "squares": SQUARES},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_direction_and_the_new_slots_are_those_of_the_formula(name):
    method, direction, slots = CASES[name]
    values = {"weight": W, "gradient": G, "mean": M, "squares": S}
    v = {key: cg.Var((3,), name=key) for key in values}
    step = cg.Var((), name="step")
    old = {key: v[key] for key in method.remembers}
    ((got, new),) = method.directions([v["weight"]], [v["gradient"]], [old], step)
    assert new.keys() == slots.keys() == set(method.remembers)
    f = cg.compile([got, *new.values()], [*v.values(), step], engine="reference")
    found = f(*(x.astype("f4") for x in values.values()), np.float32(STEP))
    for one, want in zip(found, [direction, *(slots[key] for key in new)]):
        assert_near(one, want, "float32 formulas")


def test_a_correction_does_not_cancel():
    step = cg.Var((), name="step")
    f = cg.compile([correction(0.9999999, step)], [step], engine="reference")
    assert_near(f(np.float32(0))[0], 1e-7, "float32 formulas")
    assert f(np.float32(0))[0].dtype == np.float32


METHODS = [x for x in vars(optim).values() if inspect.isclass(x) and issubclass(x, optim.methods.Method)]


@pytest.mark.parametrize("method", METHODS, ids=lambda x: x.__name__)
def test_a_learning_rate_is_not_taken_for_another_number(method):
    """The first number of Adam is its rate in other libraries, and would be beta1 here."""
    for values, named in (((0.01,), {}), ((), {"lr": 0.01}), ((), {"learning_rate": 0.01}), ((), {"rate": 0.01})):
        with pytest.raises(TypeError, match=r"rate of 0\.01 pass nn\.Optimiser\(nn\.optim\.\w+\(\), rate=0\.01\)"):
            method(*values, **named)


@pytest.mark.parametrize("method", [optim.Adagrad(), optim.RMSprop(), optim.Adam(), optim.AdamW()], ids=str)
def test_nodes_of_a_direction_are_named_by_the_weight(method):
    weights = [cg.Var((3,), name=name) for name in ("first", "second")]
    gradients = [cg.Var((3,), name=f"gradient of {x.name}") for x in weights]
    slots = [{key: cg.Var((3,), name=key) for key in method.remembers} for _ in weights]
    pairs = method.directions(weights, gradients, slots, cg.Var((), name="step"))
    for weight, (direction, new) in zip(weights, pairs, strict=True):
        assert {x.origin.name for x in (direction, *new.values())} == {f"update of {weight.name}"}
