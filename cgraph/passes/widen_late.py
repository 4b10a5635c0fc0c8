"""Move values of storage dtypes before widening them to float32."""

from cgraph.dtypes.convert import FLOAT32, is_storage
from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.ir.roots import Roots
from cgraph.ops.arithmetic import Cast, astype
from cgraph.ops.shape import Reshape
from cgraph.ops.slicing import Slice
from cgraph.ops.take import Take


def widen_late(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Take elements in their storage dtype and widen them afterwards: the same values, as many nodes, fewer bytes.

    Transposes and broadcasts stay after the widening, where products look for them.
    """
    graph = Roots.of(outputs)
    if not graph.has(Cast) or not any(map(is_widening, graph.order)):
        return outputs
    return rewrite(graph, [(Take, move_before_cast), (Reshape, move_before_cast), (Slice, move_before_cast)])


def move_before_cast(node: Node) -> Node | None:
    """move(widen(x), ...) -> widen(move(x, ...))"""
    wide, *others = node.operands
    return astype(apply(node.op, wide.operands[0], *others), FLOAT32) if is_widening(wide) else None


def is_widening(node: Node) -> bool:
    return isinstance(node.op, Cast) and node.dtype == FLOAT32 and is_storage(node.operands[0].dtype)
