"""Storage of large constant weights in a storage dtype: rounded, in fewer bytes."""

from collections.abc import Callable

import numpy as np

from cgraph.dtypes.convert import FLOAT32, convert
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, rebuild
from cgraph.kernels.mapped import release
from cgraph.ops.arithmetic import astype
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.shape import BroadcastTo, Transpose
from cgraph.ops.take import Take
from cgraph.passes.widen_late import widen_late
from cgraph.record import replace


def hold_weights(outputs: tuple[Node, ...], dtype: np.dtype) -> tuple[Node, ...]:
    """Store constants above 64 KiB in a storage dtype: filters, right sides of products, and tables of `take`.

    Each of their float32 numbers is rounded to `dtype`, once, after the factors of a batch norm were multiplied in;
    results are those of float32 constants with the rounded values. Nothing else changes.
    """
    rounded: dict[tuple[Node, Node | None], Node] = {}

    def weights(node: Node, scale: Node | None = None) -> Node:
        """Return the constant, times a factor for each filter, stored in `dtype` and widened."""
        if (node, scale) not in rounded:
            op = node.op
            assert isinstance(op, ConstOp)
            scaled = op.array if scale is None else op.array * scale.op.array[:, None, None, None]  # type: ignore[attr-defined]
            rounded[node, scale] = astype(Const(convert(scaled, dtype), name=op.label, copy=False), FLOAT32)
            release(op.array)
        return rounded[node, scale]

    def change(node: Node, new: New) -> Node | None:
        rule = RULES.get(type(node.op))
        return rule(node, tuple([new[x] for x in node.operands]), weights) if rule else None

    return widen_late(rebuild(outputs, change))


Weights = Callable[..., Node]  # keys: a constant, and a factor for each filter or None


def is_large(node: Node) -> bool:
    return isinstance(node.op, ConstOp) and node.dtype == FLOAT32 and node.nbytes > HASHED_NBYTES


def of_filters(node: Node, operands: tuple[Node, ...], weights: Weights) -> Node | None:
    """A convolution by constant filters, which absorb the factors after them. Depthwise and transposed ones have few
    filters or pack them as floats.
    """
    op, x, filters, *rest = node.op, *operands
    assert isinstance(op, ConvEpilogue)
    if not is_large(filters) or isinstance(op.conv, ConvTranspose) or filters.shape[1] == 1:
        return None
    scale = rest.pop(0) if op.has_scale else None
    return apply(replace(op, has_scale=False), x, weights(filters, scale), *rest)


def of_matrix(node: Node, operands: tuple[Node, ...], weights: Weights) -> Node | None:
    """A product whose right side is constant, perhaps transposed or broadcast."""
    x, y, *rest = operands
    views = []
    while isinstance(y.op, BroadcastTo | Transpose):
        views.append(y.op)
        y = y.operands[0]
    if not is_large(y):
        return None
    y = weights(y)
    for view in reversed(views):
        y = apply(view, y)
    return apply(node.op, x, y, *rest)


def of_table(node: Node, operands: tuple[Node, ...], weights: Weights) -> Node | None:
    """Rows taken from a constant."""
    return apply(node.op, weights(operands[0]), operands[1]) if is_large(operands[0]) else None


RULES = {ConvEpilogue: of_filters, Matmul: of_matrix, MatmulEpilogue: of_matrix, Take: of_table}
