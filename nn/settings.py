"""Settings of a training step and of a whole training run, shared by `nn.train` and `nn.data_parallel`."""

from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from cgraph import InputError, Record, Tolerance
from nn.callbacks import Callback
from nn.checkpoint import Checkpoint
from nn.checks import check_integer, check_kind
from nn.layer import Parameter
from nn.losses import Loss
from nn.metrics import Metric
from nn.optim.optimiser import Optimiser
from nn.stopping import Stopping


class StepSettings(Record, eq=False):
    """Settings of one training step, as `nn.training_step` documents them.

    Fields
        loss: function of predictions and targets
        optimiser: turns gradients into update edges
        targets: number of target arrays, the last ones of a batch
        trained: Parameters to change, by path; None for all trained ones of the model
        metrics: computed from the predictions of the step
        seed: seed of dropout and noise
        accumulate: number of small batches whose gradients make one update
        options: options of ``cgraph.compile``
    """

    loss: Loss
    optimiser: Optimiser = Optimiser()
    targets: int = 1
    trained: dict[str, Parameter] | None = None
    metrics: Sequence[Metric] = ()
    seed: int = 0
    accumulate: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer("seed", self.seed, 0)
        check_integer("accumulate", self.accumulate, 1)
        if isinstance(self.options.get("precision"), Tolerance):
            raise InputError(
                "precision is a Tolerance, whose error is that of one step's loss and weights on its samples; rounding "
                "adds up over the steps of a training. Pass precision='bf16', or leave it out for float32."
            )


class TrainSettings(Record, eq=False):
    """Settings of a training run, as `nn.train` documents them. InputError for a value of the wrong kind.

    Fields
        step: settings of each step
        epochs, validation, stopping, checkpoint, resume, finite, progress, callbacks: as for `nn.train`
    """

    step: StepSettings
    epochs: float = 1.0
    validation: Sequence[np.ndarray] | Callable[[], float] | None = None
    stopping: Stopping | None = None
    checkpoint: Checkpoint | None = None
    resume: bool = True
    finite: bool = True
    progress: bool = True
    callbacks: Sequence[Callback] = ()

    def __post_init__(self) -> None:
        check_kind("checkpoint", self.checkpoint, Checkpoint | None, "an nn.Checkpoint, or None")
        check_kind("stopping", self.stopping, Stopping | None, "nn.Early, nn.Below or another Stopping, or None")
        check_kind("callbacks", self.callbacks, Sequence, "a list of functions of an nn.Epoch")
        for x in self.callbacks:
            check_kind("one of callbacks", x, Callable, "a function of an nn.Epoch")
        check_kind("epochs", self.epochs, Real, "a number of passes over the samples")
        if not 0 <= self.epochs < inf:
            raise InputError(f"epochs is {self.epochs}. Pass a finite number of passes over the samples, at least 0.")

    def total_steps(self, steps_per_epoch: int) -> int:
        """Return the number of steps of the whole run."""
        return round(self.epochs * steps_per_epoch)
