"""Gradient accumulation: Vars add up the gradients of several small batches, and one update takes their mean."""

from collections.abc import Sequence

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, Var
from nn.batches import Batches
from nn.layer import Parameter
from nn.loader import Loader
from nn.settings import StepSettings

Edges = tuple[dict[Var, Node], Node]


def sum_variables(parameters: dict[str, Parameter]) -> dict[str, Var]:
    """Return a Var for each sum of gradients, by name; all are zero."""
    names = {path: f"{path}/sum" for path in parameters}
    return {
        names[path]: Var(x.shape, x.dtype, names[path]).assign(np.zeros(x.shape, x.dtype))
        for path, x in parameters.items()
    }


def adding_edges(
    settings: StepSettings, parameters: dict[str, Parameter], gradients: Sequence[Node], state: dict[str, Var]
) -> Edges:
    """Return the update edges of a small batch before the last of an update, and the rate of that update."""
    sums = [state[f"{path}/sum"] for path in parameters]
    rate = settings.optimiser.schedule.current(cg.astype(state["step"], "float32"), state)
    return {x: x + gradient for x, gradient in zip(sums, gradients)}, rate


def mean_edges(
    settings: StepSettings, parameters: dict[str, Parameter], gradients: Sequence[Node], state: dict[str, Var]
) -> Edges:
    """Return the update edges of the last small batch of an update, which sets the sums to zero, and the rate."""
    sums = [state[f"{path}/sum"] for path in parameters]
    means = [(x + gradient) * (1 / settings.accumulate) for x, gradient in zip(sums, gradients)]
    edges, rate = settings.optimiser.updates(parameters, means, state)
    return edges | {x: cg.Const(np.zeros(x.shape, x.dtype)) for x in sums}, rate


def check_accumulation(accumulate: int, data: Loader | Batches, steps: int) -> None:
    """Raise InputError unless the small batches of a run have one size and make at least one update."""
    if accumulate > 1 and isinstance(data, Loader) and data.partial and data.rest:
        raise InputError(
            f"accumulate is {accumulate} and the last batch of an epoch has {data.rest} samples instead of "
            f"{data.batch}, whose gradients would count too much. Make the Loader with partial=False."
        )
    if 0 < steps < accumulate:
        raise InputError(
            f"accumulate is {accumulate} and the run has {steps} small batches, which make no update. Lower "
            "accumulate=, or raise epochs=."
        )
