"""Clipping: bounds on gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import cgraph as cg
from cgraph import Node


@dataclass(frozen=True)
class Clipping:
    """Gradients held within bounds."""

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        raise NotImplementedError


@dataclass(frozen=True)
class ClipValue(Clipping):
    """Each element held between `low` and `high`."""

    low: float
    high: float

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        return [cg.clip(g, self.low, self.high) for g in gradients]


@dataclass(frozen=True)
class ClipL2(Clipping):
    """All gradients together shortened to a Euclidean norm of at most `limit`."""

    limit: float

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        total = cg.sum(cg.square(gradients[0]))
        for g in gradients[1:]:
            total = total + cg.sum(cg.square(g))
        factor = self.limit / cg.maximum(cg.sqrt(total), self.limit)
        return [g * factor for g in gradients]
