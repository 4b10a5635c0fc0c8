"""Copy the operands that a kernel cannot read with their strides."""

from cgraph.ir.graph import Node, apply, keeps_place
from cgraph.ir.traverse import located
from cgraph.memory.layout import Facts
from cgraph.ops.shape import Contiguous
from cgraph.passes.rewrite import remade


@keeps_place
def make_contiguous(outputs: tuple[Node, ...], order: list[Node], facts: Facts) -> tuple[Node, ...]:
    """Insert a copy before every op that needs C order and would get a strided view: same values, more nodes.

    `order` has all nodes, operands before users. The views that tell are added to `facts`. Not done: choosing, among
    several users, one copy for all; equal copies are shared as nodes anyway.
    """
    new: dict[Node, Node] = {}
    for node in located(order):
        operands = []
        for x in node.operands:
            x = new[x]
            view = facts.view(x)
            if not (isinstance(view, tuple) or view.is_contiguous or facts.work(node).strided):
                x = apply(Contiguous(), x)
                facts.view(x)
            operands.append(x)
        new[node] = remade(node, tuple(operands))
    for x in outputs:
        facts.view(new[x])
    return tuple(new[x] for x in outputs)
