"""Optimisers: gradient methods, learning rates, momentum, clipping, regularisation."""

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
