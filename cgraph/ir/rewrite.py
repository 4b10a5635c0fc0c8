"""Apply local rules bottom-up until none fires."""

from collections.abc import Callable, Sequence
from operator import is_

from cgraph.ir.graph import Node, Op, with_operands
from cgraph.ir.roots import New, Roots, rebuild, rebuild_node

Rule = tuple[type[Op], Callable[[Node], Node | None]]
_MOST_FIRINGS = 100


def with_new_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """The node on new operands; itself when they are its own."""
    if all(map(is_, operands, node.operands)):
        return node
    return with_operands(node, operands)


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
        node = rebuild_node(node, new)
        for _ in range(_MOST_FIRINGS):
            rules = by_op.get(type(node.op))
            replacement = (
                next((answer for rule in rules if (answer := rule(node)) is not None), None) if rules else None
            )
            if replacement is None:
                return node
            node = replacement
        raise RuntimeError(f"rules do not come to an end at {node!r}")

    return rebuild(graph, change)
