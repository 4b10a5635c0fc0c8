"""Gradient accumulation: small batches make the update of one large batch, also after a resumption in the middle."""

import json

import numpy as np
import pytest

import nn
from cgraph.errors import FormatError, InputError
from nn.losses import quadratic
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 3)).astype("f4"), RNG.normal(size=(24, 2)).astype("f4")


def network():
    return nn.initialise(nn.Sequential(nn.Linear(3, 4), nn.Activation("tanh"), nn.Linear(4, 2)), 1)


def train(model, accumulate, epochs=2, batch=4, order="shuffled", **options):
    loader = nn.Loader((X, Y), batch, order)
    options = {"engine": "reference", **options}
    return nn.train(model, loader, quadratic, epochs=epochs, accumulate=accumulate, progress=False, **options)


def bits(model):
    return [x.value.tobytes() for x in model.variables().values()]


OPTIMISERS = [
    nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Decay(0.1, 0.5)),
    nn.Optimiser(nn.optim.Adam(), nn.optim.Const(0.05), averaging=nn.optim.EqualAverage(1)),
    nn.Optimiser(
        nn.optim.GradientDescent(), nn.optim.Const(0.1), nn.optim.Nesterov(), nn.optim.ClipL2(0.5), nn.optim.L2(0.01)
    ),
    nn.Optimiser(nn.optim.PolakRibiere(restart=3), nn.optim.Const(0.1)),
]


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(
    "optimiser", OPTIMISERS, ids=[type(x.method).__name__ + str(i) for i, x in enumerate(OPTIMISERS)]
)
def test_small_batches_make_the_updates_of_large_ones(optimiser, engine):
    one, other = network(), network()
    large = train(one, 1, batch=12, optimiser=optimiser, engine=engine)
    small = train(other, 3, batch=4, optimiser=optimiser, engine=engine)
    assert_near(small.loss.reshape(-1, 3).mean(1), large.loss, "float32 sums")
    assert (small.rate.reshape(-1, 3) == large.rate[:, None]).all()
    for path, x in one.variables().items():
        assert_near(other.variables()[path].value, x.value, "float32 sums")
    start = network()
    assert all((x.value != start.variables()[path].value).any() for path, x in other.variables().items())


def test_weights_change_at_the_last_small_batch_alone():
    def weights_after(steps, accumulate):
        model = network()
        train(model, accumulate, steps / 6)
        return bits(model)

    assert weights_after(3, 3) == weights_after(4, 3) == weights_after(5, 3) != weights_after(6, 3)
    assert weights_after(3, 3) != bits(network())


def test_an_update_may_take_batches_of_two_epochs():
    """Four of six batches, then two and two of the next epoch."""
    model, by_hand = network(), network()
    options = {"optimiser": nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Const(0.1)), "order": "given"}
    train(model, 4, 8 / 6, **options)
    rows = np.concatenate([np.arange(16), np.arange(16, 24), np.arange(8)])
    step_of = nn.training_step(by_hand, quadratic, options["optimiser"], (X[:16], Y[:16]), engine="reference")
    step_of(X[rows[:16]], Y[rows[:16]])
    step_of(X[rows[16:]], Y[rows[16:]])
    for path, x in by_hand.variables().items():
        assert_near(model.variables()[path].value, x.value, "float32 sums")


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_run_resumed_between_small_batches_has_the_same_bits(engine, tmp_path):
    whole, parts = network(), network()
    train(whole, 3, 3, engine=engine)
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    for steps in (4, 5, 7, 18):
        train(parts, 3, steps / 6, engine=engine, checkpoint=point)
    assert bits(whole) == bits(parts)


def test_running_statistics_see_every_small_batch():
    norm = nn.BatchNorm(3, decay=0.5)
    model = nn.initialise(nn.Sequential(norm, nn.Linear(3, 2)), 1)
    train(model, 6, 1, order="given")
    mean = np.zeros(3)
    for i in range(0, 24, 4):
        mean = 0.5 * mean + 0.5 * X[i : i + 4].mean(0)
    assert_near(norm.mean.value, mean, "float32 sums")


def test_a_checkpoint_of_another_number_of_small_batches_is_refused(tmp_path):
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    train(network(), 3, 1, checkpoint=point)
    for accumulate in (1, 2):
        with pytest.raises(FormatError, match=f"written with accumulate=3, not {accumulate}"):
            train(network(), accumulate, checkpoint=point)


def test_a_checkpoint_from_before_accumulation_is_read(tmp_path):
    whole, parts = network(), network()
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    train(whole, 1, 2)
    train(parts, 1, 1, checkpoint=point)
    facts = json.loads(point.path.read_text())
    del facts["accumulate"]
    point.path.write_text(json.dumps(facts))
    with pytest.raises(FormatError, match="written with accumulate=1, not 2"):
        train(network(), 2, checkpoint=point)
    train(parts, 1, 2, checkpoint=point)
    assert bits(whole) == bits(parts)


def test_small_batches_that_make_no_update_or_differ_in_size_are_refused():
    with pytest.raises(InputError, match="accumulate is 13 and the run has 12 small batches"):
        train(network(), 13)
    with pytest.raises(InputError, match="accumulate is 2 and the last batch of an epoch has 4 samples instead of 5"):
        nn.train(network(), nn.Loader((X, Y), 5, partial=True), quadratic, accumulate=2, progress=False)
    for wrong in (0, 1.5, True):
        with pytest.raises(InputError, match="accumulate is"):
            train(network(), wrong)


def test_a_last_batch_as_large_as_the_others_may_be_added_up_too():
    """Of a loader that would have smaller ones."""
    one, other = network(), network()
    loader = nn.Loader((X, Y), 4, partial=True)
    nn.train(one, loader, quadratic, accumulate=6, engine="reference", progress=False)
    train(other, 6, 1)
    assert bits(one) == bits(other) != bits(network())
