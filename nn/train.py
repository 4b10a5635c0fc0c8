"""train: the steps of training, with validation, checkpoints, early stopping and a progress bar.

A resumed run continues with the same bits as one that was never stopped: the checkpoint has everything that changes,
and the order of the samples depends only on seed and step number.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Unpack

import numpy as np

from cgraph import Node
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.system.keywords import checks_keywords
from nn.accumulation import check_accumulation
from nn.batches import Batches, BatchReader
from nn.callbacks import Callback
from nn.checkpoint import Checkpoint
from nn.checks import check_kind
from nn.history import History
from nn.layer import Layer, Parameter
from nn.loader import Loader
from nn.losses import Loss, cross_entropy
from nn.metrics import Metric, metrics_of
from nn.optim.methods import Method
from nn.optim.optimiser import Optimiser
from nn.settings import StepSettings, TrainSettings
from nn.step import build_step
from nn.stopping import Stopping
from nn.training_run import LossError, TrainingRun
from nn.validation import validation_check

__all__ = ["LossError", "train"]


@checks_keywords(COMPILE_KEYWORDS)
def train(
    model: Layer,
    data: Loader | Batches,
    loss: Loss = cross_entropy,
    optimiser: Optimiser | Method | None = None,
    *,
    targets: int = 1,
    epochs: float = 1.0,
    validation: Sequence[np.ndarray] | Callable[[], float] | None = None,
    metrics: Sequence[Metric | Callable[..., Node]] = (),
    stopping: Stopping | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    resume: bool = True,
    finite: bool = True,
    accumulate: int = 1,
    trained: dict[str, Parameter] | None = None,
    seed: int = 0,
    progress: bool = True,
    **options: Unpack[CompileKeywords],
) -> History:
    """Change the model's Parameters to lower the loss.

    Parameters
        model: its Parameters have values
        data: the samples of each step
        loss: function of predictions and targets; returns one number, or several by name, whose sum is minimised
        optimiser: an Optimiser, or a method, which gets a rate of 0.001; Adam by default
        targets: number of target arrays, the last ones of the loader
        epochs: passes over the samples; may be a fraction
        validation: arrays like the loader's, whose loss is computed after every epoch in inference mode; or a function
            that returns any number that training should lower, such as one minus a precision
        metrics: of `nn.metrics`, or functions of predictions and targets that return one number; computed over the
            steps of every epoch and over the validation arrays
        stopping: rule for early stopping, called after every epoch
        callbacks: functions called with an `nn.Epoch` after every epoch, before its checkpoint; training ends after an
            epoch for which one returns True
        checkpoint: path and frequency of checkpoints
        resume: continue from the checkpoint if there is one
        finite: raise LossError for a loss that is not finite; no checkpoint contains its step
        accumulate: number of the loader's batches whose gradients make one update, as one batch of their samples would;
            a step is a batch of the loader, and the optimiser counts updates
        trained: Parameters to change, by path; all trained ones by default
        seed: seed of dropout and noise
        progress: show a bar on the error stream
        options: for ``cgraph.compile``, such as ``precision="bf16"``: see `training_step`
    Returns
        losses and rates of all steps, including those before a resumption
    Raises
        LossError: a loss is not finite
        InputError: an argument has the wrong kind or value
        PositionError: a target class has no score
    """
    check_kind("data", data, Loader | Batches, "an nn.Loader or nn.Batches")
    step_settings = StepSettings(
        loss, Optimiser.of(optimiser), targets, trained, metrics_of(metrics), seed, accumulate, dict(options)
    )
    settings = TrainSettings(
        step_settings, epochs, validation, stopping, checkpoint, resume, finite, progress, callbacks
    )
    check_accumulation(accumulate, data, settings.total_steps(data.steps_per_epoch))
    sample = data.at(0)
    step = build_step(model, step_settings, sample)
    last = None
    if isinstance(data, Loader) and data.partial and data.rest:
        last = build_step(model, step_settings, data.at(data.steps_per_epoch - 1), step.state)
    adding = build_step(model, step_settings, sample, step.state, adds=True) if accumulate > 1 else None
    check = validation_check(model, settings, len(sample[0]))
    with closing(BatchReader(data, settings.total_steps(data.steps_per_epoch))) as reader:
        return TrainingRun(model, step, last, reader, settings, check, adding).run()
