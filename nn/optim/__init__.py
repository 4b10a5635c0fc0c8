"""Optimisers: gradient methods, learning rates, momentum, clipping, regularisation."""

from typing import TYPE_CHECKING

from nn.missing import missing_member
from nn.optim.averaging import EqualAverage, ExponentialAverage
from nn.optim.clipping import ClipL2, ClipValue
from nn.optim.conjugate import ConjugateDescent, DaiYuan, FletcherReeves, HestenesStiefel, PolakRibiere
from nn.optim.methods import Adagrad, Adam, AdamW, GradientDescent, RMSprop
from nn.optim.momentum import Nesterov, Standard
from nn.optim.optimiser import Optimiser
from nn.optim.plateau import Plateau
from nn.optim.regularisation import L1, L2, Elastic
from nn.optim.schedules import Const, Cosine, Decay, ExpDecay, Schedule, Steps, Trapezoid

__all__ = [
    "L1",
    "L2",
    "Adagrad",
    "Adam",
    "AdamW",
    "ClipL2",
    "ClipValue",
    "ConjugateDescent",
    "Const",
    "Cosine",
    "DaiYuan",
    "Decay",
    "Elastic",
    "EqualAverage",
    "ExpDecay",
    "ExponentialAverage",
    "FletcherReeves",
    "GradientDescent",
    "HestenesStiefel",
    "Nesterov",
    "Optimiser",
    "Plateau",
    "PolakRibiere",
    "RMSprop",
    "Schedule",
    "Standard",
    "Steps",
    "Trapezoid",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # for a type checker, the module would have every name

    def __getattr__(name: str) -> object:
        """Raise AttributeError with the name to use instead."""
        if name.startswith("_"):  # names that Python looks up in any module
            raise AttributeError(f"nn.optim has no attribute {name!r}")
        raise missing_member("nn.optim", name, __all__)
