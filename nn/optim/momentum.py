"""Momentum: part of the last change of a weight goes on."""

from cgraph import Node, Record


class Momentum(Record):
    """From the last change and the wanted one to what is remembered and what is subtracted from the weight.

    Fields
        share: of the last change that goes on
    """

    share: float = 0.9

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        raise NotImplementedError


class Standard(Momentum):
    """``change = share * last + wanted``. Source: Polyak 1964."""

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        change = self.share * last + update
        return change, change


class Nesterov(Momentum):
    """As Standard, but what is subtracted looks one step ahead: ``share * change + wanted``.

    Source: Nesterov 1983; in this form Sutskever et al. 2013.
    """

    def changes(self, last: Node, update: Node) -> tuple[Node, Node]:
        change = self.share * last + update
        return change, self.share * change + update
