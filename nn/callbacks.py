"""Callbacks: functions that `nn.train` calls after every epoch."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from cgraph import Record
from nn.layer import Layer


class Epoch(Record, eq=False):
    """The state of a training that a callback receives after an epoch.

    Fields
        epoch: number of complete epochs
        step: number of steps so far
        figures: loss, metrics and validation of the epoch by name, as in ``History.by_epoch()``
        model: its Parameters have the weights of `step`
        averaged: returns a context in which the model has the averaged weights, if the optimiser has an `averaging`
    """

    epoch: int
    step: int
    figures: dict[str, np.ndarray]
    model: Layer
    averaged: Callable[[], AbstractContextManager[None]] = nullcontext


Callback = Callable[[Epoch], Any]


def run_callbacks(callbacks: tuple[Callback, ...], epoch: Epoch) -> bool:
    """Call all callbacks in order, and return True if one of them returns True."""
    answers = [callback(epoch) for callback in callbacks]
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)
