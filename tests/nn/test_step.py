"""A training step: what it returns, which Vars it changes, and what it refuses before anything changes."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError, PositionError, UnassignedError
from nn.losses import cross_entropy, quadratic
from nn.mode import Mode
from nn.settings import StepSettings
from nn.step import gradients_of, sum_of
from tests.support.tolerance import assert_near

X, Y = np.array([[1.0, 2], [3, -1]], "f4"), np.array([[1.0], [0]], "f4")
DESCENT = nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Const(0.25))
PLAIN = {"engine": "reference"}


def linear(inputs=2, outputs=1):
    model = nn.Linear(inputs, outputs)
    model.weight.assign(np.arange(inputs * outputs, dtype="f4").reshape(inputs, outputs) + 1)
    model.bias.assign(np.zeros(outputs, "f4"))
    return model


def test_a_step_returns_the_loss_before_it_and_changes_the_weights_by_rate_times_gradient():
    """Errors are 5 - 1 and 1 - 0, so the gradient is their mean of 2 x e."""
    model = linear()
    step = nn.training_step(model, quadratic, DESCENT, (X, Y), **PLAIN)
    assert step(X, Y) == (8.5, 0.25)
    np.testing.assert_array_equal(model.weight.value, [[1 - 0.25 * 7], [2 - 0.25 * 7]])
    np.testing.assert_array_equal(model.bias.value, [-0.25 * 5])
    assert step.parameters == model.parameters() and step.parts == ()
    assert int(step.state["step"].value) == 1


def parted(y, t):
    return {"error": cg.mean(cg.square(y - t)), "size": cg.sum(y)}


def test_a_loss_of_several_parts_is_their_sum_and_each_is_reported():
    model = linear()
    step = nn.training_step(model, parted, DESCENT, (X, Y), metrics=[nn.metrics.accuracy()], **PLAIN)
    loss, rate, error, size, accuracy = step(X, Y)
    assert (loss, rate, error, size) == (14.5, 0.25, 8.5, 6.0) and step.parts == ("error", "size")
    assert accuracy.tolist() == [2, 2] and accuracy.dtype == np.float64


def test_a_penalty_belongs_to_the_loss_but_to_no_part():
    optimiser = nn.Optimiser(nn.optim.GradientDescent(), regularisation=nn.optim.L2(1.0))
    loss, _, *parts = nn.training_step(linear(), parted, optimiser, (X, Y), **PLAIN)(X, Y)
    assert loss == 14.5 + 5 and parts == [8.5, 6.0]


def test_the_penalty_is_of_the_weights_that_are_trained():
    optimiser = nn.Optimiser(nn.optim.GradientDescent(), regularisation=nn.optim.L2(1.0))
    model = linear()
    step = nn.training_step(model, quadratic, optimiser, (X, Y), trained={"bias": model.bias}, **PLAIN)
    assert step(X, Y)[0] == 8.5
    np.testing.assert_array_equal(model.weight.value, [[1], [2]])
    assert model.bias.value != 0


def test_without_targets_the_result_is_the_only_operand_of_the_loss():
    step = nn.training_step(linear(), cg.sum, DESCENT, (X,), targets=0, **PLAIN)
    assert step(X)[0] == 6.0


def test_two_inputs_and_two_targets_are_told_apart_by_their_number():
    model = nn.Sequential(nn.LambdaArray(lambda a, b: a - b), linear())
    step = nn.training_step(model, lambda y, s, t: cg.sum(y * s - t), DESCENT, (X, X, Y, Y), targets=2, **PLAIN)
    ones = np.ones_like(Y)
    assert step(X, 0 * X, 2 * ones, ones)[0] == 2 * 6 - 2
    assert [x.name for x in step.function.inputs] == ["batch0", "batch1", "batch2", "batch3"]


@pytest.mark.parametrize("targets", [2, 3])
def test_a_batch_without_an_input_is_refused(targets):
    with pytest.raises(InputError) as error:
        nn.training_step(linear(), quadratic, DESCENT, (X, Y), targets=targets)
    assert str(error.value) == (
        f"targets is {targets} and a batch has 2 arrays. Put the model's inputs before the targets, or lower targets=."
    )


def test_bad_classes_are_refused_before_anything_changes():
    model = linear(2, 3)
    step = nn.training_step(model, cross_entropy, DESCENT, (X, np.array([0, 1])), **PLAIN)
    before = model.weight.value
    with pytest.raises(PositionError, match="class 3 has no score"):
        step(X, np.array([0, 3]))
    np.testing.assert_array_equal(model.weight.value, before)
    assert int(step.state["step"].value) == 0
    step(X, np.array([0, 2]))
    assert nn.training_step(linear(), quadratic, DESCENT, (X, Y), **PLAIN).check is None


def test_averages_stand_in_for_the_weights_within_the_context_alone():
    model = linear()
    optimiser = nn.Optimiser(DESCENT.method, DESCENT.rate, averaging=nn.optim.ExponentialAverage(0.5))
    step = nn.training_step(model, quadratic, optimiser, (X, Y), **PLAIN)
    step(X, Y), step(X, Y)
    last, average = model.weight.value, step.averages()[model.weight]
    assert (last != average).any()
    with step.averaged():
        np.testing.assert_array_equal(model.weight.value, average)
    np.testing.assert_array_equal(model.weight.value, last)


def test_a_shared_state_goes_on_counting_and_draws_other_numbers():
    model = nn.Sequential(linear(), nn.Dropout(0.5))
    first = nn.training_step(model, quadratic, nn.Optimiser(), (X, Y), **PLAIN)
    first(X, Y)
    key_var = first.state["random_key"]
    other = nn.training_step(model, quadratic, nn.Optimiser(), (X[:1], Y[:1]), state=first.state, **PLAIN)
    key = key_var.value
    other(X[:1], Y[:1])
    assert int(first.state["step"].value) == 2
    assert other.state["random_key"] is key_var and (key_var.value != key).any()


def test_noise_follows_from_the_seed():
    x, y = np.ones((50, 2), "f4"), np.zeros((50, 1), "f4")

    def loss_of(**seed):
        step = nn.training_step(nn.Sequential(nn.Dropout(0.5), linear()), quadratic, DESCENT, (x, y), **seed, **PLAIN)
        return step(x, y)[0]

    assert loss_of() == loss_of(seed=0) != loss_of(seed=1)


def test_a_shard_has_its_share_of_loss_parts_and_gradients():
    graph = gradients_of(linear(), StepSettings(parted, DESCENT), (X, Y), Mode(training=True), 0.5)
    whole = gradients_of(linear(), StepSettings(parted, DESCENT), (X, Y), Mode(training=True))
    nodes = [graph.total, *graph.parts.values(), *graph.gradients]
    others = [whole.total, *whole.parts.values(), *whole.gradients]
    arrays = [cg.compile(x, y.inputs, **PLAIN)(X, Y) for y, xs in ((graph, nodes), (whole, others)) for x in xs]
    for half, full in zip(arrays[:5], arrays[5:], strict=True):
        assert_near(half, full / 2, "float32 formulas")
    assert list(graph.parts) == ["error", "size"]


def test_a_batch_of_float64_is_one_of_float32_for_the_model():
    step = nn.training_step(linear(), quadratic, DESCENT, (X.astype("f8"), Y.astype("f8")), **PLAIN)
    assert [x.dtype for x in step.function.inputs] == [np.dtype("f4")] * 2
    assert step(X.astype("f8"), Y.astype("f8"))[0] == 8.5


def test_nodes_are_added_in_their_order():
    a, b, c = (cg.Const(np.float32(x)) for x in (2.0**24, 1.0, 1.0))
    assert sum_of([a]) is a
    assert sum_of([a, b, c]).eval() == 2.0**24 and sum_of([b, c, a]).eval() == 2.0**24 + 2


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_the_rate_depends_on_the_number_of_steps_so_far(engine):
    optimiser = nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Schedule((0.5, 0.25, 0.125)))
    step = nn.training_step(linear(), quadratic, optimiser, (X, Y), engine=engine)
    assert [step(X, Y)[1] for _ in range(4)] == [0.5, 0.25, 0.125, 0.125]


@pytest.mark.parametrize("missing", ["weight", "bias"])
def test_a_model_without_a_value_is_refused_before_anything_is_compiled(missing):
    model = nn.Linear(2, 1)
    for path, x in model.variables().items():
        if path != missing:
            x.assign(np.zeros(x.shape, "f4"))
    with pytest.raises(UnassignedError, match=f"1 Parameters have no value, such as {missing}"):
        nn.training_step(model, quadratic, DESCENT, (X, Y), **PLAIN)


def test_the_share_of_work_that_may_be_computed_again_is_a_sixteenth_unless_it_is_passed(monkeypatch):
    calls, compiled = [], cg.compile
    monkeypatch.setattr(cg, "compile", lambda *args, **options: calls.append(options) or compiled(*args, **options))
    for options in ({}, {"recompute": False}, {"recompute": 0.5}):
        nn.training_step(linear(), quadratic, DESCENT, (X, Y), **options, **PLAIN)
    assert [x["recompute"] for x in calls] == [1 / 16, False, 0.5]


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_classes_are_the_last_array_of_a_batch_behind_any_number_of_inputs(inputs):
    model = nn.Sequential(nn.LambdaArray(lambda x, *others: x), linear(2, 3))
    step = nn.training_step(model, cross_entropy, DESCENT, (*[X] * inputs, np.array([0, 1])), **PLAIN)
    step(*[9 * X] * inputs, np.array([0, 2]))
    with pytest.raises(PositionError, match="class 3 has no score"):
        step(*[0 * X] * inputs, np.array([0, 3]))
