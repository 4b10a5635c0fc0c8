"""Copies of values in C order, for kernels that cannot read other strides, and for callers."""

from cgraph.ir.graph import Node, apply, with_operands
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.kernel import contiguous
from cgraph.kernels.move.order import LEAST_NBYTES, is_transposed
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

    def change(node: Node, new: New) -> Node | None:
        operands = [new[x] for x in node.operands]
        if not any(map(is_strided, operands)) or facts.work(node).strided:
            return None
        free = facts.work(node).strided_operands
        parts = [x if i in free or not is_strided(x) else copied(x, facts) for i, x in enumerate(operands)]
        return None if all(x is y for x, y in zip(parts, operands)) else with_operands(node, tuple(parts))

    graph = rebuild(outputs, change)
    for x in graph:
        facts.view(x)
    return graph


def order_results(results: tuple[Node, ...], facts: NodeFacts) -> tuple[Node, ...]:
    """Insert a copy after each large result that is a transposed view: same values, more nodes.

    The kernel that copies writes the caller's array (`cgraph.engine.cpu.results`) in a quarter of NumPy's time.
    """
    return tuple(copied(x, facts) if is_large_transposed(x, facts) else x for x in results)


def copied(x: Node, facts: NodeFacts) -> Node:
    """Return a copy in C order, and add its view to `facts`."""
    copy = apply(Contiguous(), x)
    facts.view(copy)
    return copy


def is_large_transposed(x: Node, facts: NodeFacts) -> bool:
    view = facts.view(x)
    if isinstance(view, tuple) or x.nbytes < LEAST_NBYTES:
        return False
    return is_transposed(contiguous(view.at, view.shape, view.dtype), view)
