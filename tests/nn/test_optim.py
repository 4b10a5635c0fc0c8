"""Optimisers: every method against its formulas in NumPy, step by step."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn import optim
from nn.layer import Layer, Parameter
from nn.losses import quadratic
from tests.nn.support import assert_close, draw
from tests.support.tolerance import assert_near

STEPS = 5


class Weight(Layer):
    """One matrix, which is also the result."""

    def __init__(self, value: np.ndarray) -> None:
        self.hold(weight=Parameter(value.shape).assign(value))

    def variables(self):
        return {"weight": self.weight}

    def build(self, *xs, mode):
        return self.weight + 0.0 * xs[0]


def quartic(x, y):
    """A loss on which conjugate gradients do not arrive."""
    return cg.mean(cg.square(cg.square(x - y)))


def trajectory(optimiser, start, target, loss=quartic, steps: int = STEPS) -> list[np.ndarray]:
    """The weight after each step."""
    model = Weight(start)
    step = nn.training_step(model, loss, optimiser, (np.zeros_like(start), target), engine="reference")
    found = []
    for _ in range(steps):
        step(np.zeros_like(start), target)
        found.append(model.weight.value)
    return found


def gradient(w, target):
    return 4 * (w - target) ** 3 / w.size


def expected(rule, start, target, steps: int = STEPS) -> list[np.ndarray]:
    """The same by `rule`: from weight, gradient, memory and step to the new weight."""
    w, memory, found = start.astype(np.float64), {}, []
    for i in range(steps):
        w = rule(w, gradient(w, target), memory, i)
        found.append(w)
    return found


def descent(w, g, m, i):
    return w - 0.3 * g


def adagrad(w, g, m, i):
    m["s"] = m.get("s", 0) + g * g
    return w - 0.3 * g / (np.sqrt(m["s"]) + 1e-8)


def rmsprop(w, g, m, i):
    m["s"] = 0.9 * m.get("s", 0) + 0.1 * g * g
    return w - 0.3 * g / (np.sqrt(m["s"]) + 1e-8)


def adam(w, g, m, i):
    m["m"] = 0.9 * m.get("m", 0) + 0.1 * g
    m["v"] = 0.999 * m.get("v", 0) + 0.001 * g * g
    first, second = m["m"] / (1 - 0.9 ** (i + 1)), m["v"] / (1 - 0.999 ** (i + 1))
    return w - 0.3 * first / (np.sqrt(second) + 1e-8)


def adamw(w, g, m, i):
    return adam(w, g, m, i) - 0.3 * 0.01 * w


def standard(w, g, m, i):
    m["u"] = 0.9 * m.get("u", 0) + 0.3 * g
    return w - m["u"]


def nesterov(w, g, m, i):
    m["u"] = 0.9 * m.get("u", 0) + 0.3 * g
    return w - (0.9 * m["u"] + 0.3 * g)


def conjugate(beta):
    def rule(w, g, m, i):
        along = -g
        if i:
            y = g - m["g"]
            along = along + beta(g, m["g"], m["s"], y) * m["s"]
        m["g"], m["s"] = g, along
        return w + 0.3 * along

    return rule


BETAS = {
    optim.HestenesStiefel: lambda g, h, s, y: np.vdot(g, y) / np.vdot(s, y),
    optim.FletcherReeves: lambda g, h, s, y: np.vdot(g, g) / np.vdot(h, h),
    optim.PolakRibiere: lambda g, h, s, y: max(0, np.vdot(g, y) / np.vdot(h, h)),
    optim.ConjugateDescent: lambda g, h, s, y: np.vdot(g, g) / -np.vdot(s, h),
    optim.DaiYuan: lambda g, h, s, y: np.vdot(g, g) / np.vdot(s, y),
}
CASES = {
    "descent": (optim.GradientDescent(), None, descent),
    "adagrad": (optim.Adagrad(), None, adagrad),
    "rmsprop": (optim.RMSprop(), None, rmsprop),
    "adam": (optim.Adam(), None, adam),
    "adamw": (optim.AdamW(), None, adamw),
    "standard": (optim.GradientDescent(), optim.Standard(0.9), standard),
    "nesterov": (optim.GradientDescent(), optim.Nesterov(0.9), nesterov),
    **{kind.__name__: (kind(), None, conjugate(beta)) for kind, beta in BETAS.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_method_follows_its_formula(name):
    method, momentum, rule = CASES[name]
    start, target = draw(2, 3), draw(2, 3, seed=1)
    got = trajectory(nn.Optimiser(method, optim.Const(0.3), momentum), start, target)
    for one, want in zip(got, expected(rule, start, target)):
        assert_close(one, want, name="float32 layers")


def test_decay_gives_the_losses_that_the_ancestor_misses():
    model = Weight(np.ones((1, 1), np.float32))
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Decay(0.1, 0.1))
    zero = np.zeros((1, 1), np.float32)
    step = nn.training_step(model, quadratic, optimiser, (zero, zero))
    losses = [step(zero, zero)[0] for _ in range(3)]
    # w - 0.1 / (1 + 0.1 i) * 2 w, squared
    assert_near(losses, [1, 0.64, 0.64 * (1 - 0.2 / 1.1) ** 2], "float32 sums")


@pytest.mark.parametrize(
    ("term", "want"),
    [
        (optim.L1(0.5), lambda w: 0.5 * np.abs(w).sum()),
        (optim.L2(0.5), lambda w: 0.5 * (w * w).sum()),
        (optim.Elastic(0.5, 2.0), lambda w: 0.5 * np.abs(w).sum() + 2 * (w * w).sum()),
    ],
)
def test_regularisation_adds_to_the_loss_and_to_the_gradient(term, want):
    start, target = draw(2, 3), draw(2, 3, seed=1)
    model = Weight(start)
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Const(0.1), regularisation=term)
    step = nn.training_step(model, quadratic, optimiser, (target, target), engine="reference")
    loss, _ = step(np.zeros_like(target), target)
    assert_near(loss, ((start - target) ** 2).mean() + want(start), "float32 sums")
    plain = trajectory(nn.Optimiser(optim.GradientDescent(), optim.Const(0.1)), start, target, quadratic, 1)[0]
    slope = (want(start + 1e-3 * np.sign(start)) - want(start - 1e-3 * np.sign(start))) / 2e-3
    moved = ((plain - model.weight.value) * np.sign(start)).sum() / 0.1
    assert_near(moved, slope, "float32 trainings")
