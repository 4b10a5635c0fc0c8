"""A training step in two Functions, with a sum over shards between them.

The first returns everything that is summed over the shards of a batch as one flat array: gradients, running statistics,
the loss, its parts, and the metrics' sums. The second takes the sum and changes weights, slots, statistics and the
step number. Each shard's share of the batch is a power of two, so multiplying by it does not round.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import DTypeError, InputError, Node, Record, Runner, Var
from nn.layer import Layer, initialise
from nn.mode import Mode
from nn.settings import StepSettings
from nn.step import Gradients, gradients_of

KEY = "random_key"


class Halves(Record, eq=False):
    """Both Functions of a sharded step.

    Fields
        gradient: maps the arrays of a shard, and a random key if the model draws, to the flat array
        update: maps the sum over all shards to loss, rate, the loss's parts, and an array for each metric
        state: every Var that changes and is not a Parameter, by name
        parts: names of the loss's parts
        predicted: node of the model's results
    """

    gradient: Runner
    update: Runner
    state: dict[str, Var]
    parts: tuple[str, ...]
    predicted: Any


def halves(model: Layer, settings: StepSettings, samples: Sequence[np.ndarray], shards: int) -> Halves:
    """Build and compile both Functions.

    Parameters
        samples: one shard of a batch
        shards: shards of a batch, a power of two
    Raises
        DTypeError: a summed value is not float32
        InputError: a Parameter has the name of an optimiser slot
    """
    initialise(model, None)  # names the Parameters by their paths
    mode = Mode(training=True)
    graph = gradients_of(model, settings, samples, mode, 1 / shards)
    running = {x: node for x, node in mode.updates.items() if x is not mode.key}
    flat = [*graph.gradients, *(node * (1 / shards) for node in running.values()), graph.total, *graph.parts.values()]
    flat += [cg.astype(x, "float32") for x in graph.measured]
    for x in flat:
        if x.dtype != np.float32:
            raise DTypeError(f"{x.name} {x.spec} is summed over shards, which needs float32. Cast it with cg.astype.")
    keys = [mode.key] if mode.key in mode.updates else []
    concatenated = cg.concat([cg.reshape(x, (x.size,)) for x in flat])
    gradient = cg.compile(concatenated, [*graph.inputs, *keys], **settings.options)
    update, state = update_half(graph, list(running), flat, settings)
    return Halves(gradient, update, state, tuple(graph.parts), graph.predicted)


def update_half(
    graph: Gradients, running: list[Var], flat: list[Node], settings: StepSettings
) -> tuple[Runner, dict[str, Var]]:
    """Compile the second Function; return it and the optimiser's state.

    Parameters
        running: Vars of running statistics
        flat: the parts of the flat array, in order
    """
    state, parameters = settings.optimiser.state(graph.parameters), graph.parameters
    names = [x.name for x in (*parameters.values(), *running, *state.values())]
    if len({*names}) != len(names):
        twice = sorted(x for x in {*names} if names.count(x) > 1)
        raise InputError(f"a Parameter and a slot of the optimiser are both called {twice[0]!r}. Rename the field.")
    total = Var((sum(x.size for x in flat),), "float32", "sum")
    pieces = split_flat(total, flat)
    gradients, statistics = ([next(pieces) for _ in xs] for xs in (parameters, running))
    edges, rate = settings.optimiser.updates(parameters, gradients, state)
    edges |= dict(zip(running, statistics))
    loss, *more = pieces
    parts, measured = more[: len(graph.parts)], more[len(graph.parts) :]
    sums = [cg.astype(x, "float64") for x in measured]
    return cg.compile([loss, rate, *parts, *sums], [total], updates=edges, **settings.options), state


def split_flat(total: Node, parts: Sequence[Node]) -> Iterator[Node]:
    """Yield the slices of a flat array in the shapes of `parts`."""
    start = 0
    for x in parts:
        yield cg.reshape(total[start : start + x.size], x.shape)
        start += x.size


def key_of(seed: int, step: int, shard: int) -> np.ndarray:
    """Return the random key of a shard, ``uint32 [2]``, which depends on nothing else."""
    return np.random.SeedSequence([seed, step, shard]).generate_state(2, np.uint32)
