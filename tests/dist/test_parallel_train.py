"""What data_parallel decides before the first round of its workers."""

from types import SimpleNamespace

import numpy as np
import pytest

import nn
from cgraph.errors import InputError, PositionError
from nn.loader import SampleSource
from nn.losses import cross_entropy, quadratic
from nn.parallel.train import check_batches, factory_source, resumed_run, step_of
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
