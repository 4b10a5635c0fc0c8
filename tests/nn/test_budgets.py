"""A training step within a budget, from refused to free: the same losses and weights, bit for bit, for ten steps."""

import re

import numpy as np
import pytest

import nn
from cgraph.errors import BudgetError

IMAGE, BATCH, BUDGETS, STEPS = (1, 12, 12), 512, 20, 10


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
