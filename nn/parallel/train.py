"""data_parallel: `nn.train` over the workers of a dask cluster, with bits that depend on the number of shards alone."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph import InputError, Node
from cgraph.dist.blocks import dask_part
from cgraph.dist.folders import shipped
from cgraph.dist.limits import Limits
from cgraph.dist.sockets import TOKEN_BYTES
from cgraph.dist.tree import check_shards
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.storage.cell import assign_all
from nn.checkpoint import Checkpoint
from nn.history import History
from nn.layer import Layer, Parameter
from nn.loader import Loader
from nn.losses import Loss, check_classes, cross_entropy
from nn.metrics import Metric, metrics_of
from nn.optim.methods import Method
from nn.optim.optimiser import Optimiser
from nn.parallel.messages import FactorySource, Job, SavedSource, facts
from nn.parallel.sharded_step import Halves, halves
from nn.step import Step
from nn.stopping import Stopping
from nn.train import TrainingRun
from nn.validation import validation_check


def data_parallel(
    client: Any,
    model: Layer | Callable[[], Layer],
    data: Loader | Callable[[], Loader],
    loss: Loss = cross_entropy,
    optimiser: Optimiser | Method | None = None,
    *,
    shards: int = 8,
    targets: int = 1,
    epochs: float = 1.0,
    validation: Sequence[np.ndarray] | Callable[[], float] | None = None,
    metrics: Sequence[Metric | Callable[..., Node]] = (),
    stopping: Stopping | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = True,
    finite: bool = True,
    trained: dict[str, Parameter] | None = None,
    seed: int = 0,
    progress: bool = True,
    limits: Limits | None = None,
    **options: Any,
) -> History:
    """Change the model's Parameters so that the loss falls, on all workers of a cluster at once.

    Each step's batch is cut into shards. Workers compute gradients of shards, which are added in one order, and each
    makes the same update. The bits depend on `shards` and on nothing else: not on how many workers there are, which of
    them die, come or are slow. Workers may come and go; the training goes on while there is one.

    Parameters
        client: a ``distributed.Client``; all workers of its cluster take part, up to one for each shard
        model: its Parameters have values; its Functions are compiled here and travel as saved folders. Or a factory,
            a function without arguments that gives the model, for what cannot be saved; each worker compiles then
        data: samples of each step, which are sent to the workers; or what makes the loader where it is called, when
            they should read their samples themselves. ``batch`` is a multiple of `shards`; no ``partial`` batches
        loss: the mean over the samples, of which each shard computes its own
        shards: of a batch, a power of two. Batch norms see a shard, not the batch; their running statistics are
            averaged. Dropout and ``change`` draw other numbers than with another number of shards
        limits: how long members wait for one another
        options: for ``cgraph.compile``; workers use their own number of threads unless told. Without an ``engine`` it
            is the CPU's, for the widest target that runs here and on all workers that are there; who comes later
            and does not run it takes no part. The bits depend on it, as they do in `nn.train`
        others: as for `nn.train`
    Returns
        losses and rates of all steps; the model has the weights
    Raises
        MemberError: no worker is there, or none can take part
        InputError: a batch that cannot be cut into shards
        UnavailableError: dask's distributed is not installed
        LossError, PositionError: as for `nn.train`
    """
    dask_part("distributed")
    network = model if isinstance(model, Layer) else model()
    loader = data if isinstance(data, Loader) else data()
    check_shards(shards, loader.batch)
    if loader.partial and loader.rest:
        raise InputError(f"the last batch of an epoch has {loader.rest} samples; a batch that is partial is not cut")
    measured, optimiser, limits = metrics_of(metrics), Optimiser.of(optimiser), Limits() if limits is None else limits
    sample = loader.shard_at(0, 0, shards)
    if "engine" not in options:
        options["engine"] = common_engine(client, limits, options.get("threads", 0))
    settings = {"targets": targets, "trained": trained, "metrics": measured, **options}
    both = halves(network, loss, optimiser, sample, shards, **settings)
    check_classes(loss, both.predicted, loader.arrays[-1])
    check = validation_check(validation, network, loss, measured, loader.batch, targets, options)
    parameters = trained if trained is not None else network.parameters()
    step = Step(both.update, parameters, both.state, both.parts, measured)  # type: ignore[arg-type]
    run = ParallelRun(
        network, step, None, loader, round(epochs * loader.steps_per_epoch), check, stopping, checkpoint, finite
    )
    if checkpoint is not None and resume:
        run.resume()
    if isinstance(model, Layer):
        source: SavedSource | FactorySource = SavedSource(shipped(both.gradient), shipped(both.update))
    else:
        specs = [(x.shape, str(x.dtype)) for x in sample]
        paths = None if trained is None else list(trained)
        source = FactorySource(model, loss, optimiser, specs, shards, targets, paths, measured, options)
    at = len(run.losses) if isinstance(model, Layer) else -1
    job = Job(os.urandom(TOKEN_BYTES), source, at, data, seed, shards, limits)
    return run.over(client, job, both, progress)


def common_engine(client: Any, limits: Limits, threads: int) -> CpuEngine:
    """The CPU's, with the widest code that runs here and on all workers."""
    return CpuEngine(import_module("nn.parallel.targets").least_target(client, limits.gather), threads)


class ParallelRun(TrainingRun):
    """Training under way on a cluster. Changes: with every step."""

    def over(self, client: Any, job: Job, both: Halves, progress: bool) -> History:
        """All steps that are left, by the workers of a cluster."""
        crew = import_module("nn.parallel.coordinator")
        self.both, self.ahead = both, deque[list[np.ndarray]]()
        self.crew = crew.Crew(client, job, facts(both.update), self.current_state)
        try:
            return self.go(progress)
        finally:
            self.crew.close()

    def current_state(self) -> dict[str, np.ndarray]:
        """The state, as it is here."""
        return {name: x.value for name, x in self.both.update.state.items()}  # type: ignore[attr-defined]

    def stepped(self, number: int) -> tuple[Any, ...]:
        if not self.ahead:
            results, state = self.crew.steps(number - 1, self.reach())
            assign_all({x: state[name] for name, x in self.both.update.state.items()})
            self.ahead.extend(results)
        return tuple(x if x.ndim else float(x) for x in self.ahead.popleft())

    def reach(self) -> int:
        """Steps until there is something to do with the state."""
        count, each = len(self.losses), self.data.steps_per_epoch
        most = min(each - count % each, self.total - count)
        if self.checkpoint is None:
            return most
        if self.checkpoint.when is not None:
            return 1
        due = (k for k in range(1, most) if self.checkpoint.due(count + k, each, 0.0))
        return next(due, most)
