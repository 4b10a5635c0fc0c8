"""A training step as one compiled Function: forward, loss, gradients, and an update edge for all that changes."""

from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Function, Record, Var
from nn.layer import Layer, Parameter
from nn.losses import Loss
from nn.mode import Mode
from nn.optim.optimiser import Optimiser
from nn.weights import check_assigned


class Step(Record):
    """One step of training. Calling it runs the Function once: nothing else is computed per step.

    Fields
        function: given samples and what is wanted, returns loss and learning rate
        parameters: what the gradients change
        state: every Var that changes and is no Parameter, by name: step number, slots, random key
    """

    function: Function
    parameters: dict[str, Parameter]
    state: dict[str, Var]

    def __call__(self, *arrays: np.ndarray) -> tuple[float, float]:
        """Loss before the step, and the rate with which it was made."""
        loss, rate = self.function(*arrays)
        return float(loss), float(rate)


def training_step(
    model: Layer,
    loss: Loss,
    optimiser: Optimiser,
    samples: tuple[np.ndarray, ...],
    *,
    seed: int = 0,
    trained: dict[str, Parameter] | None = None,
    **options: Any,
) -> Step:
    """Build and compile the step.

    Parameters
        model: its Parameters have values
        loss: of what the model gives and of the last array
        samples: one batch: an array for each input of the model, then what is wanted; only shapes and dtypes count
        seed: of dropout and noise
        trained: Parameters to change, by path; all trained ones of the model by default
        options: for ``cgraph.compile``
    """
    check_assigned(model)
    mode = Mode(training=True, seed=seed)
    inputs = [Var(x.shape, x.dtype, f"batch{i}") for i, x in enumerate(samples)]
    parameters = model.parameters() if trained is None else trained
    error = loss(model(*inputs[:-1], mode=mode), inputs[-1])
    penalty = optimiser.penalty(parameters)
    total = error if penalty is None else error + penalty
    gradients = cg.gradient(total, list(parameters.values()))
    state = optimiser.state(parameters)
    edges, rate = optimiser.updates(parameters, gradients, state)
    edges.update(mode.updates)
    if mode.key is not None:
        state["random_key"] = mode.key
    function = cg.compile([total, rate], inputs, updates=edges, **options)
    return Step(function, parameters, state)
