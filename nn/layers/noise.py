"""Layers that add noise to their operand in training and return it unchanged in inference."""

import cgraph as cg
from cgraph import Node
from nn.layer import Layer
from nn.mode import Mode

SELU_FLOOR = -1.7580993408473766
"""Limit of selu at minus infinity: ``-gamma * alpha``."""


class DropLayer(Layer):
    """Base of layers that drop elements with probability `rate` in training."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        return self.drop(x, mode.next_key()) if mode.training and self.rate else x

    def drop(self, x: Node, key: Node) -> Node:
        """Return `x` with elements dropped at random."""
        raise NotImplementedError


class Dropout(DropLayer):
    """Sets elements to zero with probability `rate` and divides the others by ``1 - rate``.

    Source: Srivastava et al. 2014.
    """

    def drop(self, x: Node, key: Node) -> Node:
        return cg.dropout(x, key, self.rate)


class AlphaDropout(DropLayer):
    """Dropout that preserves mean 0 and variance 1 after selu. Source: Klambauer et al. 2017, arXiv:1706.02515."""

    def drop(self, x: Node, key: Node) -> Node:
        keep = 1 - self.rate
        scale = (keep + SELU_FLOOR**2 * keep * self.rate) ** -0.5
        dropped = cg.where(cg.random_bernoulli(key, x.shape, keep), x, SELU_FLOOR)
        return dropped * scale - scale * self.rate * SELU_FLOOR


class GaussianNoise(Layer):
    """Adds normal noise of this deviation."""

    deviation: float

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        return x + self.deviation * cg.random_normal(mode.next_key(), x.shape) if mode.training else x


class GaussianDropout(Layer):
    """Multiplies by normal noise of mean 1 and the variance of a Dropout of this rate."""

    rate: float

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        if not mode.training:
            return x
        deviation = (self.rate / (1 - self.rate)) ** 0.5
        return x * (1.0 + deviation * cg.random_normal(mode.next_key(), x.shape))


def check_rate(rate: float) -> None:
    """Raise ValueError unless `rate` is from 0 to below 1."""
    if not 0 <= rate < 1:
        raise ValueError(f"rate is {rate}. Pass the probability of dropping an element, from 0 to below 1.")
