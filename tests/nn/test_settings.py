import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError
from nn.losses import quadratic
from nn.settings import StepSettings, TrainSettings

STEP = StepSettings(quadratic)


@pytest.mark.parametrize(("epochs", "steps"), [(0, 0), (0.5, 5), (0.26, 3), (1, 10), (2.5, 25), (np.int64(2), 20)])
def test_a_run_has_its_epochs_times_the_steps_of_one_rounded(epochs, steps):
    assert TrainSettings(STEP, epochs).total_steps(10) == steps


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"epochs": -0.1}, r"epochs is -0\.1\. Pass"),
        ({"epochs": np.inf}, "epochs is inf"),
        ({"epochs": np.nan}, "epochs is nan"),
        ({"epochs": "2"}, "epochs is '2'"),
        ({"stopping": 3}, "stopping is 3"),
        ({"checkpoint": "at.json"}, "checkpoint is 'at.json'"),
    ],
)
def test_a_setting_of_another_kind_or_value_is_named(fields, match):
    with pytest.raises(InputError, match=match):
        TrainSettings(STEP, **fields)


@pytest.mark.parametrize("seed", [-1, 1.5, None, True])
def test_a_seed_is_an_integer_from_zero_on(seed):
    with pytest.raises(InputError, match=f"seed is {seed}"):
        StepSettings(quadratic, seed=seed)


def test_a_tolerance_is_refused_for_training():
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)
    model, tolerance = nn.initialise(nn.Linear(3, 2), 1), cg.Tolerance(1e-2, [(x, y)])
    with pytest.raises(InputError, match="precision is a Tolerance.*Pass precision='bf16'"):
        nn.training_step(model, quadratic, None, (x, y), precision=tolerance)
    with pytest.raises(InputError, match="precision is a Tolerance"):
        nn.train(model, nn.Loader((x, y), 4), quadratic, precision=tolerance, progress=False)


def test_training_and_its_parts_share_the_settings():
    """The step that `nn.train` builds is the one of the same settings by hand."""
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)
    one, other = nn.initialise(nn.Linear(3, 2), 1), nn.initialise(nn.Linear(3, 2), 1)
    history = nn.train(one, nn.Loader((x, y), 4), quadratic, nn.optim.Adam(), progress=False)
    step = nn.training_step(other, quadratic, nn.optim.Adam(), (x, y))
    assert step(x, y)[0] == history.loss[0]
    assert all((a.value == b.value).all() for a, b in zip(one.variables().values(), other.variables().values()))
