"""A training step in two Functions, with a sum over shards between them.

The first gives everything that is added up over the shards of a batch as one flat array: gradients, running statistics,
the loss, its parts, and what metrics add up. The second takes the sum, and changes weights, slots, statistics and the
step's number. Each shard's share of the batch is a power of two, so that dividing by it rounds nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import DTypeError, InputError, Node, Record, Runner, Var
from nn.layer import Layer, Parameter, initialise
from nn.losses import Loss
from nn.metrics import Metric
from nn.mode import Mode
from nn.optim.optimiser import Optimiser
from nn.step import Gradients, gradients_of

KEY = "random_key"


class Halves(Record, eq=False):
    """Both Functions, and what changes.

    Fields
        gradient: of the arrays of a shard, and a random key where the model draws: the flat array
        update: of the sum over all shards: loss, rate, the loss's parts, and an array for each metric
        state: every Var that changes and is no Parameter, by name
        parts: names of the loss's parts
        predicted: the graph of what the model gives
    """

    gradient: Runner
    update: Runner
    state: dict[str, Var]
    parts: tuple[str, ...]
    predicted: Any


def halves(
    model: Layer,
    loss: Loss,
    optimiser: Optimiser,
    samples: Sequence[np.ndarray],
    shards: int,
    *,
    targets: int = 1,
    trained: dict[str, Parameter] | None = None,
    metrics: Sequence[Metric] = (),
    **options: Any,
) -> Halves:
    """Build and compile both; parameters as of `training_step`.

    Parameters
        samples: one shard of a batch
        shards: how many make a batch, a power of two
    Raises
        DTypeError: what is added up is no float32
        InputError: a Parameter is called as something that the optimiser remembers
    """
    initialise(model, None)  # Parameters are called by their paths
    mode = Mode(training=True)
    settings: dict[str, Any] = {"targets": targets, "trained": trained, "metrics": metrics, "share": 1 / shards}
    graph = gradients_of(model, loss, optimiser, samples, mode, **settings)
    running = {x: node for x, node in mode.updates.items() if x is not mode.key}
    flat = [*graph.gradients, *(node * (1 / shards) for node in running.values()), graph.total, *graph.parts.values()]
    flat += [cg.astype(x, "float32") for x in graph.measured]
    for x in flat:
        if x.dtype != np.float32:
            raise DTypeError(f"{x.name} {x.spec} is added up over shards, which takes float32")
    keys = [mode.key] if mode.key in mode.updates else []
    whole = cg.concat([cg.reshape(x, (x.size,)) for x in flat])
    gradient = cg.compile(whole, [*graph.inputs, *keys], **options)
    update, state = update_half(graph, list(running), flat, optimiser, options)
    return Halves(gradient, update, state, tuple(graph.parts), graph.predicted)


def update_half(
    graph: Gradients, running: list[Var], flat: list[Node], optimiser: Optimiser, options: dict[str, Any]
) -> tuple[Runner, dict[str, Var]]:
    """The second Function, and the Vars that it remembers things in."""
    state, parameters = optimiser.state(graph.parameters), graph.parameters
    names = [x.name for x in (*parameters.values(), *running, *state.values())]
    if len({*names}) != len(names):
        twice = sorted(x for x in {*names} if names.count(x) > 1)
        raise InputError(f"two things that change are called {twice[0]!r}")
    total = Var((sum(x.size for x in flat),), "float32", "sum")
    pieces = cut(total, flat)
    gradients, statistics = ([next(pieces) for _ in xs] for xs in (parameters, running))
    edges, rate = optimiser.updates(parameters, gradients, state)
    edges |= dict(zip(running, statistics))
    loss, *more = pieces
    parts, measured = more[: len(graph.parts)], more[len(graph.parts) :]
    sums = [cg.astype(x, "float64") for x in measured]
    return cg.compile([loss, rate, *parts, *sums], [total], updates=edges, **options), state


def cut(total: Node, parts: Sequence[Node]) -> Iterator[Node]:
    """A flat array as arrays of these shapes."""
    start = 0
    for x in parts:
        yield cg.reshape(total[start : start + x.size], x.shape)
        start += x.size


def key_of(seed: int, step: int, shard: int) -> np.ndarray:
    """The random key of a shard, which depends on nothing else ``uint32 [2]``."""
    return np.random.SeedSequence([seed, step, shard]).generate_state(2, np.uint32)
