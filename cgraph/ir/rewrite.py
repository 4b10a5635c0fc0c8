"""Apply local rules bottom-up until none fires."""

from collections.abc import Callable, Sequence
from operator import is_

from cgraph.ir.graph import Node, Op, again
from cgraph.ir.roots import New, Roots, rebuild, renewed

Rule = tuple[type[Op], Callable[[Node], Node | None]]
_MOST_FIRINGS = 100


def remade(node: Node, operands: tuple[Node, ...]) -> Node:
    """The node on new operands; itself when they are its own."""
    if all(map(is_, operands, node.operands)):
        return node
    return again(node, operands)


def rewrite(outputs: tuple[Node, ...], rules: Sequence[Rule]) -> tuple[Node, ...]:
    """Each node replaced by the first rule for its op that answers, until none does.

    A rule sees a node whose operands are rewritten already; what it returns is made of such nodes, so one walk is
    enough when its result is rewritten at once.
    """
    by_op: dict[type[Op], list[Callable[[Node], Node | None]]] = {}
    for op, rule in rules:
        by_op.setdefault(op, []).append(rule)
    graph = Roots.of(outputs)
    if by_op.keys().isdisjoint(graph.kinds):
        return outputs

    def change(node: Node, new: New) -> Node:
        node = renewed(node, new)
        for _ in range(_MOST_FIRINGS):
            rules = by_op.get(type(node.op))
            found = next((made for rule in rules if (made := rule(node)) is not None), None) if rules else None
            if found is None:
                return node
            node = found
        raise RuntimeError(f"rules do not come to an end at {node!r}")

    return rebuild(graph, change)
