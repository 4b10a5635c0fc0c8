"""Clipping of gradients."""

from collections.abc import Sequence

import cgraph as cg
from cgraph import Node, Record
from nn.deprecation import renamed_method


class Clipping(Record):
    """A bound on gradients. A subclass defines `clip`."""

    def clip(self, gradients: Sequence[Node]) -> list[Node]:
        """Return the clipped gradients."""
        if type(self).clipped is not Clipping.clipped:  # a subclass that defines the old name
            return self.clipped(gradients)
        raise NotImplementedError

    clipped = renamed_method("clipped", "clip")


class ClipValue(Clipping):
    """Clips each element to `low` and `high`."""

    low: float
    high: float

    def clip(self, gradients: Sequence[Node]) -> list[Node]:
        return [cg.clip(g, self.low, self.high) for g in gradients]


class ClipL2(Clipping):
    """Scales all gradients together to a Euclidean norm of at most `limit`."""

    limit: float

    def clip(self, gradients: Sequence[Node]) -> list[Node]:
        total = cg.sum(cg.square(gradients[0]))
        for g in gradients[1:]:
            total = total + cg.sum(cg.square(g))
        factor = self.limit / cg.maximum(cg.sqrt(total), self.limit)
        return [g * factor for g in gradients]
