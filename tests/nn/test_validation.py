import numpy as np
import pytest

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
