"""train: run the steps of training, with validation, checkpoints, early stopping and a progress bar.

A resumed run goes on with the same bits as one that was never stopped: everything that changes is in the checkpoint,
and the order of the samples depends on seed and step number alone.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from cgraph import CgraphError, FormatError, InputError, Node
from cgraph.storage.cell import assign_all
from nn.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from nn.checks import check_kind
from nn.history import History
from nn.layer import Layer, Parameter
from nn.loader import Loader
from nn.losses import Loss, cross_entropy
from nn.metrics import Metric, Tally, figures_text, metrics_of
from nn.optim.methods import Method
from nn.optim.optimiser import Optimiser
from nn.progress import progress_bar
from nn.step import Step, training_step
from nn.stopping import Stopping
from nn.validation import Check, validation_check
from nn.weights import fitting_values, values_of

GROUPS = ("parts", "metrics", "validation_metrics")
"""Fields of a History that are figures by name."""


class LossError(CgraphError, ArithmeticError):
    """The loss of a step is not finite."""


def train(
    model: Layer,
    data: Loader,
    loss: Loss = cross_entropy,
    optimiser: Optimiser | Method | None = None,
    *,
    targets: int = 1,
    epochs: float = 1.0,
    validation: Sequence[np.ndarray] | Callable[[], float] | None = None,
    metrics: Sequence[Metric | Callable[..., Node]] = (),
    stopping: Stopping | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = True,
    finite: bool = True,
    trained: dict[str, Parameter] | None = None,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> History:
    """Change the model's Parameters so that the loss falls.

    Parameters
        model: its Parameters have values
        data: the samples of each step
        loss: of what the model gives and what is wanted: one number, or several by name, whose sum is minimised
        optimiser: or its method alone, with a rate of 0.001; Adam by default
        targets: how many of the loader's arrays, the last ones, are what is wanted
        epochs: passes over the samples; a part of one is fine
        validation: arrays like the loader's, whose loss is computed after every epoch, for inference; or a function
            that gives any number that training should lower, such as one less a precision
        metrics: of `nn.metrics`, or functions of what is predicted and wanted that give one number: over the steps of
            every epoch, and over the validation arrays
        stopping: when to stop before; asked after every epoch
        checkpoint: where and when to write checkpoints
        resume: go on from the checkpoint if there is one
        finite: stop at a loss that is not finite; its step is not in a checkpoint
        trained: Parameters to change, by path; all trained ones by default
        seed: of dropout and noise
        progress: show a bar on the error stream
        options: for ``cgraph.compile``
    Returns
        losses and rates of all steps, those before a resumption too
    Raises
        LossError: a loss is not finite
        InputError: something that is given is of another kind, or a number that cannot be
        PositionError: a class that is wanted has no score
    """
    check_kind("data", data, Loader, "an nn.Loader")
    check_kind("checkpoint", checkpoint, Checkpoint | None, "an nn.Checkpoint, or None")
    check_kind("stopping", stopping, Stopping | None, "nn.Early, nn.Below or another Stopping, or None")
    check_kind("epochs", epochs, int | float, "a number of passes")
    if not 0 <= epochs < inf:
        raise InputError(f"epochs is {epochs}; it takes a number of passes >= 0")
    measured = metrics_of(metrics)
    settings: dict[str, Any] = {"targets": targets, "seed": seed, "trained": trained, "metrics": measured, **options}
    step = training_step(model, loss, optimiser, data.at(0), **settings)
    last = None
    if data.partial and data.rest:
        last = training_step(model, loss, optimiser, data.at(data.steps_per_epoch - 1), state=step.state, **settings)
    check = validation_check(validation, model, loss, measured, data.batch, targets, options)
    run = TrainingRun(
        model, step, last, data, round(epochs * data.steps_per_epoch), check, stopping, checkpoint, finite
    )
    if checkpoint is not None and resume:
        run.resume()
    return run.go(progress)


class TrainingRun:
    """Training under way. Changes: with every step.

    Fields
        step, last: a step, and the one at the end of an epoch where its batch is smaller
        losses, rates: of the steps so far
        parts: of the losses, by name
        tally: metrics of the epoch under way
        metrics: of the epochs before it, by name
        checked_at, validation, validation_metrics: steps after which there was a validation, and what it found
        done: stopped before its last step
    """

    def __init__(
        self,
        model: Layer,
        step: Step,
        last: Step | None,
        data: Loader,
        total: int,
        check: Check | None,
        stopping: Stopping | None,
        checkpoint: Checkpoint | None,
        finite: bool,
    ) -> None:
        self.model, self.step, self.last, self.data, self.total = model, step, last or step, data, total
        self.finite = finite
        self.check, self.stopping, self.checkpoint = check, stopping, checkpoint
        self.losses: list[float] = []
        self.rates: list[float] = []
        self.parts: dict[str, list[float]] = {name: [] for name in step.parts}
        self.tally = Tally(step.metrics)
        self.metrics: dict[str, list[np.ndarray]] = {x.name: [] for x in step.metrics}
        self.validation_metrics: dict[str, list[np.ndarray]] = {x.name: [] for x in step.metrics}
        self.checked_at: list[int] = []
        self.validation: list[float] = []
        self.done = False

    def go(self, progress: bool) -> History:
        """All steps that are left."""
        bar = progress_bar(len(self.losses), self.total, progress)
        try:
            while len(self.losses) < self.total and not self.done:
                self.one()
                bar.show(len(self.losses), self.losses[-1], self.rates[-1], figures_text(self.latest()))
        finally:
            bar.close()
        return self.history()

    def one(self) -> None:
        """One step, and what is due after it."""
        number = len(self.losses) + 1
        loss, rate, *more = self.stepped(number)
        if self.finite and not isfinite(loss):
            raise LossError(
                f"the loss of step {number} is {loss}, at a rate of {rate:.3g}; finite=False goes on all the same"
            )
        self.losses.append(loss)
        self.rates.append(rate)
        for name, part in zip(self.step.parts, more):
            self.parts[name].append(part)
        self.tally.add(more[len(self.step.parts) :])
        count = len(self.losses)
        if count % self.data.steps_per_epoch == 0:
            self.end_epoch()
        if self.checkpoint is not None and self.checkpoint.due(count, self.data.steps_per_epoch, loss):
            self.save()

    def stepped(self, number: int) -> tuple[Any, ...]:
        """What step `number` gives, counted from 1."""
        step = self.last if number % self.data.steps_per_epoch == 0 else self.step
        return step(*self.data.at(number - 1))

    def end_epoch(self) -> None:
        for name, figure in self.tally.figures().items():
            self.metrics[name].append(figure)
        self.tally.clear()
        if self.check is not None:
            outcome = self.check()
            self.checked_at.append(len(self.losses))
            self.validation.append(outcome.loss)
            for name, figure in outcome.metrics.items():
                self.validation_metrics[name].append(figure)
        if self.stopping is not None:
            self.done = self.stopping.stops(self.validation or self.epoch_means())

    def latest(self) -> dict[str, np.ndarray]:
        """Metrics of the epoch so far, or of the last one, and of the last validation."""
        figures = self.tally.figures() or last_of(self.metrics)
        return figures | {f"valid {name}": x for name, x in last_of(self.validation_metrics).items()}

    def epoch_means(self) -> list[float]:
        """The mean training loss of each whole epoch."""
        n = self.data.steps_per_epoch
        whole = len(self.losses) // n
        return [float(x) for x in np.reshape(self.losses[: whole * n], (whole, n)).mean(axis=1)]

    def history(self) -> History:
        single, places = np.float32, np.int64
        return History(
            np.array(self.losses, single),
            np.array(self.rates, single),
            np.array(self.checked_at, places),
            np.array(self.validation, single),
            {name: np.array(part, single) for name, part in self.parts.items()},
            {name: np.array(x) for name, x in self.metrics.items()},
            {name: np.array(x) for name, x in self.validation_metrics.items()},
        )

    def save(self) -> None:
        """Write everything that changes."""
        assert self.checkpoint is not None
        arrays = {f"model/{path}": x for path, x in values_of(self.model).items()}
        arrays |= {f"state/{name}": x.value for name, x in self.step.state.items()}
        arrays |= {f"tally/{name}": x for name, x in self.tally.sums.items()}
        history = vars(self.history())
        for group in GROUPS:
            arrays |= {f"{group}/{name}": x for name, x in history.pop(group).items()}
        arrays |= {f"history/{name}": x for name, x in history.items()}
        facts = {"step": len(self.losses), "of": self.total, "done": self.done}
        write_checkpoint(self.checkpoint.path, arrays, facts)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one. FormatError when it is one of another training.

        Weights and all that the optimiser remembers change last and at once.
        """
        assert self.checkpoint is not None
        contents = read_checkpoint(self.checkpoint.path)
        if contents is None:
            return
        arrays, facts = contents
        where = str(self.checkpoint.path)
        state, history, tally = (below(arrays, f"{group}/") for group in ("state", "history", "tally"))
        variables = self.step.state
        if state.keys() != variables.keys() or any(state[name].size != x.size for name, x in variables.items()):
            raise FormatError(f"{where}: was written by another optimiser")
        if not history.keys() >= {"loss", "rate", "checked_at", "validation"}:
            raise FormatError(f"{where}: has no history of a training")
        if below(arrays, "metrics/").keys() != self.metrics.keys():
            raise FormatError(f"{where}: was written with other metrics")
        values = fitting_values(self.model, below(arrays, "model/"), where)
        values |= {x: state[name].reshape(x.shape) for name, x in variables.items()}
        self.losses, self.rates = history["loss"].tolist(), history["rate"].tolist()
        self.checked_at, self.validation = history["checked_at"].tolist(), history["validation"].tolist()
        for group in GROUPS:
            setattr(self, group, {name: list(x) for name, x in below(arrays, f"{group}/").items()})
        self.tally.sums = {name: np.array(x) for name, x in tally.items()}
        self.done = bool(facts.get("done"))
        assign_all(values)


def below(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Those whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def last_of(figures: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """The last figure of each name that has one."""
    return {name: values[-1] for name, values in figures.items() if values}
