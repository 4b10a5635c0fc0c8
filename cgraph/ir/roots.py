"""Roots: the outputs of a graph, with what passes ask of it, so that a graph that stays as it is, is walked once."""

from collections.abc import Callable, Iterable
from functools import cached_property

from cgraph.ir.graph import Node, Op, with_operands
from cgraph.ir.origin import ORIGIN, keeps_origin
from cgraph.ir.traverse import post_order, users_of


class Roots(tuple[Node, ...]):
    """The outputs of a graph. What is known of the graph is found when it is first asked for, and nobody changes it."""

    @staticmethod
    def of(outputs: Iterable[Node]) -> "Roots":
        """These outputs; themselves where they are Roots already."""
        return outputs if isinstance(outputs, Roots) else Roots(outputs)

    @cached_property
    def order(self) -> list[Node]:
        """All nodes, operands before users."""
        return post_order(self)

    @cached_property
    def kinds(self) -> frozenset[type[Op]]:
        """The classes of all ops."""
        return frozenset([type(node.op) for node in self.order])

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """Each node's users in their order; one that reads it twice is listed once."""
        return users_of(self.order)

    @cached_property
    def ends(self) -> frozenset[Node]:
        """The outputs, each once."""
        return frozenset(self)

    @cached_property
    def readers(self) -> dict[Node, Node | None]:
        """The user of each node that is read; None where there are several. Quicker than `users`, which are lists."""
        readers: dict[Node, Node | None] = {}
        for node in self.order:
            for x in node.operands:
                if readers.setdefault(x, node) is not node:
                    readers[x] = None
        return readers

    def has(self, *kinds: type[Op]) -> bool:
        """Some op is of one of these classes."""
        return any(issubclass(kind, kinds) for kind in self.kinds)

    def is_inner(self, node: Node) -> bool:
        """One node reads it, and nobody else sees it."""
        return self.readers.get(node) is not None and node not in self.ends


class New(dict[Node, Node]):
    """What became of nodes; one that is not here stays as it is."""

    def __missing__(self, node: Node) -> Node:
        return node


@keeps_origin
def rebuild(outputs: tuple[Node, ...], change: Callable[[Node, New], Node | None]) -> Roots:
    """The graph with other nodes where ``change(node, new)`` gives one, and with those that read them made anew.

    Nodes come operands first. What is made meanwhile comes from the node's line of the user's code. The outputs
    themselves come back where nothing changes.
    """
    graph, new = Roots.of(outputs), New()
    for node in graph.order:
        ORIGIN.set(node.origin)
        replacement = change(node, new)
        if replacement is None:
            replacement = rebuild_node(node, new)
        if replacement is not node:
            new[node] = replacement
    return Roots([new[x] for x in graph]) if new else graph


def rebuild_node(node: Node, new: New) -> Node:
    """The node on what became of its operands; itself where they are as they were."""
    if new.keys().isdisjoint(node.operands):
        return node
    return with_operands(node, tuple([new[x] for x in node.operands]))
