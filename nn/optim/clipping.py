"""Clipping of gradients."""

from collections.abc import Sequence

import cgraph as cg
from cgraph import Node, Record


class Clipping(Record):
    """A bound on gradients."""

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        """Return the clipped gradients."""
        raise NotImplementedError


class ClipValue(Clipping):
    """Clips each element to `low` and `high`."""

    low: float
    high: float

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        return [cg.clip(g, self.low, self.high) for g in gradients]


class ClipL2(Clipping):
    """Scales all gradients together to a Euclidean norm of at most `limit`."""

    limit: float

    def clipped(self, gradients: Sequence[Node]) -> list[Node]:
        total = cg.sum(cg.square(gradients[0]))
        for g in gradients[1:]:
            total = total + cg.sum(cg.square(g))
        factor = self.limit / cg.maximum(cg.sqrt(total), self.limit)
        return [g * factor for g in gradients]
