"""Alignment of constants that are at unaligned offsets of a mapped file."""

from functools import partial

from cgraph.ir.graph import Node
from cgraph.ir.roots import New, rebuild
from cgraph.kernels.mapped import Keep, aligned, in_place
from cgraph.ops.leaf import Const, ConstOp
from cgraph.passes.loop_bodies import in_bodies


def align_constants(outputs: tuple[Node, ...], keep: Keep = in_place) -> tuple[Node, ...]:
    """Copy constants whose elements are not aligned to their size: same values, as many nodes.

    It runs last, because packed constants need no copy. `keep` stores the copies.
    """
    graph = in_bodies(outputs, partial(align_constants, keep=keep))
    if not graph.has(ConstOp) or not any(map(is_unaligned, graph.order)):
        return graph

    def change(node: Node, new: New) -> Node | None:
        return aligned_constant(node, keep) if is_unaligned(node) else None

    return rebuild(graph, change)


def is_unaligned(node: Node) -> bool:
    return isinstance(node.op, ConstOp) and not node.op.array.flags.aligned


def aligned_constant(node: Node, keep: Keep) -> Node:
    return Const(keep(aligned(node.op.array)), name=node.op.label, copy=False)  # type: ignore[attr-defined]
