"""Regularisation: a penalty on weights."""

from dataclasses import dataclass

import cgraph as cg
from cgraph import Node


@dataclass(frozen=True)
class Regularisation:
    """What a weight adds to the loss."""

    def penalty(self, weight: Node) -> Node:
        raise NotImplementedError


@dataclass(frozen=True)
class L1(Regularisation):
    """`factor` times the sum of absolute values."""

    factor: float

    def penalty(self, weight: Node) -> Node:
        return self.factor * cg.sum(cg.abs(weight))


@dataclass(frozen=True)
class L2(Regularisation):
    """`factor` times the sum of squares."""

    factor: float

    def penalty(self, weight: Node) -> Node:
        return self.factor * cg.sum(cg.square(weight))


@dataclass(frozen=True)
class Elastic(Regularisation):
    """Both: `absolute` times the sum of absolute values, `square` times the sum of squares."""

    absolute: float
    square: float

    def penalty(self, weight: Node) -> Node:
        return self.absolute * cg.sum(cg.abs(weight)) + self.square * cg.sum(cg.square(weight))
