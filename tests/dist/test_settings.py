"""Each setting that data_parallel shares with nn.train reaches the run, and the others reach the job of the workers."""

import inspect

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.dist.limits import Limits
from cgraph.engine.cpu.engine import CpuEngine
from nn import optim
from nn.parallel import targets
from nn.parallel import train as parallel
from tests.nn.support import draw

pytest.importorskip("distributed", reason="distributed is not installed")


def quadratic(predictions, targets):
    return cg.mean(cg.square(predictions - targets))


def settings():
    """A value for each option of `nn.train`, none of them the default."""
    network = nn.initialise(nn.Sequential(nn.Input((4,)), nn.Linear(4, 3)), 0)
    return network, {
        "loss": quadratic,
        "optimiser": nn.Optimiser(optim.Adam(), rate=0.3),
        "targets": 2,
        "trained": dict(list(network.parameters().items())[:1]),
        "metrics": [nn.metrics.accuracy()],
        "seed": 5,
        "epochs": 2.5,
        "validation": lambda: 1.0,
        "stopping": nn.Below(0.1),
        "checkpoint": nn.Checkpoint("somewhere.json"),
        "resume": False,
        "finite": False,
        "progress": False,
        "callbacks": [print],
    }


def captured(monkeypatch, options):
    """Return the arguments with which data_parallel makes the run and the job."""
    seen = {}

    class Run:
        losses = ()

        def run_on(self, client, job, functions):
            seen.update(client=client, job=job)

    def make(network, loader, settings, shards):
        seen.update(network=network, loader=loader, settings=settings, shards=shards)
        return Run(), None

    monkeypatch.setattr(parallel, "resumed_run", make)
    network, loader = options.pop("network"), nn.Loader((draw(16, 4), draw(16, 3)), 8)
    parallel.data_parallel("client", lambda: network, loader, engine="reference", **options)
    return seen, network, loader


def test_every_setting_reaches_the_run(monkeypatch):
    network, options = settings()
    shared = inspect.signature(nn.train).parameters.keys() & inspect.signature(nn.data_parallel).parameters.keys()
    assert options.keys() == shared - {"model", "data", "options"}
    seen, network, loader = captured(monkeypatch, {"network": network, **options})
    assert seen["network"] is network and seen["loader"] is loader and seen["shards"] == 8
    run = seen["settings"]
    for name, value in options.items():
        held = getattr(run.step if hasattr(run.step, name) else run, name)
        assert (list(held) if name in ("metrics", "callbacks") else held) == value, name
    assert run.step.options == {"engine": "reference"}


def test_shards_limits_and_trust_reach_the_job(monkeypatch):
    network, options = settings()
    limits = Limits(step=7.0)
    more = {"shards": 4, "limits": limits, "trust_network": True}
    seen, network, loader = captured(monkeypatch, {"network": network, **options, **more})
    job = seen["job"]
    assert seen["client"] == "client" and seen["shards"] == job.shards == 4
    assert job.limits is limits and job.trust_network is True and job.seed == 5 and job.data is loader
    assert job.source.trained == list(options["trained"])
    assert [np.prod(shape) for shape, _ in job.source.specs] == [8, 6]


def test_the_common_engine_is_for_the_target_of_those_that_answer_in_time(monkeypatch):
    calls = []
    monkeypatch.setattr(targets, "least_target", lambda *args: calls.append(args) or "portable")
    engine = parallel.common_engine("client", Limits(gather=7.0), 3)
    assert engine == CpuEngine("portable", 3, tiles=False) and calls == [("client", 7.0)]


@pytest.mark.parametrize(("options", "threads"), [({}, 0), ({"threads": 3}, 3)])
def test_without_an_engine_the_workers_have_the_common_one(options, threads, monkeypatch):
    calls = []
    monkeypatch.setattr(parallel, "common_engine", lambda *args: calls.append(args) or "reference")
    network, limits = nn.initialise(nn.Linear(4, 3), 0), Limits(step=7.0)
    seen = []
    monkeypatch.setattr(
        parallel, "resumed_run", lambda network, loader, settings, shards: seen.append(settings) or [][0]
    )
    with pytest.raises(IndexError):
        parallel.data_parallel("client", network, nn.Loader((draw(16, 4), draw(16, 3)), 8), limits=limits, **options)
    assert calls == [("client", limits, threads)]
    assert seen[0].step.options == {"engine": "reference", **options}
