"""Messages between the client and the workers of a training."""

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
from nn.parallel.sharded_step import halves
from nn.settings import StepSettings

Pair = tuple[Runner, Runner]
"""The Functions of gradients and of the update; cells of one name are one cell."""


def facts(function: Runner) -> tuple[str, str]:
    """Return the facts that workers and client must share: the version of cgraph and the target of the code."""
    if isinstance(function, SavedFunction):
        return __version__, function.parts.target
    return __version__, getattr(getattr(function.program, "target", None), "name", "no target")


class SavedSource(Record, eq=False):
    """Both Functions as saved folders: a worker compiles nothing."""

    gradient: Shipped
    update: Shipped

    def pair(self, threads: int) -> Pair:
        """Load both Functions."""
        gradient, update = self.gradient.opened(threads), self.update.opened(threads)
        gradient.share_cells(update)  # type: ignore[attr-defined] # what was saved is opened as a SavedFunction
        return gradient, update


class FactorySource(Record, eq=False):
    """A factory of the model: each worker makes it and compiles both Functions.

    Fields
        model: returns the model
        settings: of the step; `trained` is None
        specs: shape and dtype of each array of a shard
        shards: shards of a batch
        trained: paths of the Parameters to change; None for all trained ones
    """

    model: Callable[[], Layer]
    settings: StepSettings
    specs: Sequence[tuple[tuple[int, ...], str]]
    shards: int
    trained: Sequence[str] | None

    def pair(self, threads: int) -> Pair:
        """Make the model and compile both Functions."""
        model = self.model()
        variables = model.variables()
        trained = None if self.trained is None else {path: variables[path] for path in self.trained}
        samples = [np.broadcast_to(np.zeros((), dtype), shape) for shape, dtype in self.specs]
        settings = replace(self.settings, trained=trained, options=self.options(threads))
        functions = halves(model, settings, samples, self.shards)
        return functions.gradient, functions.update

    def options(self, threads: int) -> dict[str, Any]:
        """Return the options of ``cgraph.compile`` on a worker with `threads` threads."""
        engine = self.settings.options["engine"]
        if isinstance(engine, CpuEngine) and not engine.threads:
            engine = replace(engine, threads=threads)
        return {"threads": threads, **self.settings.options, "engine": engine}


class Job(Record, eq=False):
    """A training, as each worker receives it once.

    Fields
        token: shared secret of the job
        source: of both Functions
        step: step of the state that comes with `source`; -1 when the client must send the state first
        data: the samples, or a function that returns their loader
        seed: seed of random keys
        shards: shards of a batch
        limits: maximum times that workers wait for one another
        trust_network: workers without TLS may be on other machines
    """

    token: bytes
    source: SavedSource | FactorySource
    step: int
    data: Loader | Callable[[], Loader]
    seed: int
    shards: int
    limits: Limits
    trust_network: bool = False


class WorkerReady(Record, eq=False):
    """Report of a worker that is ready to train.

    Fields
        door: address where other workers connect
        step: step of its state
        facts: version of cgraph and target of the Functions, which must equal the client's
    """

    door: Address
    step: int
    facts: tuple[str, str]


class StepOrder(Record, eq=False):
    """Steps to run, as one worker receives them.

    Fields
        round: number that changes with the set of workers, or after a round failed
        me: index of this worker
        doors: addresses of all workers
        deal: number of shards of each worker
        step, last: step of the state when the steps begin and when they end
        source: worker that sends its state to those in `behind`
        behind: workers whose state is not at `step`
        reports_state: the report contains the state
        rate: the part of the state that workers replace before the steps, by name; None for nothing
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
    rate: dict[str, np.ndarray] | None = None


class StepReport(Record, eq=False):
    """Outcome of a StepOrder.

    Fields
        step: step of the state now
        results: loss, rate, loss parts and metric sums of each step that ran
        seconds: time per shard; 0 when none ran
        lost: why the round failed; empty when it did not
        missing: index of the worker that does not answer; -1 for none
        digest: hash of the state, when the round did not fail
        state: arrays by name, if the order says so
    """

    step: int
    results: list[list[np.ndarray]]
    seconds: float
    lost: str
    missing: int
    digest: bytes
    state: dict[str, np.ndarray]
