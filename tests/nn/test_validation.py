import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError
from nn.losses import quadratic
from nn.metrics import mean_of
from nn.settings import StepSettings, TrainSettings
from nn.validation import validation_check
from tests.support.tolerance import assert_near

X, Y = np.arange(21, dtype=np.float32).reshape(7, 3) / 10, np.ones((7, 2), np.float32)


def absolute(predicted, targets):
    return nn.losses.l1(predicted, targets)


def check_of(validation, model, metrics=(), batch=4):
    return validation_check(
        model, TrainSettings(StepSettings(quadratic, metrics=metrics), validation=validation), batch
    )


def test_arrays_are_judged_with_the_current_weights_whatever_the_batch():
    model = nn.initialise(nn.Linear(3, 2), 1)
    check = check_of((X, Y), model, (mean_of(absolute),))
    for scale in (1.0, 2.0):
        nn.set_values(model, {path: x.value * np.float32(scale) for path, x in model.variables().items()})
        outcome, difference = check(), nn.compile(model, samples=[nn.Sample((3,))])(X) - Y
        assert_near(outcome.loss, (difference**2).mean(), "float32 sums")
        assert_near(outcome.metrics["absolute"], np.abs(difference).sum(1).mean(), "float32 sums")


def test_a_function_is_called_for_its_number():
    model = nn.initialise(nn.Linear(3, 2), 1)
    outcome = check_of(lambda: 3, model)()
    assert (outcome.loss, outcome.metrics) == (3.0, {})
    with pytest.raises(InputError, match="returned 'three'. Return one number"):
        check_of(lambda: "three", model)()


def test_without_validation_there_is_no_check_and_missing_targets_are_named():
    model = nn.initialise(nn.Linear(3, 2), 1)
    assert check_of(None, model) is None
    with pytest.raises(InputError, match="validation has 1 arrays, of which 1 are targets"):
        check_of((X,), model)


def parted(one, other):
    def loss(predicted, s, t):
        return {one: nn.losses.quadratic(predicted, s), other: nn.losses.l1(predicted, t)}

    return loss


@pytest.mark.parametrize("batch", [1, 3, 7, 50])
def test_several_inputs_targets_and_parts_of_the_loss_count_whatever_the_batch(batch):
    model = nn.Sequential(nn.LambdaArray(lambda a, b: a - 2 * b), nn.initialise(nn.Linear(3, 2), 1))

    def largest(predicted, s, t):
        return cg.mean(cg.max(predicted + s - t, axis=1))

    step = StepSettings(parted("square", "distance"), targets=2, metrics=(mean_of(largest),))
    arrays = X, X[::-1] * 3, Y, 5 * Y.astype("f8")
    outcome = validation_check(model, TrainSettings(step, validation=arrays), batch)()
    layer = model.parts[1]
    predicted = (X - 6 * X[::-1]) @ layer.weight.value + layer.bias.value
    want = ((predicted - Y) ** 2).mean() + np.abs(predicted - 5 * Y).sum(1).mean()
    assert_near(outcome.loss, want, "float32 sums")
    assert_near(outcome.metrics["largest"], (predicted - 4 * Y).max(1).mean(), "float32 sums")


def test_validation_draws_nothing_and_changes_nothing():
    model = nn.initialise(nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2), nn.BatchNorm(2)), 0)
    check, before = check_of((X, Y), model), {path: x.value for path, x in model.variables().items()}
    assert check().loss == check().loss
    assert all((x.value == before[path]).all() for path, x in model.variables().items())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_arrays_of_any_dtype_are_judged_like_those_of_the_model(dtype):
    model = nn.initialise(nn.Linear(3, 2), 1)
    x = np.arange(21).reshape(7, 3)
    if dtype == "int64":  # the sum of a float and an integer is of double precision
        model = nn.Sequential(nn.Lambda(lambda a: cg.astype(a, "float32")), model)
    want = check_of((x.astype("f4"), Y), model)().loss
    assert check_of((x.astype(dtype), Y.astype("f8")), model)().loss == want
    assert check_of([x.astype(dtype), Y], model, batch=100)().loss == want


@pytest.mark.parametrize(("batch", "want"), [(3, 3), (7, 7), (50, 7)])
def test_no_more_samples_are_computed_at_once_than_there_are(batch, want, monkeypatch):
    calls, compiled = [], nn.validation.compile_model
    monkeypatch.setattr(nn.validation, "compile_model", lambda *args, **options: calls.append(args) or compiled(*args))
    check_of((X, Y), nn.initialise(nn.Linear(3, 2), 1), batch=batch)
    assert [args[1] for args in calls] == [want]
