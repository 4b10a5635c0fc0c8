"""The best epoch by any metric: early stopping restores its weights, a checkpoint stores it."""

import numpy as np
import pytest

import nn
from cgraph.errors import FormatError, InputError
from nn.losses import quadratic
from nn.monitor import Monitor


@pytest.mark.parametrize(
    ("figures", "lowest", "highest"),
    [([], None, None), ([3.0, 1.0, 2.0], 1, 0), ([1.0, 1.0], 0, 0), ([np.nan, 2.0], 1, 1), ([np.nan], None, None)],
)
def test_the_best_is_the_first_of_the_lowest_or_highest_figures(figures, lowest, highest):
    assert Monitor().best(figures) == Monitor("valid loss").best(figures) == lowest
    assert Monitor("accuracy", "max").best(figures) == highest
    assert Monitor("accuracy", "min").best(figures) == lowest


def test_a_change_below_the_least_is_not_better():
    assert Monitor(least=0.1).best([1.0, 0.95, 0.85]) == 2
    assert Monitor("accuracy", "max", 0.1).best([0.5, 0.55]) == 0


@pytest.mark.parametrize(
    ("create", "match"),
    [
        (lambda: nn.Early(metric="valid accuracy"), "mode of 'valid accuracy' is unknown"),
        (lambda: nn.Early(mode="best"), "mode is 'best'"),
        (lambda: nn.Checkpoint("x", best="accuracy"), "mode of 'accuracy' is unknown"),
        (lambda: nn.Checkpoint("x", steps=3, best="loss"), "Pass only best="),
    ],
)
def test_a_direction_that_is_unknown_is_refused(create, match):
    with pytest.raises(InputError, match=match):
        create()


# -- in a training, whose validation is a list of numbers ------------------------------------------------------------


def linear():
    return nn.initialise(nn.Linear(3, 2), 1)


def train(model, figures, epochs=None, **options):
    """Train for an epoch of two steps for each figure, which its validation returns; list the weights after each."""
    weights = []
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype("f4"), rng.normal(size=(8, 2)).astype("f4")

    def validation():
        weights.append(model.weight.value)
        return figures[len(weights) - 1]

    options = {"validation": validation, "epochs": epochs or len(figures), "engine": "reference", **options}
    return nn.train(model, nn.Loader((x, y), 4), quadratic, progress=False, **options), weights


FIGURES = [5.0, 3.0, 4.0, 2.0, 6.0, 7.0]


@pytest.mark.parametrize(("fields", "best"), [({}, 3), ({"metric": "valid loss", "mode": "max"}, 5)])
def test_the_model_has_the_weights_of_the_best_epoch_if_the_rule_restores_them(fields, best):
    for restore in (True, False):
        model = linear()
        history, weights = train(model, FIGURES, stopping=nn.Early(9, restore=restore, **fields))
        assert len(history.validation) == 6
        assert (model.weight.value == weights[best if restore else 5]).all()


def test_stopping_counts_from_the_best_of_any_metric():
    metrics = [lambda predicted, targets: quadratic(predicted, targets)]
    metrics[0].__name__ = "error"
    history, _ = train(linear(), FIGURES, metrics=metrics, stopping=nn.Early(2, 1e9, metric="error", mode="max"))
    assert len(history.validation) == 3, "the first epoch is the best, since no change counts"


def test_a_resumed_run_restores_the_best_weights_of_an_epoch_before_the_interruption(tmp_path):
    rule = nn.Early(9, restore=True)
    point = nn.Checkpoint(tmp_path / "at.json", epochs=1)
    first, figures = linear(), [1.0, 3.0, 4.0]
    _, weights = train(first, figures + FIGURES[3:], epochs=3, stopping=rule, checkpoint=point)
    second = linear()
    train(second, [8.0] * 6, epochs=6, stopping=rule, checkpoint=point)
    assert (second.weight.value == weights[0]).all() and (first.weight.value == weights[0]).all()
    with pytest.raises(FormatError, match="Pass the same nn.Early"):
        train(linear(), FIGURES, stopping=nn.Early(9, restore=True, metric="valid loss"), checkpoint=point)


def test_an_error_leaves_the_weights_of_the_last_step():
    model, weights = linear(), []

    def validation():
        weights.append(model.weight.value)
        return float(len(weights)) if len(weights) < 3 else "no number"

    with pytest.raises(InputError, match="no number"):
        train(model, FIGURES, validation=validation, stopping=nn.Early(9, restore=True))
    assert (model.weight.value == weights[2]).all() and (weights[2] != weights[0]).any()


def test_a_checkpoint_of_the_best_is_that_of_no_other_epoch(tmp_path):
    point = nn.Checkpoint(tmp_path / "best.json", best="valid loss")
    _, weights = train(linear(), FIGURES, checkpoint=point)
    arrays, facts = nn.read_checkpoint(point.path)
    assert facts["step"] == 8 and (arrays["model/weight"] == weights[3]).all()
    model = linear()
    history, again = train(model, FIGURES, checkpoint=point, validation=lambda: 9.0)
    assert history.validation.tolist() == [*FIGURES[:4], 9.0, 9.0]
    assert (model.weight.value == weights[5]).all() and not again


@pytest.mark.parametrize(
    "options",
    [
        {"stopping": nn.Early(metric="accuracy", mode="max")},
        {"stopping": nn.Early(metric="valid error", mode="min")},
        {"checkpoint": nn.Checkpoint("x", best="valid loss"), "validation": None},
    ],
)
def test_a_metric_that_the_run_does_not_have_is_refused_before_the_first_step(options):
    model = linear()
    before = model.weight.value
    with pytest.raises(InputError, match="does not exist; there are loss"):
        train(model, FIGURES, **options)
    assert (model.weight.value == before).all()


def test_a_metric_that_is_an_array_does_not_compare_epochs():
    x, y = np.eye(4, 3, dtype="f4"), np.zeros(4, "i4")
    with pytest.raises(InputError, match=r"confusion is an array \[2, 2\]"):
        nn.train(
            linear(), nn.Loader((x, y), 4), metrics=[nn.metrics.confusion(2)], progress=False, engine="reference",
            stopping=nn.Early(metric="confusion", mode="max"),
        )  # fmt: skip


@pytest.mark.parametrize(("epochs", "is_refused"), [(0.5, False), (1, True)])
def test_another_rule_is_refused_from_the_first_whole_epoch_on(epochs, is_refused, tmp_path):
    """Before it no rule has selected weights."""
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    train(linear(), FIGURES, epochs, stopping=nn.Early(9, restore=True), checkpoint=point)
    other = {"stopping": nn.Early(9, restore=True, metric="valid loss"), "checkpoint": point}
    if is_refused:
        with pytest.raises(FormatError, match="has the best weights by .* and stopping= restores those by"):
            train(linear(), FIGURES, 2, **other)
    else:
        assert len(train(linear(), FIGURES, 2, **other)[0].loss) == 4


@pytest.mark.parametrize("change", ["shape", "name"])
def test_best_weights_that_do_not_fit_the_model_are_refused_when_a_run_is_resumed(change, tmp_path):
    """Not when it ends."""
    rule, point = nn.Early(9, restore=True), nn.Checkpoint(tmp_path / "at.json", epochs=1)
    train(linear(), FIGURES, 2, stopping=rule, checkpoint=point)
    arrays, facts = nn.read_checkpoint(point.path)
    arrays = {path: np.array(x) for path, x in arrays.items()}
    weight = arrays.pop("best/weight")
    arrays |= {"best/weight": weight.T} if change == "shape" else {"best/other": weight}
    own = ("version", "arrays", "sha256")
    nn.write_checkpoint(point.path, arrays, {name: x for name, x in facts.items() if name not in own})
    with pytest.raises(FormatError, match="weight has shape" if change == "shape" else "lacks weight"):
        _, weights = train(linear(), FIGURES, 3, stopping=rule, checkpoint=point)
