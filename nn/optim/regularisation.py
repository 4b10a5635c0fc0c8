"""Regularisation: penalties on weights."""

import cgraph as cg
from cgraph import Node, Record


class Regularisation(Record):
    """A penalty that a weight adds to the loss."""

    def penalty(self, weight: Node) -> Node:
        """Return the penalty of a weight."""
        raise NotImplementedError


class L1(Regularisation):
    """`factor` times the sum of absolute values."""

    factor: float

    def penalty(self, weight: Node) -> Node:
        return self.factor * cg.sum(cg.abs(weight))


class L2(Regularisation):
    """`factor` times the sum of squares."""

    factor: float

    def penalty(self, weight: Node) -> Node:
        return self.factor * cg.sum(cg.square(weight))


class Elastic(Regularisation):
    """L1 and L2: `absolute` times the sum of absolute values, `square` times the sum of squares."""

    absolute: float
    square: float

    def penalty(self, weight: Node) -> Node:
        return self.absolute * cg.sum(cg.abs(weight)) + self.square * cg.sum(cg.square(weight))
