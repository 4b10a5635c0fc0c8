"""A training step within a budget, from refused to free: the same losses and weights, bit for bit, for ten steps."""

import re

import numpy as np
import pytest

import nn
from cgraph.errors import BudgetError

IMAGE, BATCH, BUDGETS, STEPS = (1, 12, 12), 64, 20, 10


def step_within(budget):
    """A training step of a LeNet with the same first weights each time, and its Vars."""
    model = nn.models.lenet(0, image=IMAGE, classes=4)
    return nn.training_step(
        model, nn.losses.cross_entropy, nn.Optimiser(rate=nn.optim.Cosine(0.002, STEPS)), batch(), budget=budget
    ), model


def batch():
    rng = np.random.default_rng(0)
    return rng.random((BATCH, *IMAGE), "float32"), rng.integers(0, 4, BATCH).astype("int32")


def trained(budget):
    step, model = step_within(budget)
    losses = [step(*batch()) for _ in range(STEPS)]
    return step.function.nbytes, losses, [x.value for x in model.variables().values()]


@pytest.mark.slow
def test_twenty_budgets_give_ten_equal_steps():
    free, *want = trained(None)
    with pytest.raises(BudgetError, match="the least budget") as refused:
        step_within(64)
    least = int(re.search(r"is (\d+) bytes", str(refused.value))[1])
    assert least < free
    for budget in np.linspace(least, free, BUDGETS).astype(int).tolist():
        nbytes, *got = trained(budget)
        assert nbytes <= budget
        np.testing.assert_equal(got, want)
    with pytest.raises(BudgetError):
        step_within(least - 1)


def decoder_step(**options):
    """A step of a small decoder, whose embedding's positions may fail."""
    tokens = np.random.default_rng(0).integers(0, 30, (4, 33))
    model = nn.models.gpt(0, symbols=30, length=32, features=32, heads=2, layers=4)
    step = nn.training_step(model, nn.losses.cross_entropy, None, (tokens[:, :-1], tokens[:, 1:]), **options)
    losses = [step(tokens[:, :-1], tokens[:, 1:])[0] for _ in range(3)]
    return step.function, losses, [x.value for x in model.variables().values()]


def test_a_decoder_learns_the_same_from_values_that_are_computed_again():
    free, *want = decoder_step()
    again, *got = decoder_step(recompute=True)
    np.testing.assert_equal(got, want)
    assert again.nbytes < 0.85 * free.nbytes
    least, *got = decoder_step(budget=again.nbytes)
    np.testing.assert_equal(got, want)
    assert least.nbytes <= again.nbytes


def test_a_step_with_an_embedding_copies_no_weights():
    function, *_ = decoder_step()
    copied = [x for x, source in zip(function.compiled.updated, function.compiled.sources) if not source.op.writes]
    assert all(x.shape == () for x in copied)
