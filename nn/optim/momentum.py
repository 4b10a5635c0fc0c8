"""Momentum: a share of the last change of a weight is added to the next."""

from cgraph import Node, Record


class Momentum(Record):
    """A rule that combines the last change with the update of a step.

    Fields
        share: share of the last change that is added
    """

    share: float = 0.9

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        """Return the change to store and the change to subtract from the weight."""
        raise NotImplementedError


class Standard(Momentum):
    """``change = share * last + update``. Source: Polyak 1964."""

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        change = self.share * last + update
        return change, change


class Nesterov(Momentum):
    """As Standard, but the subtracted change looks one step ahead: ``share * change + update``.

    Source: Nesterov 1983; in this form Sutskever et al. 2013.
    """

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        change = self.share * last + update
        return change, self.share * change + update
