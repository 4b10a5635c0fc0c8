"""TrainingRun: the state of a training run, which checkpoints write and read."""

from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any

import numpy as np

from cgraph import CgraphError, FormatError, InputError
from cgraph.storage.cell import assign_all
from nn.batches import BatchReader
from nn.callbacks import Epoch, run_callbacks
from nn.checkpoint import read_checkpoint, write_checkpoint
from nn.history import History
from nn.layer import Layer
from nn.loader import Loader
from nn.metrics import Tally, figures_text
from nn.monitor import Monitor
from nn.optim.plateau import Plateau
from nn.progress import progress_bar
from nn.settings import TrainSettings
from nn.step import Step
from nn.stopping import Early
from nn.validation import Check
from nn.weights import fitting_values, set_values, values_of

GROUPS = ("parts", "metrics", "validation_metrics")
"""Fields of a History that have figures by name."""


class LossError(CgraphError, ArithmeticError):
    """The loss of a step is not finite."""


class TrainingRun:
    """A training run in progress. Changes: with every step.

    Fields
        model, data, settings: as given to `nn.train`
        step, last: the step, and the one at the end of an epoch when its batch is smaller
        adding: the step of a small batch that only adds its gradients; None without accumulation
        check: validates the current weights; None without validation
        total: number of steps of the whole run
        losses, rates: loss and learning rate of each step so far
        parts: the loss's parts of each step so far, by name
        tally: metrics of the current epoch
        metrics: metrics of the epochs before, by name
        checked_at: steps after which there was a validation
        validation, validation_metrics: loss and metrics of each validation
        averages: True if the optimiser averages weights; validation and the best epoch use the averages
        best: weights of the best epoch so far by path; empty unless the stopping rule restores them
        done: stopped before the last step
    """

    def __init__(
        self,
        model: Layer,
        step: Step,
        last: Step | None,
        data: Loader | BatchReader,
        settings: TrainSettings,
        check: Check | None = None,
        adding: Step | None = None,
    ) -> None:
        self.model, self.step, self.last, self.data = model, step, last or step, data
        self.settings, self.check, self.adding = settings, check, adding
        self.total = settings.total_steps(data.steps_per_epoch)
        self.losses: list[float] = []
        self.rates: list[float] = []
        self.parts: dict[str, list[float]] = {name: [] for name in step.parts}
        self.tally = Tally(step.metrics)
        self.metrics: dict[str, list[np.ndarray]] = {x.name: [] for x in step.metrics}
        self.validation_metrics: dict[str, list[np.ndarray]] = {x.name: [] for x in step.metrics}
        self.checked_at: list[int] = []
        self.validation: list[float] = []
        self.best: dict[str, np.ndarray] = {}
        self.done = False
        early = settings.stopping if isinstance(settings.stopping, Early) else None
        self.early = None if early is None else early.monitor()
        self.restores = early is not None and early.restore
        self.averages = settings.step.optimiser.averaging is not None
        self.check_monitors()

    def run(self) -> History:
        """Resume from the checkpoint if `resume` is set, and run all remaining steps."""
        self.resume()
        return self.run_remaining()

    def run_remaining(self) -> History:
        """Run all remaining steps."""
        bar = progress_bar(len(self.losses), self.total, self.settings.progress)
        try:
            while len(self.losses) < self.total and not self.done:
                self.run_step()
                bar.show(len(self.losses), self.losses[-1], self.rates[-1], figures_text(self.latest()))
        finally:
            bar.close()
        if self.best:
            set_values(self.model, self.best, "the best epoch")
        elif self.averages:
            assign_all(self.step.averages())
        return self.history()

    def run_step(self) -> None:
        """Run one step, and the validation and checkpoint that are due after it."""
        number = len(self.losses) + 1
        loss, rate, *more = self.step_outputs(number)
        if self.settings.finite and not isfinite(loss):
            raise LossError(
                f"the loss of step {number} is {loss} at a learning rate of {rate:.3g}. Lower the rate, clip the "
                "gradients, or pass finite=False to continue."
            )
        self.losses.append(loss)
        self.rates.append(rate)
        for name, part in zip(self.step.parts, more):
            self.parts[name].append(part)
        self.tally.add(more[len(self.step.parts) :])
        if len(self.losses) % self.data.steps_per_epoch == 0:
            self.end_epoch()
        if self.checkpoint_due():
            self.save()

    def checkpoint_due(self) -> bool:
        """Return True if a checkpoint is due after the last step."""
        checkpoint, count, each = self.settings.checkpoint, len(self.losses), self.data.steps_per_epoch
        if checkpoint is None:
            return False
        monitor = checkpoint.monitor()
        if monitor is not None:
            return count % each == 0 and self.is_best(monitor)
        return checkpoint.due(count, each, self.losses[-1])

    def step_outputs(self, number: int) -> tuple[Any, ...]:
        """Run step `number`, counted from 1, and return its loss, rate, parts and metric sums."""
        if self.adding is not None and number % self.settings.step.accumulate:
            return self.adding(*self.data.at(number - 1))
        step = self.last if number % self.data.steps_per_epoch == 0 else self.step
        return step(*self.data.at(number - 1))

    def end_epoch(self) -> None:
        """Record the epoch's metrics, validate, apply the stopping rule, change the rate and call the callbacks."""
        for name, figure in self.tally.figures().items():
            self.metrics[name].append(figure)
        self.tally.clear()
        with self.averaged():
            self.validate()
            if self.restores and self.early is not None and self.is_best(self.early):
                self.best = values_of(self.model)
        if self.settings.stopping is not None:
            self.done = self.settings.stopping.stops(self.figures(self.early or Monitor()))
        rate = self.settings.step.optimiser.schedule
        if isinstance(rate, Plateau):
            self.step.state["rate"].assign(np.float32(rate.after(self.figures(rate.monitor()))))
        self.call_callbacks()

    def validate(self) -> None:
        """Validate the model's present weights, if there is a validation."""
        if self.check is not None:
            outcome = self.check()
            self.checked_at.append(len(self.losses))
            self.validation.append(outcome.loss)
            for name, figure in outcome.metrics.items():
                self.validation_metrics[name].append(figure)

    def averaged(self) -> AbstractContextManager[None]:
        """Return a context in which the model has the averaged weights, if the optimiser has an `averaging`."""
        return self.step.averaged() if self.averages else nullcontext()

    def call_callbacks(self) -> None:
        """Call the callbacks; the run is done when one of them returns True."""
        if self.settings.callbacks:
            figures = {name: x[-1] for name, x in self.history().by_epoch().items()}
            count = len(self.losses)
            epoch = Epoch(count // self.data.steps_per_epoch, count, figures, self.model, self.averaged)
            self.done = run_callbacks(tuple(self.settings.callbacks), epoch) or self.done

    def is_best(self, monitor: Monitor) -> bool:
        """Return True if the last epoch is the best so far."""
        figures = self.figures(monitor)
        return bool(figures) and monitor.best(figures) == len(figures) - 1

    def figures(self, monitor: Monitor) -> list[float]:
        """Return the watched figure of each epoch so far; raise InputError if it is not one number."""
        if monitor.metric is None:
            return self.validation or self.epoch_means()
        figures = self.history().by_epoch()[monitor.metric]
        if figures.ndim != 1:
            raise InputError(
                f"{monitor.metric} is an array {list(figures.shape[1:])} in each epoch, and epochs are compared by one "
                "number. Pass another metric."
            )
        return [float(x) for x in figures]

    def check_monitors(self) -> None:
        """Raise InputError unless stopping rule, rate and checkpoint compare figures that the run has."""
        names = ["loss", *self.step.parts, *(x.name for x in self.step.metrics)]
        if self.check is not None:
            names.append("valid loss")
        if self.check is not None and not callable(self.settings.validation):
            names += [f"valid {x.name}" for x in self.step.metrics]
        checkpoint, rate = self.settings.checkpoint, self.settings.step.optimiser.schedule
        plateau = rate.monitor() if isinstance(rate, Plateau) else None
        for monitor in (self.early, plateau, None if checkpoint is None else checkpoint.monitor()):
            if monitor is not None and monitor.metric not in (None, *names):
                raise InputError(
                    f"the metric {monitor.metric!r:.60} does not exist; there are {', '.join(names)}. Pass one of "
                    "them, or add it with metrics= or validation=."
                )

    def latest(self) -> dict[str, np.ndarray]:
        """Return the metrics of the current epoch, or of the last one, and of the last validation."""
        figures = self.tally.figures() or last_of(self.metrics)
        return figures | {f"valid {name}": x for name, x in last_of(self.validation_metrics).items()}

    def epoch_means(self) -> list[float]:
        """Return the mean training loss of each complete epoch."""
        n = self.data.steps_per_epoch
        epochs = len(self.losses) // n
        return [float(x) for x in np.reshape(self.losses[: epochs * n], (epochs, n)).mean(axis=1)]

    def history(self) -> History:
        """Return the history of the steps so far."""
        return History(
            np.array(self.losses, np.float32),
            np.array(self.rates, np.float32),
            np.array(self.checked_at, np.int64),
            np.array(self.validation, np.float32),
            {name: np.array(part, np.float32) for name, part in self.parts.items()},
            {name: np.array(x) for name, x in self.metrics.items()},
            {name: np.array(x) for name, x in self.validation_metrics.items()},
            self.data.steps_per_epoch,
        )

    def save(self) -> None:
        """Write everything that changes to the checkpoint."""
        assert self.settings.checkpoint is not None
        arrays = {f"model/{path}": x for path, x in values_of(self.model).items()}
        arrays |= {f"state/{name}": x.value for name, x in self.step.state.items()}
        arrays |= {f"tally/{name}": x for name, x in self.tally.sums.items()}
        arrays |= {f"best/{path}": x for path, x in self.best.items()}
        history = vars(self.history())
        del history["steps_per_epoch"]
        for group in GROUPS:
            arrays |= {f"{group}/{name}": x for name, x in history.pop(group).items()}
        arrays |= {f"history/{name}": x for name, x in history.items()}
        best = repr(self.early) if self.restores else None
        facts = {"step": len(self.losses), "of": self.total, "done": self.done, "best": best}
        facts["accumulate"] = self.settings.step.accumulate
        write_checkpoint(self.settings.checkpoint.path, arrays, facts)

    def resume(self) -> None:
        """Continue from the checkpoint, if it exists and `resume` is set.

        FormatError when it belongs to another training. Weights and optimiser state change last and at once.
        """
        checkpoint = self.settings.checkpoint
        contents = read_checkpoint(checkpoint.path) if checkpoint is not None and self.settings.resume else None
        if checkpoint is None or contents is None:
            return
        arrays, facts = contents
        self.check_checkpoint(arrays, facts, str(checkpoint.path))
        state, history, tally = (below(arrays, f"{group}/") for group in ("state", "history", "tally"))
        values = fitting_values(self.model, below(arrays, "model/"), str(checkpoint.path))
        values |= {x: state[name].reshape(x.shape) for name, x in self.step.state.items()}
        best = self.best_weights(arrays, facts, str(checkpoint.path))
        self.losses, self.rates = history["loss"].tolist(), history["rate"].tolist()
        self.checked_at, self.validation = history["checked_at"].tolist(), history["validation"].tolist()
        for group in GROUPS:
            figures = below(arrays, f"{group}/")
            setattr(self, group, {name: list(figures[name]) for name in getattr(self, group)})
        self.tally.sums = {name: np.array(x) for name, x in tally.items()}
        self.done, self.best = bool(facts.get("done")), best
        assign_all(values)

    def best_weights(self, arrays: dict[str, np.ndarray], facts: dict[str, Any], source: str) -> dict[str, np.ndarray]:
        """Return copies of a checkpoint's weights of the best epoch. FormatError when another figure selected them."""
        if not self.restores:
            return {}
        weights, steps = below(arrays, "best/"), len(arrays["history/loss"])
        if steps >= self.data.steps_per_epoch and facts.get("best") != repr(self.early):
            raise FormatError(
                f"{source} has the best weights by {facts.get('best')}, and stopping= restores those by {self.early}. "
                "Pass the same nn.Early, resume=False, or another path."
            )
        if weights:
            fitting_values(self.model, weights, source)
        return {path: np.array(x) for path, x in weights.items()}

    def check_checkpoint(self, arrays: dict[str, np.ndarray], facts: dict[str, Any], source: str) -> None:
        """Raise FormatError unless the arrays of a checkpoint belong to a training like this one."""
        state, variables = below(arrays, "state/"), self.step.state
        advice = "Pass resume=False, or another path."
        accumulate = facts.get("accumulate", 1)  # older checkpoints have none
        if accumulate != self.settings.step.accumulate:
            raise FormatError(
                f"{source} was written with accumulate={accumulate}, not {self.settings.step.accumulate}. Pass "
                f"accumulate={accumulate}, resume=False, or another path."
            )
        if state.keys() != variables.keys() or any(state[name].size != x.size for name, x in variables.items()):
            raise FormatError(f"{source} was written by another optimiser. {advice}")
        if not below(arrays, "history/").keys() >= {"loss", "rate", "checked_at", "validation"}:
            raise FormatError(f"{source} has no history of a training. {advice}")
        for group, what in (("parts", "parts of the loss"), ("metrics", "metrics")):
            names, figures = below(arrays, f"{group}/").keys(), getattr(self, group)
            if names != figures.keys():
                raise FormatError(
                    f"{source} was written with other {what}: {', '.join(names) or 'none'} instead of "
                    f"{', '.join(figures) or 'none'}. {advice}"
                )


def below(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with `prefix`, without the prefix."""
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def last_of(figures: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the last figure of each name that has one."""
    return {name: values[-1] for name, values in figures.items() if values}
