"""A training step as one compiled Function: forward pass, loss, gradients, and an update edge for each changed Var."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Unpack

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Node, Record, Var
from cgraph.ir.origin import named
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.storage.cell import assign_all
from cgraph.system.keywords import checks_keywords
from nn.accumulation import adding_edges, mean_edges, sum_variables
from nn.checks import check_integer, check_kind
from nn.layer import Layer, Parameter, check_model
from nn.losses import Loss, check_classes, takes_classes
from nn.metrics import Metric
from nn.mode import Mode
from nn.optim.methods import Method
from nn.optim.optimiser import Optimiser
from nn.settings import StepSettings
from nn.weights import check_assigned

RECOMPUTE = 1 / 16
"""Default of `recompute`: the share of a step's work that may be computed a second time to save bytes."""


class Step(Record):
    """One training step. A call runs the Function once and computes nothing else.

    Fields
        function: maps model inputs and targets to the loss, the learning rate, the loss's parts and the metrics' sums
        parameters: the Parameters that gradients change, by path
        state: every other Var that changes, by name: step number, optimiser slots, random key
        parts: names of the loss's parts; empty when the loss is one number
        metrics: the metrics whose sums each step returns
        check: refuses bad targets before anything changes
    """

    function: Function
    parameters: dict[str, Parameter]
    state: dict[str, Var]
    parts: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    check: Callable[[np.ndarray], None] | None = None

    def __call__(self, *arrays: np.ndarray) -> tuple[Any, ...]:
        """Return the loss before the step, the learning rate, the loss's parts, and an array for each metric."""
        if self.check is not None:
            self.check(arrays[-1])
        return tuple(x if x.ndim else float(x) for x in self.function(*arrays))

    def averages(self) -> dict[Var, np.ndarray]:
        """Return the average of each Parameter; the optimiser has an `averaging`."""
        return {x: self.state[f"{path}/average"].value for path, x in self.parameters.items()}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the Parameters their averages within a ``with`` statement."""
        weights: dict[Var, np.ndarray] = {x: x.value for x in self.parameters.values()}
        assign_all(self.averages())
        try:
            yield
        finally:
            assign_all(weights)


@checks_keywords(COMPILE_KEYWORDS)
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
    **options: Unpack[CompileKeywords],
) -> Step:
    """Build and compile a training step.

    Parameters
        model: its Parameters have values
        loss: function of the model's results and the target arrays; returns one number, or several by name, whose sum
            is minimised and which are reported one by one
        optimiser: an Optimiser, or a method, which gets a rate of 0.001
        samples: one batch: an array for each input of the model, then the targets; only shapes and dtypes count
        targets: number of target arrays; 0 when the model's result is the loss's only operand
        seed: seed of dropout and noise
        trained: Parameters to change, by path; all trained ones of the model by default
        state: state of another step that this one shares: the same training with batches of another size
        metrics: computed from the model's results during training
        options: for ``cgraph.compile``; the default of `recompute` is 1 / 16. ``precision="bf16"`` permits products
            and convolutions of both passes to round their operands to bfloat16; sums, weights, updates and everything
            else stay float32. See docs/half.md
    Raises
        InputError: `precision` is a Tolerance
    """
    settings = StepSettings(loss, Optimiser.of(optimiser), targets, trained, metrics, seed, options=dict(options))
    return build_step(model, settings, samples, state)


def build_step(
    model: Layer,
    settings: StepSettings,
    samples: Sequence[np.ndarray],
    state: dict[str, Var] | None = None,
    adds: bool = False,
) -> Step:
    """Build and compile a training step for batches like `samples`.

    Parameters
        state: as for `training_step`
        adds: the step only adds its gradients to the sums of ``settings.accumulate``
    """
    mode = Mode(training=True, seed=settings.seed)
    if state is not None:
        mode.key = state["random_key"]
    graph = gradients_of(model, settings, samples, mode)
    parameters, optimiser = graph.parameters, settings.optimiser
    if state is None:
        state = optimiser.state(parameters) | (sum_variables(parameters) if settings.accumulate > 1 else {})
    if settings.accumulate == 1:
        edges, rate = optimiser.updates(parameters, graph.gradients, state)
    else:
        build_edges = adding_edges if adds else mean_edges
        edges, rate = build_edges(settings, parameters, graph.gradients, state)
    edges.update(mode.updates)
    if mode.key is not None:
        state["random_key"] = mode.key
    outputs = [graph.total, rate, *graph.parts.values(), *graph.measured]
    function = cg.compile(outputs, graph.inputs, updates=edges, **{"recompute": RECOMPUTE, **settings.options})
    check = partial(check_classes, settings.loss, graph.predicted) if takes_classes(settings.loss) else None
    return Step(function, parameters, state, tuple(graph.parts), tuple(settings.metrics), check)


class Gradients(Record, eq=False):
    """The graph of a training step up to the gradients.

    Fields
        inputs: a Var for each array of a batch
        predicted: the model's results
        total: the number to minimise
        parts: the loss's parts by name; empty when the loss is one number
        measured: the sums of the metrics
        parameters, gradients: the Parameters to change, by path, and the gradient of each
    """

    inputs: list[Var]
    predicted: Any
    total: Node
    parts: dict[str, Node]
    measured: list[Node]
    parameters: dict[str, Parameter]
    gradients: list[Node]


def gradients_of(
    model: Layer, settings: StepSettings, samples: Sequence[np.ndarray], mode: Mode, share: float = 1.0
) -> Gradients:
    """Build forward pass, loss and gradients.

    Parameters
        samples: arrays like those of a batch
        mode: collects update edges, which belong to the step
        share: fraction of the batch that `samples` is; loss, parts and gradients are multiplied by it
    """
    check_model(model)
    check_kind("loss", settings.loss, Callable, "a function of predictions and targets")
    check_kind("trained", settings.trained, Mapping | None, "Parameters by path, or None for all")
    check_integer("targets", settings.targets, 0)
    if settings.targets >= len(samples):
        raise InputError(
            f"targets is {settings.targets} and a batch has {len(samples)} arrays. Put the model's inputs before the "
            "targets, or lower targets=."
        )
    check_assigned(model)
    inputs = [Var(x.shape, model.input_dtype(x.dtype), f"batch{i}") for i, x in enumerate(samples)]
    parameters = model.parameters() if settings.trained is None else settings.trained
    input_count = len(inputs) - settings.targets
    predicted = model(*inputs[:input_count], mode=mode)
    with named("loss"):
        loss_value = settings.loss(predicted, *inputs[input_count:])
    parts = loss_value if isinstance(loss_value, dict) else {}
    error = sum_of(list(parts.values())) if isinstance(loss_value, dict) else loss_value
    penalty = settings.optimiser.penalty(parameters)
    total = error if penalty is None else error + penalty
    if share != 1:
        total, parts = total * share, {name: x * share for name, x in parts.items()}
    gradients = cg.gradient(total, list(parameters.values()))
    measured = [metric.part(predicted, *inputs[input_count:]) for metric in settings.metrics]
    return Gradients(inputs, predicted, total, parts, measured, parameters, gradients)


def sum_of(nodes: list[Node]) -> Node:
    """Return the sum of one node or several, in their order."""
    total = nodes[0]
    for node in nodes[1:]:
        total = total + node
    return total
