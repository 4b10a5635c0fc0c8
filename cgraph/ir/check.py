"""Well-formedness of graphs: operands precede their users."""

from collections.abc import Iterable

from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots


def check_graph(outputs: Iterable[Node]) -> None:
    """Raise GraphError for the first node that is not well formed."""
    for node in Roots.of(outputs).order:
        for x in node.operands:
            if x.serial >= node.serial:
                raise GraphError(
                    f"{node!r} reads {x!r}, which is newer: the graph has a cycle; use scan or an update edge"
                )
