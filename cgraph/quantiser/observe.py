"""Ranges of a network's values over samples, collected in Vars by update edges."""

from collections.abc import Sequence

import numpy as np

from cgraph.errors import InputError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import clip, floor, maximum, minimum
from cgraph.ops.leaf import Var
from cgraph.ops.reduce import max as most
from cgraph.ops.reduce import min as least
from cgraph.ops.shape import reshape
from cgraph.ops.take import scatter_add
from cgraph.quantiser.network import Network
from cgraph.quantiser.ranges import BINS, METHODS, Range
from cgraph.running.samples import Samples
from cgraph.system.progress import Tell, with_progress


def ranges_of(network: Network, inputs: Sequence[Var], samples: Samples, method: str, tell: Tell) -> dict[Node, Range]:
    """Return the range of every value that has a scale of its own.

    InputError if a value is not finite.
    """
    nodes = list(dict.fromkeys(network.bytes.values()))
    extremes = limits(nodes, inputs, samples, tell)
    counted = METHODS[method]
    if counted is None:
        return extremes
    spans = {x: spread(limit, method) for x, limit in extremes.items()}
    counts = histograms(spans, inputs, samples, tell)
    return {x: within(counted(counts[x], *spans[x]), extremes[x]) for x in nodes}


def limits(nodes: Sequence[Node], inputs: Sequence[Var], samples: Samples, tell: Tell) -> dict[Node, Range]:
    """Return the smallest and the largest number of each node."""
    updates = {}
    lows, highs = ([Var((), name=f"{end}{i}") for i in range(len(nodes))] for end in ("low", "high"))
    for x, low, high in zip(nodes, lows, highs):
        updates[low.assign(np.inf)] = minimum(low, least(x))
        updates[high.assign(-np.inf)] = maximum(high, most(x))
    run_all(compile((), inputs, updates), samples, "ranges", tell)
    ranges = {x: (low.value.item(), high.value.item()) for x, low, high in zip(nodes, lows, highs)}
    for x, limit in ranges.items():
        if not np.isfinite(limit).all():
            raise InputError(
                f"the samples make {x.name} {x.spec} (made at {x.where}) reach from {limit[0]} to {limit[1]}. "
                "Leave out the samples with such values"
            )
    return ranges


def histograms(spans: dict[Node, Range], inputs: Sequence[Var], samples: Samples, tell: Tell) -> dict[Node, np.ndarray]:
    """Return a histogram of each node's numbers: counts in BINS equal parts of its range."""
    updates, counts = {}, {}
    for i, (x, (low, high)) in enumerate(spans.items()):
        place = clip(floor((x - np.float32(low)) * np.float32(BINS / (high - low))), 0, BINS - 1)
        flat = reshape(place.astype("int64"), (-1,))
        counts[x] = Var((BINS,), "int64", f"counts{i}").assign(np.zeros(BINS, "int64"))
        updates[counts[x]] = scatter_add(counts[x], flat, np.ones(flat.shape, "int64"))
    run_all(compile((), inputs, updates), samples, "histograms", tell)
    return {x: var.value for x, var in counts.items()}


def run_all(function: Function, samples: Samples, stage: str, tell: Tell) -> None:
    for arrays in with_progress(stage, samples, tell):
        function(*arrays)


def spread(limit: Range, method: str) -> Range:
    """Return the range of the histogram: the observed one, or for entropy the symmetric one around 0."""
    low, high = limit
    if method == "entropy":
        low, high = -max(-low, high), max(-low, high)
    return (low, high) if high > low else (low - 1, low + 1)


def within(inner: Range, limit: Range) -> Range:
    """Return a range limited to the observed one."""
    return max(inner[0], limit[0]), min(inner[1], limit[1])
