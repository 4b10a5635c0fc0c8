"""Learning rates as functions of the step number, which is a Var of the graph."""

from math import pi

import cgraph as cg
from cgraph import Node, Record, Var


class Rate(Record):
    """A learning rate, computed in the graph."""

    def at(self, step: Node) -> Node:
        """Return the float32 rate of step `step`, a float32 node that counts from 0."""
        raise NotImplementedError

    def state(self) -> dict[str, Var]:
        """Return the Vars of the rate's state, by name; none by default."""
        return {}

    def current(self, step: Node, state: dict[str, Var]) -> Node:
        """Return the float32 rate of step `step` and the optimiser's state; `at` by default."""
        return self.at(step)


class Const(Rate):
    """A constant rate."""

    rate: float = 0.001

    def at(self, step: Node) -> Node:
        return step * 0.0 + self.rate


class Decay(Rate):
    """``rate / (1 + k * step)``."""

    rate: float
    k: float

    def at(self, step: Node) -> Node:
        return self.rate / (1.0 + self.k * step)


class ExpDecay(Rate):
    """``rate * exp(-k * step)``."""

    rate: float
    k: float

    def at(self, step: Node) -> Node:
        return self.rate * cg.exp(-self.k * step)


class Schedule(Rate):
    """A list of rates, one for each step; the last one stays."""

    rates: tuple[float, ...]

    def at(self, step: Node) -> Node:
        value = step * 0.0 + self.rates[-1]
        for i, rate in reversed(list(enumerate(self.rates[:-1]))):
            value = cg.where(step < i + 0.5, rate, value)
        return value


class Cosine(Rate):
    """Linear warm-up for `warmup` steps, then half a cosine down to `floor` at `steps`.

    Source: Loshchilov and Hutter 2016, arXiv:1608.03983.
    """

    rate: float
    steps: int
    warmup: int = 0
    floor: float = 0.0

    def at(self, step: Node) -> Node:
        share = cg.clip((step - self.warmup) / max(self.steps - self.warmup, 1), 0.0, 1.0)
        down = self.floor + (self.rate - self.floor) * 0.5 * (1.0 + cg.cos(pi * share))
        return cg.where(step < self.warmup, self.rate * (step + 1.0) / max(self.warmup, 1), down)


class Trapezoid(Rate):
    """Linear warm-up for `warmup` steps, constant, and linear decay over the last `fall` of `steps`.

    Before the decay it does not depend on `steps`, so a run can be extended from a checkpoint.

    Source: Hu et al. 2024, arXiv:2404.06395, section 4.2.
    """

    rate: float
    steps: int
    warmup: int
    fall: int

    def at(self, step: Node) -> Node:
        up, down = (step + 1.0) / max(self.warmup, 1), (self.steps - step) / max(self.fall, 1)
        return self.rate * cg.clip(cg.minimum(up, down), 0.0, 1.0)


class Steps(Rate):
    """Linear warm-up for `warmup` steps, then constant, and multiplied by `factor` at each of the steps `at_steps`."""

    rate: float
    at_steps: tuple[int, ...]
    factor: float = 0.1
    warmup: int = 0

    def at(self, step: Node) -> Node:
        rate = self.rate * cg.clip((step + 1.0) / max(self.warmup, 1), 0.0, 1.0)
        for at in self.at_steps:
            rate = cg.where(step < at - 0.5, rate, rate * self.factor)
        return rate
