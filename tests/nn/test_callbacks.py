"""Functions called after every epoch, and a rate that falls when a metric stops improving."""

import numpy as np
import pytest

import nn
from cgraph.errors import InputError
from nn.losses import quadratic
from nn.optim import Plateau
from nn.parallel.train import check_rate
from tests.support.tolerance import assert_near


def linear():
    return nn.initialise(nn.Linear(3, 2), 1)


def train(model, epochs=3, **options):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("f4"), rng.normal(size=(8, 2)).astype("f4")
    options = {"validation": (x, y), "engine": "reference", **options}
    return nn.train(model, nn.Loader((x, y), 4), quadratic, epochs=epochs, progress=False, **options)


def test_every_callback_gets_each_epoch_with_its_figures_and_the_model():
    model, epochs = linear(), []
    weights = []
    history = train(model, callbacks=[epochs.append, lambda epoch: weights.append(epoch.model.weight.value)])
    assert [(x.epoch, x.step) for x in epochs] == [(1, 2), (2, 4), (3, 6)]
    assert all(x.model is model for x in epochs) and (weights[2] == model.weight.value).all()
    for name, figures in history.by_epoch().items():
        assert [x.figures[name] for x in epochs] == figures.tolist()


@pytest.mark.parametrize("answer", [True, np.True_])
def test_training_ends_after_the_epoch_for_which_a_callback_returns_true(answer):
    later = []
    history = train(linear(), callbacks=[lambda epoch: answer if epoch.epoch == 2 else 7, later.append])
    assert len(history.loss) == 4 and len(later) == 2


def test_a_checkpoint_says_that_a_callback_ended_the_training(tmp_path):
    point = nn.Checkpoint(tmp_path / "at.json", epochs=1)
    train(linear(), checkpoint=point, callbacks=[lambda epoch: True])
    assert len(train(linear(), checkpoint=point).loss) == 2


@pytest.mark.parametrize("callbacks", [3, [3], print])
def test_callbacks_that_cannot_be_called_are_refused(callbacks):
    with pytest.raises(InputError, match="callbacks is.*functions? of an nn.Epoch"):
        train(linear(), callbacks=callbacks)


# -- plateau ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "rate"),
    [
        ([], 1.0),
        ([1.0, 1.0], 1.0),
        ([1.0, 1.0, 1.0], 0.5),
        ([1.0, 2.0, 0.5, 0.6], 1.0),
        ([1.0, 2.0, 2.0, 2.0, 2.0], 0.25),
        ([1.0] * 20, 0.2),
        ([np.nan] * 3, 0.5),
    ],
)
def test_the_rate_falls_after_every_patience_epochs_without_a_better_figure(figures, rate):
    assert Plateau(1.0, 0.5, 2, lowest=0.2).after(figures) == rate
    rule = Plateau(1.0, 0.5, 2, lowest=0.2, metric="accuracy", mode="max")
    assert rule.after([-x for x in figures]) == rate


@pytest.mark.parametrize(
    "fields", [{"factor": 1.0}, {"factor": 0}, {"patience": 0}, {"lowest": 1.0}, {"metric": "accuracy"}]
)
def test_a_plateau_that_cannot_work_is_refused(fields):
    with pytest.raises(InputError, match=f"{next(iter(fields)).replace('metric', 'mode')} "):
        Plateau(**fields)


def optimiser():
    return nn.Optimiser(nn.optim.GradientDescent(), Plateau(0.5, 0.5, 1))


def test_steps_run_at_the_reduced_rate_also_after_a_resumption(tmp_path):
    figures = [3.0, 4.0, 2.0, 5.0]
    wanted = np.repeat(np.float32([0.5, 0.5, 0.25, 0.25]), 2)
    whole, parts = linear(), linear()
    answers = iter(figures)
    history = train(whole, 4, optimiser=optimiser(), validation=lambda: next(answers))
    assert (history.rate == wanted).all()
    point, answers = nn.Checkpoint(tmp_path / "at.json", steps=1), iter(figures)
    for epochs in (1.5, 2.0, 4):
        history = train(parts, epochs, optimiser=optimiser(), validation=lambda: next(answers), checkpoint=point)
        assert (history.rate == wanted[: len(history.rate)]).all()
    assert (whole.weight.value == parts.weight.value).all()


def test_a_weight_changes_by_the_rate_of_the_state():
    model = linear()
    x, y = np.ones((4, 3), "f4"), np.zeros((4, 2), "f4")
    step = nn.training_step(model, quadratic, optimiser(), (x, y), engine="reference")
    changes = []
    start = model.weight.value
    for rate in (0.5, 0.125):
        model.weight.assign(start)
        model.bias.assign(np.zeros(2, "f4"))
        step.state["rate"].assign(np.float32(rate))
        assert step(x, y)[1] == rate
        changes.append(model.weight.value - start)
    assert_near(changes[0], 4 * changes[1], "float32 sums")


def test_a_cluster_refuses_a_rate_that_the_client_changes():
    check_rate(nn.Optimiser())
    with pytest.raises(InputError, match="Plateau.*not supported by nn.data_parallel"):
        check_rate(optimiser())
