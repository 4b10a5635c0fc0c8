"""Nonlinear conjugate gradients: the direction is minus the gradient plus beta times the direction before.

All weights together are one vector. The variants differ in beta; g and g' are the current and the previous gradient,
y = g - g', and s' is the previous direction:

    Hestenes–Stiefel  g·y / s'·y        Fletcher–Reeves  g·g / g'·g'      Polak–Ribière  max(0, g·y / g'·g')
    Conjugate descent g·g / -s'·g'      Dai–Yuan         g·g / s'·y

Source: Hager and Zhang 2006, "A survey of nonlinear conjugate gradient methods". There is no line search: the
learning rate is the step length. A restart every `restart` steps limits the noise of small batches.
"""

from collections.abc import Sequence
from typing import ClassVar

import cgraph as cg
from cgraph import Node, Record
from nn.optim.methods import Method, Slots

TINY = 1e-30


class ConjugateGradient(Method):
    """Base of all variants.

    Fields
        restart: number of steps after which the direction is minus the gradient again
    """

    restart: int = 100
    remembers: ClassVar[tuple[str, ...]] = ("gradient", "along")

    def beta(self, g: "InnerProducts") -> tuple[Node, Node]:
        """Return numerator and denominator of beta."""
        raise NotImplementedError

    def directions(
        self, weights: Sequence[Node], gradients: Sequence[Node], slots: Sequence[Slots], step: Node
    ) -> list[tuple[Node, Slots]]:
        above, below = self.beta(InnerProducts(list(gradients), list(slots)))
        fresh = cg.remainder(step, float(self.restart)) < 0.5
        beta = cg.where(fresh | (cg.abs(below) < TINY), 0.0, above / cg.where(cg.abs(below) < TINY, 1.0, below))
        pairs = []
        for g, s in zip(gradients, slots):
            along = beta * s["along"] - g
            pairs.append((-along, {"gradient": g, "along": along}))
        return pairs


class HestenesStiefel(ConjugateGradient):
    def beta(self, g):
        return g.now_change, g.along_change


class FletcherReeves(ConjugateGradient):
    def beta(self, g):
        return g.now_now, g.before_before


class PolakRibiere(ConjugateGradient):
    def beta(self, g):
        return cg.maximum(g.now_change, 0.0), g.before_before


class ConjugateDescent(ConjugateGradient):
    def beta(self, g):
        return g.now_now, -g.along_before


class DaiYuan(ConjugateGradient):
    def beta(self, g):
        return g.now_now, g.along_change


class InnerProducts(Record):
    """Inner products over all weights."""

    gradients: list[Node]
    slots: list[Slots]

    @property
    def now_now(self) -> Node:
        return total_sum([g * g for g in self.gradients])

    @property
    def before_before(self) -> Node:
        return total_sum([s["gradient"] * s["gradient"] for s in self.slots])

    @property
    def now_change(self) -> Node:
        return total_sum([g * (g - s["gradient"]) for g, s in zip(self.gradients, self.slots)])

    @property
    def along_change(self) -> Node:
        return total_sum([s["along"] * (g - s["gradient"]) for g, s in zip(self.gradients, self.slots)])

    @property
    def along_before(self) -> Node:
        return total_sum([s["along"] * s["gradient"] for s in self.slots])


def total_sum(products: list[Node]) -> Node:
    """Return the sum of all elements of all products."""
    accumulator = cg.sum(products[0])
    for x in products[1:]:
        accumulator = accumulator + cg.sum(x)
    return accumulator
