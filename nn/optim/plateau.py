"""Plateau: a learning rate that is reduced when a figure of the epochs stops improving."""

from collections.abc import Sequence

import numpy as np

from cgraph import InputError, Node, Var
from nn.checks import check_integer
from nn.monitor import Monitor
from nn.optim.schedules import Const, Rate


class Plateau(Rate):
    """A rate that `nn.train` multiplies by `factor` after every `patience` epochs without a better figure.

    The rate is a Var of the optimiser's state, so a checkpoint has it. `nn.training_step` leaves it unchanged: assign
    ``step.state["rate"]``.

    Fields
        rate: rate of the first epoch
        factor: factor of each reduction, between 0 and 1
        patience: number of epochs without a better figure before each reduction
        least: minimum change of the figure that counts as better
        lowest: minimum rate
        metric: name in ``History.by_epoch()``; by default the validation loss, or without validation the training loss
        mode: "min" when lower is better, "max" when higher is; needed for any metric other than a loss

    Example
        nn.Optimiser(rate=nn.optim.Plateau(0.003, factor=0.5, patience=2))
    """

    rate: float = 0.001
    factor: float = 0.1
    patience: int = 10
    least: float = 0.0
    lowest: float = 0.0
    metric: str | None = None
    mode: str | None = None

    def __post_init__(self) -> None:
        check_integer("patience", self.patience, 1)
        if not 0 < self.factor < 1:
            raise InputError(f"factor is {self.factor!r:.60}. Pass a number between 0 and 1.")
        if not 0 <= self.lowest <= self.rate:
            raise InputError(f"lowest is {self.lowest!r:.60} and rate {self.rate!r:.60}. Pass 0 <= lowest <= rate.")
        self.monitor()

    def monitor(self) -> Monitor:
        """Return the figure by which it compares epochs."""
        return Monitor(self.metric, self.mode, self.least)

    def after(self, figures: Sequence[float]) -> float:
        """Return the rate after epochs with these figures."""
        age = reductions = 0
        for is_better in self.monitor().improvements(figures):
            age = 0 if is_better else age + 1
            if age == self.patience:
                age, reductions = 0, reductions + 1
        return max(self.rate * self.factor**reductions, self.lowest)

    def at(self, step: Node) -> Node:
        return Const(self.rate).at(step)

    def state(self) -> dict[str, Var]:
        return {"rate": Var((), "float32", "rate").assign(np.float32(self.rate))}

    def current(self, step: Node, state: dict[str, Var]) -> Node:
        return state["rate"]
