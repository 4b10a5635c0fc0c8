"""Optimiser: its state, the order of clipping, rate, momentum and averaging, and the penalty of weights."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError
from nn import optim
from tests.nn.support import draw
from tests.support.tolerance import assert_near


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


def test_a_method_alone_has_the_default_rate_and_adam_is_the_default_method():
    assert nn.Optimiser.of(None) == nn.Optimiser(optim.Adam(), optim.Const(0.001))
    assert nn.Optimiser.of(optim.RMSprop()) == nn.Optimiser(optim.RMSprop(), optim.Const(0.001))
    own = nn.Optimiser(rate=optim.Const(0.5))
    assert nn.Optimiser.of(own) is own


def test_the_state_has_a_var_for_each_slot_of_each_weight():
    weights = {"a": nn.Parameter((2, 3)).assign(draw(2, 3)), "b": nn.Parameter((3,)).assign(draw(3))}
    optimiser = nn.Optimiser(optim.Adam(), momentum=optim.Standard(0.5), averaging=optim.EqualAverage())
    state = optimiser.state(weights)
    slots = (*optim.Adam.remembers, "change", "average")
    assert list(state) == ["step", *(f"{path}/{name}" for path in weights for name in slots)]
    assert {name: (x.shape, str(x.dtype), x.name) for name, x in state.items() if name[0] == "b"} == {
        f"b/{name}": ((3,), "float32", f"b/{name}") for name in slots
    }
    assert state["step"].dtype == np.int64 and int(state["step"].value) == 0
    np.testing.assert_array_equal(state["a/average"].value, weights["a"].value)
    assert not any(state[f"a/{name}"].value.any() for name in (*optim.Adam.remembers, "change"))
    assert list(nn.Optimiser(optim.GradientDescent()).state(weights)) == ["step"]


def one_step(optimiser, weight, gradient, changes=()):
    """The weight, the rate and the state after one step of one weight, from a state with other values."""
    x = nn.Parameter(np.shape(weight)).assign(np.float32(weight))
    state = optimiser.state({"w": x})
    for name, value in dict(changes).items():
        state[name].assign(np.asarray(value, state[name].dtype))
    edges, rate = optimiser.updates({"w": x}, [cg.Const(np.float32(gradient))], state)
    rate_value = cg.compile(rate, [], updates=edges, engine="reference")()
    return x.value, rate_value, {name: var.value for name, var in state.items()}


def test_the_gradient_is_clipped_before_the_method_and_the_rate_comes_last():
    """Momentum stores rates times directions, and the average has the new weight."""
    optimiser = nn.Optimiser(
        optim.GradientDescent(), optim.Const(0.5), optim.Standard(0.25), optim.ClipValue(-2.0, 2.0),
        averaging=optim.ExponentialAverage(0.75),
    )  # fmt: skip
    before = {"step": 1, "w/change": [8, 8], "w/average": [0, 4]}
    weight, rate, state = one_step(optimiser, [10, 10], [6, -1], before)
    np.testing.assert_array_equal(state["w/change"], [0.25 * 8 + 0.5 * 2, 0.25 * 8 - 0.5])
    np.testing.assert_array_equal(weight, [7, 8.5])
    np.testing.assert_array_equal(state["w/average"], [0.25 * 7, 0.75 * 4 + 0.25 * 8.5])
    assert rate == 0.5 and state["step"] == 2


def test_nesterovs_stored_change_is_not_the_one_that_is_subtracted():
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Const(1.0), optim.Nesterov(0.5))
    weight, _, state = one_step(optimiser, [10], [2], {"w/change": [8]})
    assert state["w/change"] == [6] and weight == [10 - (0.5 * 6 + 2)]


def test_the_rate_is_that_of_the_step_before_it_counts_up():
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Schedule((1.0, 0.5, 0.25)))
    weight, rate, state = one_step(optimiser, [8], [4], {"step": 1})
    assert (weight, rate, state["step"]) == ([6], 0.5, 2)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"method": optim.Adam}, "method is .* Pass a method of nn.optim, such as nn.optim.Adam()"),
        ({"rate": "0.1"}, "rate is '0.1'. Pass a number, or a rate of nn.optim"),
        ({"rate": None}, "rate is None. Pass a number, or a rate of nn.optim"),
        ({"momentum": 0.9}, "momentum is 0.9. Pass a momentum of nn.optim, or None"),
        ({"clipping": 5.0}, "clipping is 5.0. Pass a clipping of nn.optim, or None"),
        ({"regularisation": 1e-4}, "regularisation is 0.0001. Pass one of nn.optim, or None"),
    ],
    ids=["method", "text", "no rate", "momentum", "clipping", "regularisation"],
)
def test_what_is_no_rule_is_refused(fields, said):
    with pytest.raises(InputError, match=said):
        nn.Optimiser(**fields)


def test_a_number_is_a_constant_rate():
    for number in (0.25, np.float32(0.25), np.float64(0.25)):
        assert nn.Optimiser(rate=number).schedule == optim.Const(0.25)
    assert nn.Optimiser(rate=np.int64(1)).schedule == optim.Const(1.0)


SLOTS = {
    "descent": (optim.GradientDescent(), []), "adagrad": (optim.Adagrad(), ["squares"]),
    "adam": (optim.Adam(), ["mean", "squares"]), "conjugate": (optim.DaiYuan(), ["gradient", "along"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOTS)
@pytest.mark.parametrize("momentum", [None, optim.Standard(0.5)])
@pytest.mark.parametrize("averaging", [None, optim.EqualAverage()])
def test_the_state_is_a_step_number_the_rates_own_and_slots_of_zeros_for_each_weight(name, momentum, averaging):
    method, slots = SLOTS[name]
    model = nn.initialise(nn.Linear(2, 3), 0)
    state = nn.Optimiser(method, optim.Plateau(0.25), momentum, averaging=averaging).state(model.parameters())
    slots = [*slots, *(["change"] if momentum else []), *(["average"] if averaging else [])]
    assert sorted(state) == sorted(["step", "rate", *(f"{path}/{x}" for path in ("weight", "bias") for x in slots)])
    assert state["step"].dtype == np.int64 and state["step"].value == 0 and state["rate"].value == 0.25
    for key, x in state.items():
        assert x.name == key
        if "/" in key:
            weight = model.variables()[key.split("/")[0]]
            assert x.shape == weight.shape
            np.testing.assert_array_equal(x.value, weight.value if key.endswith("average") else np.zeros(weight.shape))


def test_momentum_and_slots_are_those_of_each_weight_under_one_rate():
    """Two weights with other gradients, two steps; the second one adds a share of each weight's own change."""
    model = nn.initialise(nn.Linear(2, 2), 0)
    before = {path: x.value for path, x in model.variables().items()}
    optimiser = nn.Optimiser(optim.GradientDescent(), optim.Schedule((1.0, 0.5)), optim.Standard(0.25))
    loss = lambda y, t: cg.sum(y * t)  # noqa: E731 - its gradients are the same in each step
    x, t = np.array([[1.0, 2.0]], "f4"), np.array([[3.0, 5.0]], "f4")
    step = nn.training_step(model, loss, optimiser, (x, t), engine="reference")
    step(x, t), step(x, t)
    for path, gradient in (("weight", x.T @ t), ("bias", t[0])):
        change = 1.0 * gradient
        change = change + (0.25 * change + 0.5 * gradient)
        assert_near(model.variables()[path].value, before[path] - change, "float32 formulas near zero")
        np.testing.assert_array_equal(step.state[f"{path}/change"].value, 0.75 * gradient)
