"""Compute, while compiling, what depends on constants alone."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import rebuild
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.shape import BroadcastTo
from cgraph.passes.rewrite import remade

_SMALL = 1 << 16


def fold_constants(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace pure nodes of constants by their value: fewer nodes.

    May worsen: bytes kept for good, so a result larger than its operands (a fill) is folded only while it is small. Not
    folded: a broadcast, which costs nothing as it is, and ops that are not pure. The value is the op's meaning, which
    may differ in the last place from the kernel's.
    """

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = remade(node, operands)
        if not operands or not node.op.pure or isinstance(node.spec, Bundle) or isinstance(node.op, BroadcastTo):
            return node
        values = [v for v in map(constant_of, operands) if v is not None]
        if len(values) < len(operands):
            return node
        if node.nbytes > max(_SMALL, sum(source_of(x).nbytes for x in operands)):
            return node
        with np.errstate(all="ignore"):
            value = node.op.meaning(*values)
        return Const(np.asarray(value, node.dtype))

    return rebuild(outputs, change)


def source_of(node: Node) -> Node:
    """The node behind a broadcast."""
    return node.operands[0] if isinstance(node.op, BroadcastTo) else node


def constant_of(node: Node) -> np.ndarray | None:
    """The value of a constant, broadcast or not; None for anything else."""
    source = source_of(node)
    return np.broadcast_to(source.op.array, node.shape) if isinstance(source.op, ConstOp) else None
