"""Fusion of a reduction with the pointwise op that feeds it."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedReduction
from cgraph.ops.reduce import Reduction


def fuse_reductions(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Move a pointwise op that only a reduction reads into it: no bytes for the value between.

    Values change in the last places, since the order of a sum follows the layout of its operand. One more kernel is
    compiled, once. Not fused: a value with another reader, which would be computed twice.
    """
    graph = Roots.of(outputs)
    if not graph.has(Reduction):
        return outputs
    joined = {n for n in graph.order if isinstance(n.op, Reduction) and is_joined(n.operands[0], graph)}
    if not joined:
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if node not in joined:
            return None
        inner = new[node.operands[0]]
        return apply(FusedReduction(node.op, inner.op), *inner.operands)  # type: ignore[arg-type]

    return rebuild(graph, change)


def is_joined(x: Node, graph: Roots) -> bool:
    """Return True if the operand of a reduction can be computed inside it."""
    return isinstance(x.op, Pointwise) and graph.is_inner(x)
