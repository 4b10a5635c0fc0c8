"""Options for cgraph.compile reach every Function that a facade of nn compiles."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.parallel.sharded_step import halves
from nn.settings import StepSettings
from tests.nn.support import draw

OPTIONS = {"engine": "reference", "passes": False}
X, Y = draw(10, 4), np.arange(10) % 3


def network():
    return nn.initialise(nn.Sequential(nn.Input((4,)), nn.Linear(4, 3)), 0)


def train(**options):
    nn.train(network(), nn.Loader((X, Y), 4), validation=(X, Y), progress=False, **options)


def train_with_a_rest(**options):
    nn.train(network(), nn.Loader((X, Y), 4, partial=True), progress=False, **options)


def accumulate(**options):
    nn.train(network(), nn.Loader((X, Y), 4), accumulate=2, progress=False, **options)


def generate(**options):
    nn.Generator(nn.models.gpt(0, symbols=5, length=8, features=4, heads=2, layers=1), **options)


def step(**options):
    nn.training_step(network(), nn.losses.cross_entropy, None, (X, Y), **options)


def sharded(**options):
    halves(network(), StepSettings(nn.losses.cross_entropy, options=options), (X, Y), 1)


FACADES = {
    "compile": (1, lambda **options: nn.compile(network(), **options)),
    "compile unfrozen": (1, lambda **options: nn.compile(network(), frozen=False, **options)),
    "training_step": (1, step),
    "train and validate": (3, train),
    "train with a smaller last batch": (2, train_with_a_rest),
    "train with accumulation": (2, accumulate),
    "Generator": (2, generate),
    "both halves of a sharded step": (2, sharded),
}
"""The number of Functions, and a call with options."""


@pytest.mark.parametrize("name", FACADES)
def test_every_function_is_compiled_with_the_options_of_the_call(name, monkeypatch):
    count, facade = FACADES[name]
    calls, compiled = [], cg.compile

    def recorded(*args, **options):
        calls.append(options)
        return compiled(*args, **options)

    monkeypatch.setattr(cg, "compile", recorded)
    facade(**OPTIONS)
    assert len(calls) == count
    assert all(options[key] == value for options in calls for key, value in OPTIONS.items())
