"""Compute, while compiling, what depends on constants alone."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import rebuild
from cgraph.ops.leaf import Const, ConstOp
from cgraph.passes.rewrite import remade

_SMALL = 1 << 16


def fold_constants(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace pure nodes of constants by their value: fewer nodes.

    May worsen: bytes kept for good, so a result larger than its operands (a broadcast, a fill) is folded only while it
    is small. Not folded: ops that are not pure. The value is the op's meaning, which may differ in the last place from
    the kernel's.
    """

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = remade(node, operands)
        if not operands or not node.op.pure or isinstance(node.spec, Bundle):
            return node
        if not all(isinstance(x.op, ConstOp) for x in operands):
            return node
        if node.nbytes > max(_SMALL, sum(x.nbytes for x in operands)):
            return node
        with np.errstate(all="ignore"):
            value = node.op.meaning(*(x.op.array for x in operands))  # type: ignore[attr-defined]
        return Const(np.asarray(value, node.dtype), copy=True)

    return rebuild(outputs, change)
