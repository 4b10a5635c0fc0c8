"""What data_parallel decides before and between the rounds of its workers, without any worker."""

from types import SimpleNamespace

import numpy as np
import pytest

import nn
from cgraph.errors import InputError, PositionError
from nn.loader import SampleSource
from nn.losses import cross_entropy, quadratic
from nn.parallel import train as parallel
from nn.parallel.train import ParallelRun, check_batches, factory_source, resumed_run, step_of
from nn.settings import StepSettings, TrainSettings

X, CLASSES = np.ones((12, 3), "f4"), np.array([0, 1] * 6)


def test_batches_are_cut_into_shards_unless_one_has_a_rest():
    check_batches(nn.Loader((X,), 4, partial=True), 4)
    check_batches(nn.Loader((X,), 8), 4)
    with pytest.raises(InputError) as error:
        check_batches(nn.Loader((X[:10],), 8, partial=True), 4)
    assert str(error.value) == (
        "the last batch of an epoch has 2 samples instead of 8, which cannot be cut into 4 shards. Make the Loader "
        "with partial=False."
    )
    with pytest.raises(InputError):
        check_batches(nn.Loader((X,), 6), 4)


def settings(loss=cross_entropy, **options):
    return TrainSettings(StepSettings(loss, options={"engine": "reference"}), progress=False, **options)


class Source(SampleSource):
    """Classes that are read when they are needed."""

    def __len__(self):
        return 12

    def read(self, numbers):
        return CLASSES[numbers] + 5


def test_classes_in_memory_are_checked_before_the_run_and_others_are_not_read():
    model = nn.initialise(nn.Linear(3, 2), 0)
    resumed_run(model, nn.Loader((X, CLASSES), 4), settings(), 2)
    resumed_run(model, nn.Loader((X, Source()), 4), settings(), 2)
    for bad in (CLASSES + 1, CLASSES - 1):
        with pytest.raises(PositionError, match="has no score"):
            resumed_run(model, nn.Loader((X, bad), 4), settings(), 2)


@pytest.mark.parametrize("trained", [None, ["bias"], ["bias", "weight"], []], ids=str)
def test_the_parameters_to_change_are_sent_by_their_paths(trained):
    model = nn.initialise(nn.Linear(3, 2), 0)
    chosen = None if trained is None else {path: model.variables()[path] for path in trained}
    step = StepSettings(quadratic, trained=chosen, metrics=(nn.metrics.accuracy(),))
    source = factory_source(lambda: model, step, nn.Loader((X, CLASSES), 4), 2)
    assert source.trained == trained and source.settings.trained is None and source.settings.metrics == step.metrics
    assert source.specs == [((2, 3), "float32"), ((2,), "int64")] and source.shards == 2
    halves = SimpleNamespace(update="update", state={"step": 3}, parts=("a",))
    update = step_of(model, halves, step)
    assert update.parameters == (model.parameters() if chosen is None else chosen)
    assert (update.function, update.state, update.parts, update.metrics) == (
        "update",
        {"step": 3},
        ("a",),
        step.metrics,
    )


RULES = {
    "none": None,
    "steps": nn.Checkpoint("x", steps=3),
    "epochs": nn.Checkpoint("x", epochs=0.5),
    "both": nn.Checkpoint("x", steps=4, epochs=2),
    "own": nn.Checkpoint("x", when=lambda step, loss: False),
    "best": nn.Checkpoint("x", best="loss"),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("each", [1, 4, 7])
def test_a_round_ends_where_a_checkpoint_an_epoch_or_the_run_does(rule, each):
    checkpoint, total = RULES[rule], 18
    for count in range(total):
        run = SimpleNamespace(
            losses=[0.0] * count, total=total, data=SimpleNamespace(steps_per_epoch=each),
            settings=SimpleNamespace(checkpoint=checkpoint),
        )  # fmt: skip
        ends = (
            step
            for step in range(count + 1, total + 1)
            if step % each == 0 or step == total or rule == "own" or (checkpoint and checkpoint.due(step, each, 0.0))
        )
        assert ParallelRun.steps_until_due(run) == next(ends) - count, count


@pytest.mark.parametrize("fails", [False, True])
def test_the_job_ends_on_all_workers_however_the_run_ends(fails, monkeypatch):
    calls = []

    class Coordinator:
        def __init__(self, *arguments):
            calls.append(arguments)

        def close(self):
            calls.append("closed")

    class Run(ParallelRun):
        def __init__(self):
            pass

        def run_remaining(self):
            assert not self.pending and calls[1:] == []
            if fails:
                raise KeyboardInterrupt
            return "history"

    monkeypatch.setattr(parallel, "import_module", lambda name: SimpleNamespace(Coordinator=Coordinator))
    monkeypatch.setattr(parallel, "facts", lambda function: ("facts", function))
    run, halves = Run(), SimpleNamespace(update="update")
    if fails:
        with pytest.raises(KeyboardInterrupt):
            run.run_on("client", "job", halves)
    else:
        assert run.run_on("client", "job", halves) == "history"
    assert calls == [("client", "job", ("facts", "update"), run.current_state), "closed"]
