"""A training step as one compiled Function: forward, loss, gradients, and an update edge for all that changes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Node, Record, Var
from nn.checks import check_kind, check_whole
from nn.layer import Layer, Parameter
from nn.losses import Loss, check_classes, cross_entropy
from nn.metrics import Metric
from nn.mode import Mode
from nn.optim.methods import Method
from nn.optim.optimiser import Optimiser
from nn.weights import check_assigned

RECOMPUTE = 1 / 16  # of the work of a step, what may be done again for fewer bytes


class Step(Record):
    """One step of training. Calling it runs the Function once: nothing else is computed per step.

    Fields
        function: given samples and what is wanted, returns loss, learning rate, the parts of the loss, and the metrics'
        parameters: what the gradients change
        state: every Var that changes and is no Parameter, by name: step number, slots, random key
        parts: names of the parts of which the loss is the sum; none when it is one number
        metrics: of which the step gives what is to be added up
        check: refuses what is given, before anything changes
    """

    function: Function
    parameters: dict[str, Parameter]
    state: dict[str, Var]
    parts: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    check: Callable[[np.ndarray], None] | None = None

    def __call__(self, *arrays: np.ndarray) -> tuple[Any, ...]:
        """Loss before the step, the rate with which it was made, the loss's parts, and an array for each metric."""
        if self.check is not None:
            self.check(arrays[-1])
        return tuple(x if x.ndim else float(x) for x in self.function(*arrays))


def training_step(
    model: Layer,
    loss: Loss,
    optimiser: Optimiser | Method | None,
    samples: tuple[np.ndarray, ...],
    *,
    targets: int = 1,
    seed: int = 0,
    trained: dict[str, Parameter] | None = None,
    state: dict[str, Var] | None = None,
    metrics: Sequence[Metric] = (),
    **options: Any,
) -> Step:
    """Build and compile the step.

    Parameters
        model: its Parameters have values
        loss: of what the model gives and of the arrays behind its inputs: one number, or several by name, whose sum is
            minimised and which are reported one by one
        optimiser: or its method alone, with a rate of 0.001
        samples: one batch: an array for each input of the model, then what is wanted; only shapes and dtypes count
        targets: how many of them are what is wanted; none when the model's result is the loss's only operand
        seed: of dropout and noise
        trained: Parameters to change, by path; all trained ones of the model by default
        state: another step's, which this one goes on with: the same training with batches of another size
        metrics: of what the model gives while it is trained
        options: for ``cgraph.compile``; `recompute` is 1 / 16, so that what takes one pass to have again need not wait
    """
    check_whole("seed", seed, 0)
    optimiser = Optimiser.of(optimiser)
    mode = Mode(training=True, seed=seed)
    if state is not None:
        mode.key = state["random_key"]
    graph = gradients_of(model, loss, optimiser, samples, mode, targets=targets, trained=trained, metrics=metrics)
    parameters = graph.parameters
    state = optimiser.state(parameters) if state is None else state
    edges, rate = optimiser.updates(parameters, graph.gradients, state)
    edges.update(mode.updates)
    if mode.key is not None:
        state["random_key"] = mode.key
    outputs = [graph.total, rate, *graph.parts.values(), *graph.measured]
    function = cg.compile(outputs, graph.inputs, updates=edges, **{"recompute": RECOMPUTE, **options})
    check = partial(check_classes, loss, graph.predicted) if loss is cross_entropy else None
    return Step(function, parameters, state, tuple(graph.parts), tuple(metrics), check)


class Gradients(Record, eq=False):
    """The graph of a step as far as the gradients.

    Fields
        inputs: a Var for each array of a batch
        predicted: what the model gives
        total: what is minimised
        parts: of the loss by name; none when it is one number
        measured: what the metrics add up
        parameters, gradients: what is changed, by path, and the gradient of each
    """

    inputs: list[Var]
    predicted: Any
    total: Node
    parts: dict[str, Node]
    measured: list[Node]
    parameters: dict[str, Parameter]
    gradients: list[Node]


def gradients_of(
    model: Layer,
    loss: Loss,
    optimiser: Optimiser,
    samples: Sequence[np.ndarray],
    mode: Mode,
    *,
    targets: int = 1,
    trained: dict[str, Parameter] | None = None,
    metrics: Sequence[Metric] = (),
    share: float = 1.0,
) -> Gradients:
    """Build forward, loss and gradients; as `training_step` is told.

    Parameters
        mode: what it collects are edges of the step, too
        share: of these samples in the step: by it loss, its parts and gradients are multiplied
    """
    check_kind("model", model, Layer, "a Layer, with its Parameters")
    check_kind("loss", loss, Callable, "a function of what is predicted and what is wanted")
    check_kind("trained", trained, Mapping | None, "Parameters by path, or None for all")
    check_whole("targets", targets, 0)
    if targets >= len(samples):
        raise InputError(f"targets is {targets}, and a batch has {len(samples)} arrays, the model's inputs first")
    check_assigned(model)
    inputs = [Var(x.shape, x.dtype, f"batch{i}") for i, x in enumerate(samples)]
    parameters = model.parameters() if trained is None else trained
    input_count = len(inputs) - targets
    predicted = model(*inputs[:input_count], mode=mode)
    loss_value = loss(predicted, *inputs[input_count:])
    parts = loss_value if isinstance(loss_value, dict) else {}
    error = sum_of(list(parts.values())) if isinstance(loss_value, dict) else loss_value
    penalty = optimiser.penalty(parameters)
    total = error if penalty is None else error + penalty
    if share != 1:
        total, parts = total * share, {name: x * share for name, x in parts.items()}
    gradients = cg.gradient(total, list(parameters.values()))
    measured = [metric.part(predicted, *inputs[input_count:]) for metric in metrics]
    return Gradients(inputs, predicted, total, parts, measured, parameters, gradients)


def sum_of(nodes: list[Node]) -> Node:
    """The sum of one node or several, in their order."""
    total = nodes[0]
    for node in nodes[1:]:
        total = total + node
    return total
