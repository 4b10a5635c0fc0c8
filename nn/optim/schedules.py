"""Learning rates as functions of the real number of the step, which is a Var of the graph."""

from math import pi

import cgraph as cg
from cgraph import Node, Record


class Rate(Record):
    """A learning rate, computed in the graph."""

    def at(self, step: Node) -> Node:
        """The float32 rate of step `step`, a float32 node that counts from 0."""
        raise NotImplementedError


class Const(Rate):
    """The same at every step."""

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
    """One rate after another; the last one stays."""

    rates: tuple[float, ...]

    def at(self, step: Node) -> Node:
        value = step * 0.0 + self.rates[-1]
        for i, rate in reversed(list(enumerate(self.rates[:-1]))):
            value = cg.where(step < i + 0.5, rate, value)
        return value


class Cosine(Rate):
    """Up in a line for `warmup` steps, then down half a cosine until `steps`, then `floor`.

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
    """Up in a line for `warmup` steps, level, and down in a line over the last `fall` of `steps`.

    Until it falls it does not depend on `steps`, so a run may be made longer from a checkpoint.

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
    """Up in a line for `warmup` steps, then level, and times `factor` at each of the steps `at_steps`."""

    rate: float
    at_steps: tuple[int, ...]
    factor: float = 0.1
    warmup: int = 0

    def at(self, step: Node) -> Node:
        rate = self.rate * cg.clip((step + 1.0) / max(self.warmup, 1), 0.0, 1.0)
        for at in self.at_steps:
            rate = cg.where(step < at - 0.5, rate, rate * self.factor)
        return rate
