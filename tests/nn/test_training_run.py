"""What a training does after each step, without a graph: a step here is a list of numbers."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import nn
from cgraph.errors import FormatError, InputError, PositionError
from nn.losses import check_classes, cross_entropy, quadratic
from nn.metrics import Metric
from nn.settings import StepSettings, TrainSettings
from nn.stopping import Stopping
from nn.training_run import TrainingRun
from nn.validation import ValidationResult


class Noting(TrainingRun):
    """A run that notes when it would write a checkpoint. Changes: with every step."""

    def save(self):
        self.saved.append(len(self.losses))


class Listening(Stopping):
    """A stopping that notes what it is asked, and stops at the last of so many."""

    most: int
    asked: list

    def stops(self, losses):
        self.asked.append(list(losses))
        return len(self.asked) >= self.most


def run_of(losses, each=2, *, check=None, finite=True, total=None, partial=True, optimiser=None, **options):
    """A run of steps that give these losses, with a part of the loss and a metric that adds them up."""
    calls = []

    def step(kind):
        def stepped(at):
            calls.append((kind, at))
            return losses[at], 0.5, losses[at] / 2, np.array([losses[at], 1.0])

        return stepped

    first = step("whole")
    first.parts, first.metrics, first.state = ("half",), (Metric("mean", None),), {}
    data = SimpleNamespace(at=lambda i: (i,), steps_per_epoch=each)
    total = len(losses) if total is None else total
    step_settings = StepSettings(quadratic, optimiser or nn.Optimiser())
    settings = TrainSettings(step_settings, total / each, finite=finite, progress=False, **options)
    run = Noting(None, first, step("last") if partial else None, data, settings, check)
    run.saved, run.calls = [], calls
    return run


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_a_loss_that_is_no_number_ends_the_training_before_anything_is_kept(wrong, at):
    losses = [1.0, 2.0, 3.0, 4.0, 5.0]
    losses[at] = wrong
    checks = []
    run = run_of(
        losses, 1, checkpoint=nn.Checkpoint("x", steps=1), check=lambda: checks.append(0) or ValidationResult(1.0, {})
    )
    with pytest.raises(nn.LossError, match=f"the loss of step {at + 1} is {wrong}.*rate of 0.5.*finite=False"):
        run.run_remaining()
    assert run.losses == losses[:at] and run.saved == list(range(1, at + 1)) and len(checks) == at
    assert run.history().parts["half"].tolist() == [x / 2 for x in losses[:at]]
    allowed = run_of(losses, 1, finite=False)
    np.testing.assert_array_equal(allowed.run_remaining().loss, np.float32(losses))


@pytest.mark.parametrize("each", [1, 2, 3])
def test_stopping_asks_the_validation_and_without_one_the_means_of_epochs(each):
    losses = [float(x) for x in (9, 7, 5, 8, 6, 4, 3, 2, 1, 1, 1, 1)]
    checked = iter([50.0, 40.0, 30.0, 20.0] * 3)
    for check in (None, lambda: ValidationResult(next(checked), {})):
        stopping = Listening(3, [])
        run = run_of(losses, each, check=check, stopping=stopping)
        history = run.run_remaining()
        means = [float(np.mean(losses[i * each : (i + 1) * each])) for i in range(3)]
        wanted = means if check is None else [50.0, 40.0, 30.0]
        assert stopping.asked == [wanted[: i + 1] for i in range(3)]
        assert len(history.loss) == 3 * each and run.done
        assert history.checked_at.tolist() == ([] if check is None else [each, 2 * each, 3 * each])
        assert history.validation.tolist() == (wanted if check else [])


@pytest.mark.parametrize("each", [1, 2, 5])
def test_the_last_step_of_each_epoch_is_the_smaller_one(each):
    run = run_of([1.0] * 11, each)
    run.run_remaining()
    assert run.calls == [("last" if (i + 1) % each == 0 else "whole", i) for i in range(11)]
    other = run_of([1.0] * 11, each, partial=False)
    other.run_remaining()
    assert other.calls == [("whole", i) for i in range(11)]


@pytest.mark.parametrize("each", [1, 2, 4])
def test_metrics_are_those_of_each_epoch_alone(each):
    losses = [float(x) for x in range(8)]
    history = run_of(losses, each).run_remaining()
    np.testing.assert_array_equal(history.metrics["mean"], np.reshape(losses, (-1, each)).mean(1))
    run = run_of(losses, each, total=each + 1)
    run.run_remaining()
    latest = run.latest()["mean"]
    assert latest == (losses[1] if each == 1 else losses[each])


def test_the_newest_figures_are_shown_those_of_the_last_epoch_and_validation_too():
    found = iter([ValidationResult(1.0, {"mean": np.array(7.0)}), ValidationResult(1.0, {"mean": np.array(8.0)})])
    run = run_of([1.0, 3.0, 5.0, 9.0, 11.0], 2, check=lambda: next(found), total=5)
    shown = []
    for _ in range(5):
        run.run_step()
        shown.append({name: float(x) for name, x in run.latest().items()})
    assert shown == [{"mean": 1.0}, {"mean": 2.0, "valid mean": 7.0}, {"mean": 5.0, "valid mean": 7.0},
                     {"mean": 7.0, "valid mean": 8.0}, {"mean": 11.0, "valid mean": 8.0}]  # fmt: skip
    assert [float(x) for x in run.history().validation_metrics["mean"]] == [7, 8]


def test_a_checkpoint_is_written_when_the_epoch_has_ended():
    """So that it has the epoch's validation, and that the training is over."""
    order = []
    run = run_of(
        [1.0] * 4, 2, check=lambda: order.append("check") or ValidationResult(0.0, {}), stopping=Listening(2, []),
        checkpoint=nn.Checkpoint("x", epochs=1),
    )  # fmt: skip
    run.save = lambda: order.append(("save", run.done, len(run.validation)))
    run.run_remaining()
    assert order == ["check", ("save", False, 1), "check", ("save", True, 2)]


@pytest.mark.parametrize("each", range(1, 8))
def test_checkpoints_are_due_after_every_so_many_steps_and_every_so_many_epochs_alike(each):
    """Whichever of both is due, and the rule of one's own besides; after every epoch without any of them."""
    asked = []

    def own(step, loss):
        asked.append((step, loss))
        return step == 7

    for steps, epochs, when in product((0, 1, 3, 5), (0.0, 0.2, 0.5, 1.0, 2.5), (None, own)):
        rule = nn.Checkpoint("x", steps, epochs, when)
        every = max(1, round(epochs * each)) if epochs else 0 if steps or when else each
        wanted = [
            i
            for i in range(1, 40)
            if (steps and i % steps == 0) or (every and i % every == 0) or (when is not None and i == 7)
        ]
        assert [i for i in range(1, 40) if rule.due(i, each, i / 2)] == wanted, (steps, epochs)
    assert all(loss == step / 2 for step, loss in asked)


@pytest.mark.parametrize("checkpoint, steps", [
    (None, []), (nn.Checkpoint("x"), [6, 12]), (nn.Checkpoint("x", steps=5, epochs=0.5), [3, 5, 6, 9, 10, 12]),
], ids=["none", "default", "times"])  # fmt: skip
def test_checkpoints_are_written_where_they_are_due(checkpoint, steps):
    run = run_of([1.0] * 12, 6, checkpoint=checkpoint)
    run.run_remaining()
    assert run.saved == steps


# -- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [1, 2, 3])
@pytest.mark.parametrize("least", [0.0, 0.5])
def test_early_stopping_counts_from_the_best(patience, least):
    """Of all rows of four losses: the best, each better than the last best by at least so much, is so old."""
    for losses in product((1.0, 1.25, 2.0, np.nan), repeat=4):
        for n in range(5):
            best, age = np.inf, 0
            for x in losses[:n]:
                best, age = (x, 0) if x < best - least else (best, age + 1)
            assert nn.Early(patience, least).stops(losses[:n]) == (age >= patience)


def test_below_looks_at_the_last_loss_alone():
    assert not nn.Below(1.0).stops([])
    for losses, stops in (([0.5], True), ([0.5, 2.0], False), ([2.0, 0.5], True), ([1.0], False), ([np.nan], False)):
        assert nn.Below(1.0).stops(losses) == stops


# -- wanted classes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 2, 5, 255, 256, 300])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_every_class_that_has_no_score_is_named_and_every_other_one_is_taken(classes, dtype):
    scores = SimpleNamespace(shape=(3, classes), name="scores", spec="float32[3, classes]")
    ends = np.iinfo(dtype)
    for wanted in (0, classes - 1, classes, classes + 1, -1, ends.min, ends.max):
        if not ends.min <= wanted <= ends.max:
            continue
        given = np.array([0, wanted, 0], dtype)
        if 0 <= wanted < classes:
            check_classes(cross_entropy, scores, given)
        else:
            with pytest.raises(PositionError, match=f"class {wanted} has no score.*scores of 0 to {classes - 1}\\."):
                check_classes(cross_entropy, scores, given)
            check_classes(quadratic, scores, given)  # which takes no classes
    check_classes(cross_entropy, scores, np.zeros((0,), dtype))
    check_classes(cross_entropy, scores, np.full((3, classes), 9, "float32"))


@pytest.mark.parametrize("wrong", [2, 9, -1])
@pytest.mark.parametrize("where", [0, -1])
def test_a_class_without_a_score_is_refused_in_any_step_and_in_the_validation(wrong, where):
    model = nn.initialise(nn.Linear(3, 2), 0)
    x, y = np.ones((6, 3), np.float32), np.array([0, 1, 0, 1, 1, 0])
    bad = y.copy()
    bad[where] = wrong
    given = {"progress": False, "engine": "reference", "epochs": 1}
    loader = nn.Loader((x, y), 2, order="given")
    with pytest.raises(PositionError, match=f"class {wrong}"):
        nn.train(model, nn.Loader((x, bad), 2, order="given"), **given)
    with pytest.raises(PositionError, match=f"class {wrong}"):
        nn.train(model, loader, validation=(x, bad), **given)
    assert len(nn.train(model, loader, validation=(x, y), **given).loss) == 3


@pytest.mark.parametrize("epochs", [-1, -0.5, np.inf, np.nan])
def test_a_number_of_epochs_that_cannot_be_is_refused(epochs):
    model = nn.initialise(nn.Linear(3, 2), 0)
    loader = nn.Loader((np.ones((4, 3), np.float32), np.zeros(4, int)), 2)
    with pytest.raises(InputError, match="epochs is"):
        nn.train(model, loader, epochs=epochs)


@pytest.mark.parametrize(("epochs", "steps"), [(0, 0), (0.2, 1), (0.5, 2), (1, 5), (1.5, 8), (2.0, 10)])
def test_a_part_of_an_epoch_is_so_many_steps(epochs, steps):
    model = nn.initialise(nn.Linear(3, 2), 0)
    loader = nn.Loader((np.ones((10, 3), np.float32), np.zeros(10, int)), 2)
    assert len(nn.train(model, loader, epochs=epochs, progress=False, engine="reference").loss) == steps


# -- figures that rules compare ---------------------------------------------------------------------------------------

WATCHERS = {
    "stopping": lambda metric: {"stopping": nn.Early(metric=metric, mode="max")},
    "checkpoint": lambda metric: {"checkpoint": nn.Checkpoint("x", best=metric, mode="max")},
    "rate": lambda metric: {"optimiser": nn.Optimiser(rate=nn.optim.Plateau(metric=metric, mode="max"))},
}
ALWAYS = ["loss", "half", "mean"]
VALIDATIONS = {
    "none": ({}, ALWAYS),
    "arrays": ({"check": lambda: None}, [*ALWAYS, "valid loss", "valid mean"]),
    "a function": ({"check": lambda: None, "validation": lambda: 1.0}, [*ALWAYS, "valid loss"]),
}


@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("watcher", WATCHERS)
def test_each_rule_compares_a_figure_that_the_run_has(watcher, validation):
    options, there = VALIDATIONS[validation]
    for metric in ("loss", "half", "mean", "valid loss", "valid mean", "valid half"):
        if metric in there:
            run_of([1.0], **options, **WATCHERS[watcher](metric))
            continue
        with pytest.raises(InputError) as error:
            run_of([1.0], **options, **WATCHERS[watcher](metric))
        assert str(error.value) == (
            f"the metric {metric!r} does not exist; there are {', '.join(there)}. Pass one of them, or add it with "
            "metrics= or validation=."
        )


# -- figures of a whole training --------------------------------------------------------------------------------------


def parted(predicted, targets):
    return {"square": quadratic(predicted, targets), "distance": nn.losses.l1(predicted, targets)}


def test_a_resumed_run_has_every_figure_of_an_uninterrupted_one(tmp_path):
    x, y = (np.random.default_rng(n).normal(size=(8, n)).astype("f4") for n in (3, 2))

    def train(epochs, **options):
        model, optimiser = nn.initialise(nn.Linear(3, 2), 1), nn.Optimiser(rate=nn.optim.Decay(0.1, 0.5))
        options |= {"validation": (x[:5], y[:5]), "metrics": [nn.losses.huber, nn.losses.hinge], "progress": False}
        return nn.train(model, nn.Loader((x, y), 4), parted, optimiser, epochs=epochs, engine="reference", **options)

    whole, point = train(3.5), nn.Checkpoint(tmp_path / "at.json", steps=1)
    for epochs in (0.5, 1, 2.5, 3.5):
        history = train(epochs, checkpoint=point)
        assert len(history.loss) == 2 * epochs
    assert history.checked_at.tolist() == [2, 4, 6] and len(set(history.rate.tolist())) == 7
    for name, value in vars(whole).items():
        found = getattr(history, name)
        assert type(found) is type(value), name
        for one, other in zip(*((x.values() if isinstance(x, dict) else [x]) for x in (found, value)), strict=True):
            np.testing.assert_array_equal(one, other, name)
        if isinstance(value, dict):
            assert list(found) == list(value) != [], name


@pytest.mark.parametrize(
    ("losses", "names"),
    [
        ((parted, quadratic), "distance, square instead of none"),
        ((quadratic, parted), "none instead of square, distance"),
        ((parted, lambda p, t: {"distance": quadratic(p, t)}), "distance, square instead of distance"),
    ],
)
def test_a_checkpoint_of_a_loss_with_other_parts_is_refused(losses, names, tmp_path):
    x, point = np.ones((2, 3), "f4"), nn.Checkpoint(tmp_path / "at.json", steps=1)

    def train(loss, epochs):
        nn.train(
            nn.initialise(nn.Linear(3, 2), 1), nn.Loader((x, x[:, :2]), 2), loss, nn.Optimiser(), epochs=epochs,
            checkpoint=point, progress=False, engine="reference",
        )  # fmt: skip

    train(losses[0], 1)
    with pytest.raises(FormatError, match=f"was written with other parts of the loss: {names}. Pass resume=False"):
        train(losses[1], 2)


class Bar:
    """A bar that notes what it shows and how often it is closed. Changes: with both."""

    def __init__(self, *arguments):
        self.arguments, self.shown, self.closed = arguments, [], 0

    def show(self, *facts):
        assert not self.closed
        self.shown.append(facts)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("losses", [[4.0, 2.0, 6.0], [4.0, 2.0, np.nan]], ids=["whole", "failing"])
def test_the_bar_shows_each_step_with_its_figures_and_is_closed_however_the_run_ends(losses, monkeypatch):
    bars = []
    monkeypatch.setattr("nn.training_run.progress_bar", lambda *arguments: bars.append(Bar(*arguments)) or bars[-1])
    run = run_of(losses, 2)
    if np.isnan(losses[-1]):
        with pytest.raises(nn.LossError):
            run.run_remaining()
    else:
        run.run_remaining()
    (bar,) = bars
    assert bar.arguments == (0, 3, False) and bar.closed == 1
    means = {1: "mean 4.0000  ", 2: "mean 3.0000  ", 3: "mean 6.0000  "}
    assert bar.shown == [(i, x, 0.5, means[i]) for i, x in enumerate(losses, 1) if not np.isnan(x)]


def test_the_bar_of_a_resumed_run_begins_at_its_step(monkeypatch):
    bars = []
    monkeypatch.setattr("nn.training_run.progress_bar", lambda *arguments: bars.append(Bar(*arguments)) or bars[-1])
    run = run_of([1.0] * 6, 2, total=6)
    for _ in range(3):
        run.run_step()
    run.run_remaining()
    assert bars[0].arguments == (3, 6, False) and [facts[0] for facts in bars[0].shown] == [4, 5, 6]


@pytest.mark.parametrize("name", ["loss", "rate", "checked_at", "validation"])
def test_a_checkpoint_without_a_part_of_the_history_is_refused_before_anything_changes(name, tmp_path):
    x, point = np.ones((2, 3), "f4"), nn.Checkpoint(tmp_path / "at.json", steps=1)

    def train(model, epochs):
        nn.train(
            model, nn.Loader((x, x[:, :2]), 2), quadratic, nn.Optimiser(), epochs=epochs, checkpoint=point,
            progress=False, engine="reference",
        )  # fmt: skip

    train(nn.initialise(nn.Linear(3, 2), 1), 1)
    arrays, facts = nn.read_checkpoint(point.path)
    arrays = {path: np.array(array) for path, array in arrays.items() if path != f"history/{name}"}
    nn.write_checkpoint(point.path, arrays, {"step": facts["step"], "done": False})
    model = nn.initialise(nn.Linear(3, 2), 2)
    before = model.weight.value
    with pytest.raises(FormatError) as error:
        train(model, 2)
    assert str(error.value) == (f"{point.path} has no history of a training. Pass resume=False, or another path.")
    assert (model.weight.value == before).all()


def test_slots_of_another_size_belong_to_another_training(tmp_path):
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)

    def train(inputs, epochs):
        x = np.ones((2, inputs), "f4")
        nn.train(
            nn.initialise(nn.Linear(inputs, 2), 1), nn.Loader((x, x[:, :2]), 2), quadratic, nn.Optimiser(),
            epochs=epochs, checkpoint=point, progress=False, engine="reference",
        )  # fmt: skip

    train(3, 1)
    with pytest.raises(FormatError, match="was written by another optimiser. Pass resume=False, or another path"):
        train(4, 2)
