"""data_parallel: `nn.train` over the workers of a dask cluster; its bits depend only on the number of shards."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Unpack

import numpy as np

from cgraph import InputError, Node
from cgraph.dist.blocks import dask_part
from cgraph.dist.folders import ship
from cgraph.dist.limits import Limits
from cgraph.dist.sockets import TOKEN_BYTES
from cgraph.dist.tree import check_shards
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.record import replace
from cgraph.storage.cell import assign_all
from cgraph.system.keywords import checks_keywords
from nn.callbacks import Callback
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
from nn.settings import StepSettings, TrainSettings
from nn.step import Step
from nn.stopping import Stopping
from nn.training_run import TrainingRun
from nn.validation import validation_check


@checks_keywords(COMPILE_KEYWORDS)
def data_parallel(
    client: Any,
    model: Layer | Callable[[], Layer],
    data: Loader | Callable[[], Loader],
    loss: Loss = cross_entropy,
    optimiser: Optimiser | Method | None = None,
    *,
    shards: int = 8,
    limits: Limits | None = None,
    targets: int = 1,
    trained: dict[str, Parameter] | None = None,
    metrics: Sequence[Metric | Callable[..., Node]] = (),
    seed: int = 0,
    epochs: float = 1.0,
    validation: Sequence[np.ndarray] | Callable[[], float] | None = None,
    stopping: Stopping | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = True,
    finite: bool = True,
    progress: bool = True,
    callbacks: Sequence[Callback] = (),
    trust_network: bool = False,
    **options: Unpack[CompileKeywords],
) -> History:
    """Change the model's Parameters to lower the loss, on all workers of a cluster at once.

    Each step's batch is cut into shards. Workers compute the gradients of shards, which are added in a fixed order, and
    every worker makes the same update. The bits depend on `shards` and on nothing else: not on how many workers there
    are, nor on which of them die, join or are slow. Training continues while one worker is left.

    Parameters
        client: a ``distributed.Client``; all workers of its cluster take part, at most one for each shard
        model: its Parameters have values; its Functions are compiled here and sent as saved folders. Or a factory, a
            function without arguments that returns a model that cannot be saved; then each worker compiles it
        data: the samples, which are sent to the workers; or a function that returns the loader, which each worker calls
            to read samples itself. ``batch`` is a multiple of `shards`; ``partial`` batches are not supported
        loss: the mean over the samples; each shard computes its own
        shards: shards of a batch, a power of two. Batch norms see a shard instead of the batch; their running
            statistics are averaged. Dropout and ``change`` draw other numbers than with another number of shards
        limits: maximum times that workers wait for one another
        trust_network: workers without TLS may be on other machines, where others on the network can read the samples
            and the weights, and send wrong ones
        options: for ``cgraph.compile``; workers use their own number of threads by default. The default ``engine`` is
            the CPU's, for the widest target that runs here and on all present workers; a worker that joins later and
            does not run that target is refused. The bits depend on the target, as they do in `nn.train`
        others: as for `nn.train`; there is no `accumulate`, because shards already are small batches
    Returns
        losses and rates of all steps; the model has the new weights
    Raises
        MemberError: no worker is present, or none can take part; with the reason of each
        InputError: the batch cannot be cut into shards
        UnavailableError: dask's distributed is not installed
        LossError, PositionError: as for `nn.train`
    """
    dask_part("distributed")
    network = model if isinstance(model, Layer) else model()
    loader = data if isinstance(data, Loader) else data()
    check_batches(loader, shards)
    limits = Limits() if limits is None else limits
    if "engine" not in options:
        options["engine"] = common_engine(client, limits, options.get("threads", 0))
    step_settings = StepSettings(
        loss, Optimiser.of(optimiser), targets, trained, metrics_of(metrics), seed, options=dict(options)
    )
    settings = TrainSettings(
        step_settings, epochs, validation, stopping, checkpoint, resume, finite, progress, callbacks
    )
    run, functions = resumed_run(network, loader, settings, shards)
    if isinstance(model, Layer):
        source: SavedSource | FactorySource = SavedSource(ship(functions.gradient), ship(functions.update))
        state_step = len(run.losses)
    else:
        source, state_step = factory_source(model, step_settings, loader, shards), -1
    job = Job(os.urandom(TOKEN_BYTES), source, state_step, data, seed, shards, limits, trust_network)
    return run.run_on(client, job, functions)


def resumed_run(network: Layer, loader: Loader, settings: TrainSettings, shards: int) -> "tuple[ParallelRun, Halves]":
    """Return the run, at the step of its checkpoint if there is one, and both halves of its step."""
    functions = halves(network, settings.step, loader.shard_at(0, 0, shards), shards)
    if isinstance(loader.arrays[-1], np.ndarray):
        check_classes(settings.step.loss, functions.predicted, loader.arrays[-1])
    check = validation_check(network, settings, loader.batch)
    run = ParallelRun(network, step_of(network, functions, settings.step), None, loader, settings, check)
    run.resume()
    return run, functions


def check_batches(loader: Loader, shards: int) -> None:
    """Raise InputError unless every batch can be cut into shards."""
    check_shards(shards, loader.batch)
    if loader.partial and loader.rest:
        raise InputError(
            f"the last batch of an epoch has {loader.rest} samples instead of {loader.batch}, which cannot be cut into "
            f"{shards} shards. Make the Loader with partial=False."
        )


def step_of(model: Layer, functions: Halves, settings: StepSettings) -> Step:
    """Return the update half as a Step, for its names and state."""
    parameters = settings.trained if settings.trained is not None else model.parameters()
    metrics = tuple(settings.metrics)
    return Step(functions.update, parameters, functions.state, functions.parts, metrics)  # type: ignore[arg-type]


def factory_source(model: Callable[[], Layer], settings: StepSettings, loader: Loader, shards: int) -> FactorySource:
    """Return the source for workers that make the model themselves."""
    specs = [(x.shape, str(x.dtype)) for x in loader.shard_at(0, 0, shards)]
    paths = None if settings.trained is None else list(settings.trained)
    return FactorySource(model, replace(settings, trained=None), specs, shards, paths)


def common_engine(client: Any, limits: Limits, threads: int) -> CpuEngine:
    """Return the CPU engine for the widest target that runs here and on all workers."""
    return CpuEngine(import_module("nn.parallel.targets").least_target(client, limits.gather), threads, tiles=False)


class ParallelRun(TrainingRun):
    """A training run on a cluster. Changes: with every step.

    Fields
        functions: both halves of the step
        coordinator: runs steps on the workers
        pending: outputs of steps that ran but are not recorded yet
    """

    def run_on(self, client: Any, job: Job, functions: Halves) -> History:
        """Run all remaining steps on the workers of a cluster."""
        self.functions, self.pending = functions, deque[list[np.ndarray]]()
        coordinator = import_module("nn.parallel.coordinator").Coordinator
        self.coordinator = coordinator(client, job, facts(functions.update), self.current_state)
        try:
            return self.run_remaining()
        finally:
            self.coordinator.close()

    def current_state(self) -> dict[str, np.ndarray]:
        """Return the state of the client, by name."""
        return {name: x.value for name, x in self.functions.update.state.items()}  # type: ignore[attr-defined]

    def step_outputs(self, number: int) -> tuple[Any, ...]:
        if not self.pending:
            results, state = self.coordinator.steps(number - 1, self.steps_until_due(), self.current_rate())
            assign_all({x: state[name] for name, x in self.functions.update.state.items()})
            self.pending.extend(results)
        return tuple(x if x.ndim else float(x) for x in self.pending.popleft())

    def current_rate(self) -> dict[str, np.ndarray]:
        """Return the rate by its name in the state, if the client changes it between epochs (`nn.optim.Plateau`)."""
        return {name: self.step.state[name].value for name in self.settings.step.optimiser.schedule.state()}

    def steps_until_due(self) -> int:
        """Return the number of steps until a validation, a checkpoint or the end needs the state."""
        count, each, checkpoint = len(self.losses), self.data.steps_per_epoch, self.settings.checkpoint
        most = min(each - count % each, self.total - count)
        if checkpoint is None:
            return most
        if checkpoint.when is not None:
            return 1
        return next((k for k in range(1, most) if checkpoint.due(count + k, each, 0.0)), most)
