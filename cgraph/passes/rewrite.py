"""Apply local rules bottom-up until none fires."""

from collections.abc import Callable, Sequence
from operator import is_

from cgraph.ir.graph import Node, Op, again
from cgraph.ir.traverse import post_order, rebuild

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
    order = post_order(outputs)
    if by_op.keys().isdisjoint(type(node.op) for node in order):
        return outputs

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = remade(node, operands)
        for _ in range(_MOST_FIRINGS):
            found = next((new for rule in by_op.get(type(node.op), ()) if (new := rule(node)) is not None), None)
            if found is None:
                return node
            node = found
        raise RuntimeError(f"rules do not come to an end at {node!r}")

    return rebuild(outputs, change, order)
