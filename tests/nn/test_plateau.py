"""Plateau: a rate that falls when a figure stops improving, in the graph, in a training and after a resumption."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError
from nn.losses import quadratic
from nn.optim import Plateau
from tests.nn.test_callbacks import linear, train
from tests.support.tolerance import assert_near


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


def test_its_rate_is_a_var_of_the_state_and_before_the_first_step_the_field():
    rule = Plateau(0.25)
    state = rule.state()
    assert list(state) == ["rate"] and state["rate"].dtype == np.float32 and state["rate"].value == 0.25
    assert rule.current(cg.Const(np.float32(7)), state) is state["rate"]
    assert rule.at(cg.Const(np.float32(7))).eval() == np.float32(0.25)


def test_the_change_that_counts_is_a_field():
    assert Plateau(1.0, 0.5, 1, least=0.5).after([3.0, 2.75]) == 0.5
    assert Plateau(1.0, 0.5, 1, least=0.125).after([3.0, 2.75]) == 1.0


def test_a_better_figure_begins_a_new_patience():
    """Two bad epochs, a better one, two bad epochs: never three in a row."""
    assert Plateau(1.0, 0.5, 3).after([5.0, 6, 6, 4, 6, 6]) == 1.0
    assert Plateau(1.0, 0.5, 3).after([5.0, 6, 6, 4, 6, 6, 6]) == 0.5


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"factor": 1.0}, "factor is 1.0. Pass a number between 0 and 1."),
        ({"factor": float("nan")}, "factor is nan. Pass a number between 0 and 1."),
        ({"lowest": 0.5}, "lowest is 0.5 and rate 0.001. Pass 0 <= lowest <= rate."),
        ({"lowest": -1.0}, "lowest is -1.0 and rate 0.001. Pass 0 <= lowest <= rate."),
    ],
)
def test_the_refusal_names_values_and_limits(fields, said):
    with pytest.raises(InputError) as error:
        Plateau(**fields)
    assert str(error.value) == said
    assert Plateau(lowest=0.001).lowest == 0.001


def test_the_rate_follows_its_own_figure_and_the_stopping_rule_another():
    """The validation grows worse after each epoch, and the loss of the training better."""
    figures = iter([1.0, 2.0, 3.0, 4.0])
    model, early = linear(), nn.Early(3, metric="loss")
    history = train(model, 4, optimiser=optimiser(), stopping=early, validation=lambda: next(figures))
    losses = history.by_epoch()["loss"]
    assert (losses[1:] < losses[:-1]).all()
    assert (history.rate == np.repeat(np.float32([0.5, 0.5, 0.25, 0.125]), 2)).all()
