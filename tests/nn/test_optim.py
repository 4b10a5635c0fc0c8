"""Optimisers: every method against its formulas in NumPy, step by step."""

from math import cos, exp, pi

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


@pytest.mark.parametrize("name", RATES)
def test_rate_depends_on_the_real_step_number(name):
    rate, want = RATES[name]
    model = Weight(draw(2, 2))
    zeros = np.zeros((2, 2), np.float32)
    step = nn.training_step(model, quadratic, nn.Optimiser(optim.GradientDescent(), rate), (zeros, zeros))
    got = [step(zeros, zeros)[1] for _ in range(6)]
    assert_near(got, [want(i) for i in range(6)], "float32 normalised")


def test_decay_gives_the_losses_that_the_ancestor_misses():
    model = Weight(np.ones((1, 1), np.float32))
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Decay(0.1, 0.1))
    zero = np.zeros((1, 1), np.float32)
    step = nn.training_step(model, quadratic, optimiser, (zero, zero))
    losses = [step(zero, zero)[0] for _ in range(3)]
    # w - 0.1 / (1 + 0.1 i) * 2 w, squared
    assert_near(losses, [1, 0.64, 0.64 * (1 - 0.2 / 1.1) ** 2], "float32 sums")


def test_clipping_bounds_gradients():
    values = [cg.Const(np.array([3.0, -4.0], np.float32)), cg.Const(np.array([12.0], np.float32))]
    one, two = (x.eval() for x in optim.ClipL2(6.5).clip(values))
    assert_close(np.concatenate([one, two]), np.array([1.5, -2.0, 6.0]))
    one, two = (x.eval() for x in optim.ClipL2(20.0).clip(values))
    assert_close(np.concatenate([one, two]), np.array([3.0, -4.0, 12.0]))
    one, two = (x.eval() for x in optim.ClipValue(-1.0, 2.0).clip(values))
    assert_close(np.concatenate([one, two]), np.array([2.0, -1.0, 2.0]))


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


def test_biases_and_scales_are_not_regularised():
    model = nn.initialise(nn.Linear(2, 3), 0)
    model.bias.assign([9.0, 9.0, 9.0])
    penalty = nn.Optimiser(regularisation=optim.L2(1.0)).penalty(model.parameters())
    assert_near(penalty.eval(), (model.weight.value**2).sum(), "float32 formulas")


def test_the_penalties_of_all_weights_are_added():
    model = nn.models.mlp(0, (6, 4, 3, 2))
    parameters = model.parameters()
    matrices = [x.value for x in parameters.values() if x.ndim == 2]
    penalty = nn.Optimiser(regularisation=optim.L2(0.5)).penalty(parameters)
    assert len(matrices) == 3
    assert_near(penalty.eval(), 0.5 * sum((x**2).sum() for x in matrices), "float32 formulas")
