"""Averages of weights over the steps of a training, as update edges of its graph."""

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, Record
from nn.checks import check_integer


class Averaging(Record):
    """A running average of each weight. A subclass defines `share`."""

    def share(self, step: Node) -> Node:
        """Return the share of the weights after `step` in the average, a float32 node; `step` counts from 0."""
        raise NotImplementedError

    def average(self, last: Node, weight: Node, share: Node) -> Node:
        """Return the average after a step: exactly `weight` for a share of 1, and `last` for 0."""
        return last * (1.0 - share) + weight * share


class ExponentialAverage(Averaging):
    """Each step's weights have a share of ``1 - decay``; up to step `start` the average is the weights.

    Source: Polyak and Juditsky 1992; in this form Tarvainen and Valpola 2017, arXiv:1703.01780.
    """

    decay: float = 0.999
    start: int = 0

    def __post_init__(self) -> None:
        check_integer("start", self.start, 0)
        if not 0 < self.decay < 1:
            raise InputError(f"decay is {self.decay!r:.60}. Pass a number between 0 and 1.")

    def share(self, step: Node) -> Node:
        return cg.where(step <= float(self.start), np.float32(1), np.float32(1 - self.decay))


class EqualAverage(Averaging):
    """Mean of the weights of every `every`-th step from step `start` on; up to then the average is the weights.

    Source: stochastic weight averaging, Izmailov et al. 2018, arXiv:1803.05407.
    """

    start: int = 0
    every: int = 1

    def __post_init__(self) -> None:
        check_integer("start", self.start, 0)
        check_integer("every", self.every, 1)

    def share(self, step: Node) -> Node:
        after = cg.maximum(step - float(self.start), 0.0)
        is_due = cg.remainder(after, float(self.every)) < 0.5
        share = cg.where(is_due, 1.0 / (after / float(self.every) + 1.0), 0.0)
        return cg.where(step <= float(self.start), 1.0, share)
