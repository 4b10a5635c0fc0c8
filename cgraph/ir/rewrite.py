"""Local rewrite rules, applied bottom-up until none fires."""

from collections.abc import Callable, Sequence
from operator import is_

from cgraph.ir.graph import Node, Op, with_operands
from cgraph.ir.roots import New, Roots, rebuild, rebuild_node

Rule = tuple[type[Op], Callable[[Node], Node | None]]
_MOST_FIRINGS = 100


def with_new_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """Return the node on new operands; the node itself if they are its own."""
    if all(map(is_, operands, node.operands)):
        return node
    return with_operands(node, operands)


def rewrite(outputs: tuple[Node, ...], rules: Sequence[Rule]) -> tuple[Node, ...]:
    """Replace each node by the first rule for its op that returns one, until none does.

    The operands of a node are rewritten before it, and a rule builds on rewritten nodes. One walk is therefore enough
    if the result of a rule is rewritten at once.
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
        raise RuntimeError(f"rules still fire at {node!r} after {_MOST_FIRINGS} rewrites")

    return rebuild(graph, change, by_op)
