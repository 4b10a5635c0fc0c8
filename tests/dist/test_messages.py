"""Sources of a training: what a worker compiles, and the facts that workers and client share."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.version import __version__
from nn.losses import quadratic
from nn.parallel.messages import FactorySource, facts
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
