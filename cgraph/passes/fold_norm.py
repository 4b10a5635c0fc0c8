"""Decomposition of batch normalisation, so that neighbouring ops can absorb it."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.rewrite import rewrite
from cgraph.ops.elementary import sqrt
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.norm import BatchNorm, per_channel
from cgraph.ops.shape import broadcast_to


def fold_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Decompose batch norms with constant statistics into one factor and one term per channel, which a convolution
    absorbs; others into pointwise ops, which are fused with what follows. Values change in the last places.
    """
    return rewrite(outputs, RULES)


def norm_of_constants(node: Node) -> Node | None:
    """batch_norm(x, s, h, mean, variance) -> x * a + b, where a = s / sqrt(variance + eps), b = h - mean * a

    All of them must be finite: a product by an infinite `a` and a sum would give NaN in place of infinity.
    """
    x, *parameters = node.operands
    if not all(isinstance(p.op, ConstOp) for p in parameters):
        return None
    scale, shift, mean, variance = (p.op.array.astype(np.float64) for p in parameters)  # type: ignore[attr-defined]
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + node.op.eps)  # type: ignore[attr-defined]
        offset = shift - mean * factor
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return None
    shape = (-1, *[1] * (x.ndim - 2))
    a, b = (Const(v.astype(x.dtype).reshape(shape)) for v in (factor, offset))
    return x * broadcast_to(a, x.shape) + broadcast_to(b, x.shape)


def norm_of_values(node: Node) -> Node:
    """batch_norm(x, s, h, mean, variance) -> (x - mean) * (s / sqrt(variance + eps)) + h"""
    x, scale, shift, mean, variance = node.operands
    factor = scale / sqrt(variance + node.op.eps)  # type: ignore[attr-defined]
    a, b, m = (broadcast_to(per_channel(v, x.ndim), x.shape) for v in (factor, shift, mean))
    return (x - m) * a + b


RULES = [(BatchNorm, norm_of_constants), (BatchNorm, norm_of_values)]
