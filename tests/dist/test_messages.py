"""Sources of a training: what a worker compiles, and the facts that workers and client share."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.version import __version__
from nn.losses import quadratic
from nn.parallel.messages import FactorySource, SavedSource, facts
from nn.settings import StepSettings


def options(threads: int, **own):
    settings = StepSettings(quadratic, options=own)
    return FactorySource(lambda: None, settings, [], 1, None).options(threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_engine_without_a_number_of_threads_has_the_workers(threads):
    own = options(threads, engine=CpuEngine("portable", poison=True), order="depth_first")
    assert own["engine"] == CpuEngine("portable", threads, poison=True)
    assert (own["threads"], own["order"]) == (threads, "depth_first")


@pytest.mark.parametrize("engine", [CpuEngine(threads=2), "reference"], ids=str)
def test_a_number_of_threads_that_was_asked_for_and_other_engines_stay(engine):
    assert options(3, engine=engine)["engine"] == engine


def test_facts_are_the_version_and_the_target_of_the_code():
    x = cg.Var((2,), name="x")
    assert facts(cg.compile(x + 1, x, engine=CpuEngine("portable"))) == (__version__, "portable")
    assert facts(cg.compile(x + 1, x, engine="reference")) == (__version__, "no target")


@pytest.mark.parametrize("trained", [None, ["bias"], ["bias", "weight"]], ids=str)
def test_a_factory_makes_functions_of_a_shard_that_change_the_named_parameters(trained):
    """The loss of a shard is its share of the whole."""
    model = nn.initialise(nn.Linear(3, 2), 0)
    specs = [((4, 3), "float32"), ((4, 2), "float64")]
    settings = StepSettings(quadratic, nn.Optimiser(nn.optim.RMSprop()), options={"engine": "reference"})
    gradient, update = FactorySource(lambda: model, settings, specs, 8, trained).pair(1)
    assert [(x.shape, x.dtype) for x in gradient.inputs] == [((4, 3), np.float32), ((4, 2), np.float32)]
    changed = trained or ["weight", "bias"]
    assert {x.name for x in update.updates} == {"step", *changed, *(f"{path}/squares" for path in changed)}
    x, y = np.ones((4, 3), "f4"), np.zeros((4, 2), "f4")
    (flat,) = gradient(x, y)
    assert flat[0] * 8 == nn.losses.quadratic(model(cg.Const(x)), cg.Const(y)).eval()
    assert flat.size == 1 + sum(model.variables()[path].size for path in changed)


def test_threads_that_were_asked_for_stay():
    for own, threads in (({}, 3), ({"threads": 2}, 2)):
        settings = StepSettings(quadratic, options={"engine": "reference", **own})
        assert FactorySource(lambda: None, settings, [], 1, None).options(3)["threads"] == threads


def test_without_names_the_parameters_that_are_trained_change_and_no_other():
    """Running statistics and frozen scales are none of them."""
    model = nn.initialise(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm(2, frozen=True)), 0)
    settings = StepSettings(quadratic, nn.Optimiser(nn.optim.GradientDescent()), options={"engine": "reference"})
    _, update = FactorySource(lambda: model, settings, [((4, 3), "float32"), ((4, 2), "float32")], 2, None).pair(1)
    assert {x.name for x in update.updates} == {"step", "parts.0.weight", "parts.0.bias"}


def test_both_saved_functions_have_the_threads_of_the_worker_and_one_set_of_cells():
    class Saved:
        def __init__(self, name):
            self.name, self.calls = name, []

        def opened(self, threads):
            self.calls.append(threads)
            return self

        def share_cells(self, other):
            self.calls.append(other)

    first, second = Saved("gradient"), Saved("update")
    assert SavedSource(first, second).pair(5) == (first, second)
    assert first.calls == [5, second] and second.calls == [5]
