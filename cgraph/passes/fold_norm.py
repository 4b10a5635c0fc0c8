"""Batch normalisation by constant statistics as one factor and one sum for each channel."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.norm import BatchNorm
from cgraph.ops.shape import broadcast_to
from cgraph.passes.rewrite import rewrite


def fold_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """What follows may take the factor into a convolution's filters. Values change in the last places."""
    return rewrite(outputs, RULES)


def norm_of_constants(node: Node) -> Node | None:
    """batch_norm(x, s, h, mean, variance) -> x * a + b, where a = s / sqrt(variance + eps), b = h - mean * a"""
    x, *parameters = node.operands
    if not all(isinstance(p.op, ConstOp) for p in parameters):
        return None
    scale, shift, mean, variance = (p.op.array.astype(np.float64) for p in parameters)  # type: ignore[attr-defined]
    factor = scale / np.sqrt(variance + node.op.eps)  # type: ignore[attr-defined]
    shape = (-1, *[1] * (x.ndim - 2))
    a, b = (Const(v.astype(x.dtype).reshape(shape)) for v in (factor, shift - mean * factor))
    return x * broadcast_to(a, x.shape) + broadcast_to(b, x.shape)


RULES = [(BatchNorm, norm_of_constants)]
