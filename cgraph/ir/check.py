"""Is a graph well formed? Operands come before their users."""

from collections.abc import Iterable

from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots


def check_graph(outputs: Iterable[Node]) -> None:
    """GraphError naming the first node that is not well formed."""
    for node in Roots.of(outputs).order:
        for x in node.operands:
            if x.serial >= node.serial:
                raise GraphError(f"{node!r} reads {x!r}, which was made after it: the graph has a cycle")
