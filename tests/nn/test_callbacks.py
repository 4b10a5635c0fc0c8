"""Functions called after every epoch, and a rate that falls when a metric stops improving."""

import numpy as np
import pytest

import nn
from cgraph.errors import InputError
from nn.losses import quadratic


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


def test_callbacks_get_the_epoch_after_which_a_rule_stops_and_do_not_start_it_again():
    epochs = []
    history = train(linear(), 5, stopping=nn.Below(1e9), callbacks=[lambda epoch: epochs.append(epoch.epoch) or False])
    assert epochs == [1] and len(history.loss) == 2
