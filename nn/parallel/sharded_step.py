"""A training step in two Functions, with a sum over shards between them.

The first returns everything that is summed over the shards of a batch: gradients, running statistics, the loss, its
parts, and the metrics' sums. The second takes the sums and changes weights, slots, statistics and the step number.
Each shard's share of the batch is a power of two, so multiplying by it does not round.

What is summed comes in pieces, flat arrays of whole values, so that the sum of one piece can start while later ones are
computed. Their order is that in which backpropagation completes them: the forward pass's values first, then the
gradients of the Parameters from the last to the first. It depends only on the model, so all workers share it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import DTypeError, InputError, Node, Record, Runner, Var
from nn.layer import Layer, initialise
from nn.mode import Mode
from nn.settings import StepSettings
from nn.step import Gradients, gradients_of

KEY = "random_key"
PIECES = 8  # most pieces
LEAST_ELEMENTS = 1 << 16  # of a piece: the latency of a sum costs less than moving 256 KiB


class Halves(Record, eq=False):
    """Both Functions of a sharded step.

    Fields
        gradient: maps the arrays of a shard, and a random key if the model draws, to the pieces
        update: maps the sums of the pieces over all shards to loss, rate, the loss's parts, and an array for each
            metric
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
    values = [graph.total, *graph.parts.values(), *(cg.astype(x, "float32") for x in graph.measured)]
    values += [node * (1 / shards) for node in running.values()]
    values += reversed(graph.gradients)
    for x in values:
        if x.dtype != np.float32:
            raise DTypeError(f"{x.name} {x.spec} is summed over shards, which needs float32. Cast it with cg.astype.")
    keys = [mode.key] if mode.key in mode.updates else []
    pieces = in_pieces(values)
    concatenated = [cg.concat([cg.reshape(x, (x.size,)) for x in piece]) for piece in pieces]
    gradient = cg.compile(concatenated, [*graph.inputs, *keys], **settings.options)
    update, state = update_half(graph, list(running), pieces, settings)
    return Halves(gradient, update, state, tuple(graph.parts), graph.predicted)


def in_pieces(values: Sequence[Node]) -> list[list[Node]]:
    """Return values in order as pieces of about equal sizes."""
    least = max(sum(x.size for x in values) / PIECES, LEAST_ELEMENTS)
    pieces: list[list[Node]] = [[]]
    for x in values:
        if sum(y.size for y in pieces[-1]) >= least:
            pieces.append([])
        pieces[-1].append(x)
    return pieces


def update_half(
    graph: Gradients, running: list[Var], pieces: list[list[Node]], settings: StepSettings
) -> tuple[Runner, dict[str, Var]]:
    """Compile the second Function; return it and the optimiser's state.

    Parameters
        running: Vars of running statistics
        pieces: the values of each piece, in order: those of the loss and of the metrics, statistics, gradients
    """
    state, parameters = settings.optimiser.state(graph.parameters), graph.parameters
    names = [x.name for x in (*parameters.values(), *running, *state.values())]
    if len({*names}) != len(names):
        twice = sorted(x for x in {*names} if names.count(x) > 1)
        raise InputError(f"a Parameter and a slot of the optimiser are both called {twice[0]!r}. Rename the field.")
    totals = [Var((sum(x.size for x in piece),), "float32", f"sum{i}") for i, piece in enumerate(pieces)]
    values = chain.from_iterable(map(split_flat, totals, pieces))
    loss, parts, measured, statistics = (
        list(islice(values, n)) for n in (1, len(graph.parts), len(graph.measured), len(running))
    )
    edges, rate = settings.optimiser.updates(parameters, [*values][::-1], state)
    edges |= dict(zip(running, statistics))
    sums = [cg.astype(x, "float64") for x in measured]
    return cg.compile([*loss, rate, *parts, *sums], totals, updates=edges, **settings.options), state


def split_flat(total: Node, parts: Sequence[Node]) -> Iterator[Node]:
    """Yield the slices of a flat array in the shapes of `parts`."""
    start = 0
    for x in parts:
        yield cg.reshape(total[start : start + x.size], x.shape)
        start += x.size


def key_of(seed: int, step: int, shard: int) -> np.ndarray:
    """Return the random key of a shard, ``uint32 [2]``, which depends on nothing else."""
    return np.random.SeedSequence([seed, step, shard]).generate_state(2, np.uint32)
