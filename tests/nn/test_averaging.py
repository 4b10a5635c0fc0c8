"""Averaged weights: the averages of a NumPy loop, a resumed run has their bits, and validation uses them."""

import numpy as np
import pytest

import nn
from cgraph.errors import FormatError, InputError
from nn.losses import quadratic
from nn.optim import EqualAverage, ExponentialAverage
from nn.parallel.sharded_step import halves
from nn.settings import StepSettings
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 3)).astype("f4"), RNG.normal(size=(12, 2)).astype("f4")


def linear():
    return nn.initialise(nn.Linear(3, 2), 1)


def optimiser(averaging):
    return nn.Optimiser(nn.optim.Adam(), nn.optim.Const(0.05), averaging=averaging)


def train(model, averaging, epochs=3, **options):
    loader = nn.Loader((X, Y), 3)
    options = {"engine": "reference", **options}
    return nn.train(model, loader, quadratic, optimiser(averaging), epochs=epochs, progress=False, **options)


def bits(model):
    return [x.value.tobytes() for x in model.variables().values()]


def expected(averaging, weights):
    """The average after the last of these weights, in double precision."""
    average = weights[0]
    for step, x in enumerate(weights):
        after = step - averaging.start
        if after <= 0:
            share = 1.0
        elif isinstance(averaging, ExponentialAverage):
            share = 1 - averaging.decay
        else:
            share = 0.0 if after % averaging.every else 1 / (after // averaging.every + 1)
        average = (1 - share) * average + share * x
    return average


RULES = [
    ExponentialAverage(0.5), ExponentialAverage(0.9, 3), EqualAverage(), EqualAverage(2), EqualAverage(1, 3),
    EqualAverage(40),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_an_average_is_that_of_a_numpy_loop(rule, engine):
    model, loader = linear(), nn.Loader((X, Y), 3)
    step = nn.training_step(model, quadratic, optimiser(rule), loader.at(0), engine=engine)
    weights = []
    for i in range(11):
        step(*loader.at(i))
        weights.append(model.weight.value)
        assert_near(step.averages()[model.weight], expected(rule, weights), "float32 sums")
    if isinstance(rule, EqualAverage) and rule.every == 3:
        assert_near(step.averages()[model.weight], np.mean(weights[1::3], 0), "float32 sums")


def test_averaging_leaves_the_steps_as_they_are_and_training_ends_with_the_averages():
    plain, model, with_average = linear(), linear(), []
    history = train(plain, None)
    rule = EqualAverage(2)
    raw = []

    def note(epoch):
        raw.append(epoch.model.weight.value)
        with epoch.averaged():
            with_average.append(epoch.model.weight.value)

    assert (train(model, rule, callbacks=[note]).loss == history.loss).all()
    assert (raw[-1] == plain.weight.value).all()
    assert (with_average[-1] == model.weight.value).all() and (model.weight.value != plain.weight.value).any()


def test_validation_and_the_best_epoch_use_the_averages():
    model, checked = linear(), []
    answers = iter([2.0, 1.0, 3.0])

    def validation():
        checked.append(model.weight.value)
        return next(answers)

    averages = []

    def note(epoch):
        with epoch.averaged():
            averages.append(epoch.model.weight.value)

    stopping = nn.Early(5, restore=True)
    train(model, ExponentialAverage(0.9), validation=validation, stopping=stopping, callbacks=[note])
    assert all((one == other).all() for one, other in zip(checked, averages)) and len(checked) == 3
    assert (model.weight.value == averages[1]).all()


def test_an_error_within_the_context_leaves_the_weights_of_the_last_step():
    model, seen = linear(), []

    def fail(epoch):
        seen.append(epoch.model.weight.value)
        with epoch.averaged():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(model, ExponentialAverage(0.9), callbacks=[fail])
    assert (model.weight.value == seen[0]).all()


@pytest.mark.parametrize("rule", [ExponentialAverage(0.9, 1), EqualAverage(2, 3)], ids=repr)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(rule, tmp_path):
    whole, parts = linear(), linear()
    train(whole, rule, validation=(X, Y), engine="cpu")
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    for epochs in (0.75, 1.25, 3):
        train(parts, rule, epochs, validation=(X, Y), engine="cpu", checkpoint=point)
    assert bits(whole) == bits(parts)


def test_a_checkpoint_without_averages_is_refused_with_them(tmp_path):
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    train(linear(), None, 1, checkpoint=point)
    with pytest.raises(FormatError, match="another optimiser"):
        train(linear(), EqualAverage(), checkpoint=point)


def test_a_run_without_steps_leaves_the_weights():
    model, start = linear(), linear()
    train(model, EqualAverage(), 0)
    assert bits(model) == bits(start)


def test_the_update_half_of_a_cluster_averages_too():
    """One shard of a whole batch computes what a step does."""
    rule = ExponentialAverage(0.5)
    one, other = linear(), linear()
    step = nn.training_step(one, quadratic, optimiser(rule), (X, Y), engine="reference")
    both = halves(other, StepSettings(quadratic, optimiser(rule), options={"engine": "reference"}), (X, Y), 1)
    for _ in range(3):
        step(X, Y)
        both.update(*both.gradient(X, Y))
    assert_near(both.state["weight/average"].value, step.averages()[one.weight], "float32 sums")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [(ExponentialAverage, {"decay": 1.0}), (ExponentialAverage, {"decay": 0}), (ExponentialAverage, {"start": -1}),
     (EqualAverage, {"every": 0}), (EqualAverage, {"start": 1.5})],
)  # fmt: skip
def test_an_average_that_cannot_work_is_refused(kind, fields):
    with pytest.raises(InputError, match=f"{next(iter(fields))} is"):
        kind(**fields)


def test_an_optimiser_refuses_a_number_for_an_average():
    with pytest.raises(InputError, match="averaging is 0.9.*an average of nn.optim"):
        nn.Optimiser(averaging=0.9)
