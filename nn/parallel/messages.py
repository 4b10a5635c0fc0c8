"""What the client and the members of a training tell one another."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph import Record, Runner, SavedFunction, __version__
from cgraph.dist.folders import Shipped
from cgraph.dist.limits import Limits
from cgraph.dist.sockets import Address
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.record import replace
from nn.layer import Layer
from nn.loader import Loader
from nn.losses import Loss
from nn.metrics import Metric
from nn.optim.optimiser import Optimiser
from nn.parallel.sharded_step import halves

Pair = tuple[Runner, Runner]
"""The Functions of gradients and of the update; cells of one name are one cell."""


def facts(function: Runner) -> tuple[str, str]:
    """What members and client have in common: the version of cgraph, and the target of their code."""
    if isinstance(function, SavedFunction):
        return __version__, function.parts.target
    return __version__, getattr(getattr(function.program, "target", None), "name", "no target")


class SavedSource(Record, eq=False):
    """Both Functions as saved folders: a member compiles nothing."""

    gradient: Shipped
    update: Shipped

    def pair(self, threads: int) -> Pair:
        gradient, update = self.gradient.opened(threads), self.update.opened(threads)
        gradient.share_cells(update)  # type: ignore[attr-defined] # what was saved is opened as a SavedFunction
        return gradient, update


class FactorySource(Record, eq=False):
    """Both Functions as each member makes them of a model that it makes, which takes the time to compile them.

    Fields
        model: makes it
        specs: shape and dtype of each array of a shard
        trained: paths of the Parameters to change; None for all trained ones
        others: as `halves` takes them
    """

    model: Callable[[], Layer]
    loss: Loss
    optimiser: Optimiser
    specs: Sequence[tuple[tuple[int, ...], str]]
    shards: int
    targets: int
    trained: Sequence[str] | None
    metrics: Sequence[Metric]
    options: dict[str, Any]

    def pair(self, threads: int) -> Pair:
        model = self.model()
        variables = model.variables()
        trained = None if self.trained is None else {path: variables[path] for path in self.trained}
        samples = [np.broadcast_to(np.zeros((), dtype), shape) for shape, dtype in self.specs]
        settings: dict[str, Any] = {"targets": self.targets, "trained": trained, "metrics": self.metrics}
        engine = self.options["engine"]
        if isinstance(engine, CpuEngine) and not engine.threads:
            engine = replace(engine, threads=threads)
        options = {"threads": threads, **self.options, "engine": engine}
        functions = halves(model, self.loss, self.optimiser, samples, self.shards, **settings, **options)
        return functions.gradient, functions.update


class Job(Record, eq=False):
    """A training, as each member is told of it once.

    Fields
        token: which nobody else knows
        source: of both Functions
        step: of the state that they come with; -1 where the client's must be sent first
        data: the samples, or what makes the loader of them where they are needed
        seed: of random keys
        shards: of a batch
    """

    token: bytes
    source: SavedSource | FactorySource
    step: int
    data: Loader | Callable[[], Loader]
    seed: int
    shards: int
    limits: Limits


class WorkerReady(Record, eq=False):
    """A member has what it needs.

    Fields
        door: where others meet it
        step: of its state
        facts: which must be the client's: the version of cgraph, and the target of the Functions
    """

    door: Address
    step: int
    facts: tuple[str, str]


class StepOrder(Record, eq=False):
    """Steps to go, as one member is told.

    Fields
        round: a number that changes with the members, or when a round was given up
        me: which of them this one is
        doors: of all members
        deal: how many shards each has
        step, last: of the state when the steps begin and when they end
        source: the member that sends its state to those in `behind`
        reports_state: the report has the state
    """

    round: int
    me: int
    doors: Sequence[Address]
    deal: Sequence[int]
    step: int
    last: int
    source: int
    behind: Sequence[int]
    reports_state: bool


class StepReport(Record, eq=False):
    """What has become of an order.

    Fields
        step: of the state now
        results: loss, rate, parts of the loss and sums of metrics of each step that was made
        seconds: for a shard; 0 when there was none
        lost: why the round was given up; empty when it was not
        missing: the member that does not answer; -1 where that is nobody
        digest: of the state, when the round was not given up
        state: arrays by name, where the order says so
    """

    step: int
    results: list[list[np.ndarray]]
    seconds: float
    lost: str
    missing: int
    digest: bytes
    state: dict[str, np.ndarray]
