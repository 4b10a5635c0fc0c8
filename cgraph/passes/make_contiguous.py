"""Copies of operands that a kernel cannot read with their strides."""

from cgraph.ir.graph import Node, apply, with_operands
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.memory.layout import NodeFacts
from cgraph.ops.shape import Contiguous


def make_contiguous(outputs: tuple[Node, ...], facts: NodeFacts) -> Roots:
    """Insert a copy before every op that needs C order and would get a strided view: same values, more nodes.

    The new views are added to `facts`. Not done: choosing one copy for several users; equal copies are shared as nodes
    anyway.
    """

    def is_strided(x: Node) -> bool:
        view = facts.view(x)
        return not (isinstance(view, tuple) or view.is_contiguous)

    def copied(x: Node) -> Node:
        copy = apply(Contiguous(), x)
        facts.view(copy)
        return copy

    def change(node: Node, new: New) -> Node | None:
        operands = [new[x] for x in node.operands]
        if not any(map(is_strided, operands)) or facts.work(node).strided:
            return None
        free = facts.work(node).strided_operands
        parts = [x if i in free or not is_strided(x) else copied(x) for i, x in enumerate(operands)]
        return None if all(x is y for x, y in zip(parts, operands)) else with_operands(node, tuple(parts))

    graph = rebuild(outputs, change)
    for x in graph:
        facts.view(x)
    return graph
