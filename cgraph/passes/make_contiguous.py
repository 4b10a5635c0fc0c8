"""Copy the operands that a kernel cannot read with their strides."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import located, post_order
from cgraph.kernels.kernel import View
from cgraph.memory.layout import view_of
from cgraph.ops.shape import Contiguous
from cgraph.passes.rewrite import remade


def make_contiguous(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Insert a copy before every op that needs C order and would get a strided view: same values, more nodes.

    Not done: choosing, among several users, one copy for all; equal copies are shared as nodes anyway.
    """
    new: dict[Node, Node] = {}
    views: dict[Node, View | tuple[View, ...]] = {}

    def add(node: Node) -> Node:
        if node not in views:
            views[node] = view_of(node, views)
        return node

    for node in located(post_order(outputs)):
        operands = []
        for x in (new[x] for x in node.operands):
            view = views[x]
            fits = node.op.strided or isinstance(view, tuple) or view.is_contiguous
            operands.append(x if fits else add(apply(Contiguous(), x)))
        new[node] = add(remade(node, tuple(operands)))
    return tuple(new[x] for x in outputs)
