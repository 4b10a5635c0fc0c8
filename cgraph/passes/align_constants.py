"""Constants that lie in a file, where the file's layout put them, as kernels can read them."""

from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order, rebuild
from cgraph.kernels.mapped import aligned
from cgraph.ops.leaf import Const, ConstOp
from cgraph.passes.bodies import in_bodies
from cgraph.passes.rewrite import remade


def align_constants(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Copy the constants whose elements do not lie at multiples of their size: same values, as many nodes.

    The last pass: what is packed is read where it lies and needs no copy.
    """
    outputs, order = in_bodies(outputs, post_order(outputs), align_constants)
    if not any(is_unaligned(x) for x in order):
        return outputs
    return rebuild(outputs, lambda node, operands: moved(node) if is_unaligned(node) else remade(node, operands), order)


def is_unaligned(node: Node) -> bool:
    return isinstance(node.op, ConstOp) and not node.op.array.flags.aligned


def moved(node: Node) -> Node:
    return Const(aligned(node.op.array), name=node.op.label, copy=False)  # type: ignore[attr-defined]
