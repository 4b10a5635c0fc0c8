"""Roots: the outputs of a graph, with cached facts about it, so that an unchanged graph is walked once."""

from collections.abc import Callable, Container, Iterable
from functools import cached_property

from cgraph.ir.graph import Node, Op, with_operands
from cgraph.ir.origin import ORIGIN, keeps_origin
from cgraph.ir.traverse import post_order, users_of


class Roots(tuple[Node, ...]):
    """The outputs of a graph. Facts about the graph are computed on first use and never change."""

    @staticmethod
    def of(outputs: Iterable[Node]) -> "Roots":
        """Return outputs as Roots; the same object if they are Roots already."""
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
    def kind_names(self) -> frozenset[str]:
        """The names of the classes of all ops, and of their base classes."""
        return frozenset([base.__name__ for kind in self.kinds for base in kind.__mro__])

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
        """The user of each node that is read; None if there are several. Faster than `users`, which has lists."""
        readers: dict[Node, Node | None] = {}
        for node in self.order:
            for x in node.operands:
                if readers.setdefault(x, node) is not node:
                    readers[x] = None
        return readers

    def has(self, *kinds: type[Op]) -> bool:
        """Return True if some op is of one of these classes."""
        return any(issubclass(kind, kinds) for kind in self.kinds)

    def is_inner(self, node: Node) -> bool:
        """Return True if exactly one node reads it and it is not an output."""
        return self.readers.get(node) is not None and node not in self.ends


class New(dict[Node, Node]):
    """Replacements of nodes; a node without one maps to itself."""

    def __missing__(self, node: Node) -> Node:
        return node


@keeps_origin
def rebuild(
    outputs: tuple[Node, ...], change: Callable[[Node, New], Node | None], kinds: Container[type[Op]] | None = None
) -> Roots:
    """Return the graph with nodes replaced where ``change(node, new)`` returns one, and with all their users rebuilt.

    Operands come before users. Nodes created meanwhile have the origin of the node in turn. If nothing changes, the
    result is the outputs themselves.

    Parameters
        kinds: the classes of ops that `change` may replace; it is asked only for these, and for users of what was
            replaced. None for all
    """
    graph, new = Roots.of(outputs), New()
    replaced = new.keys()
    for node in graph.order:
        if kinds is not None and type(node.op) not in kinds and replaced.isdisjoint(node.operands):
            continue
        ORIGIN.set(node.origin)
        replacement = change(node, new)
        if replacement is None:
            replacement = rebuild_node(node, new)
        if replacement is not node:
            new[node] = replacement
    return Roots([new[x] for x in graph]) if new else graph


def rebuild_node(node: Node, new: New) -> Node:
    """Return the node on the replacements of its operands; the node itself if none is replaced."""
    if new.keys().isdisjoint(node.operands):
        return node
    return with_operands(node, tuple([new[x] for x in node.operands]))
