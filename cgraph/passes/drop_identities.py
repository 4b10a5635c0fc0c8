"""Removal of identities, of shape ops that undo or follow one another, and of empty sums."""

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.ops.arithmetic import Add, Multiply, Negative, Subtract, TrueDivide
from cgraph.ops.conv import CONV, ConvFilters, ConvTranspose
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import BroadcastTo, Contiguous, Full, Reshape, Transpose, zeros
from cgraph.ops.slicing import SetSlice
from cgraph.ops.stop import CustomGradient, StopGradient

_MOST_LOOKED_AT = 1 << 16


def drop_identities(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Remove nodes that return an operand unchanged, or only zeros: same values, never more nodes.

    Not dropped: ``x * 0 -> 0``, which would hide a NaN or an infinity in `x`.
    """
    return rewrite(outputs, RULES)


def is_all(node: Node, value: float) -> bool:
    """Return True if the node is a constant, broadcast or not, with this value everywhere."""
    while isinstance(node.op, BroadcastTo | Reshape):
        node = node.operands[0]
    if not isinstance(node.op, ConstOp) or node.nbytes > _MOST_LOOKED_AT:
        return False
    return bool(np.all(node.op.array == value))


def add_zero(node: Node) -> Node | None:
    """x + 0 -> x, 0 + x -> x"""
    x, y = node.operands
    return x if is_all(y, 0) else y if is_all(x, 0) else None


def add_slice(node: Node) -> Node | None:
    """x + set_slice(0, y) -> set_slice(x, y), x being zeros with other slices set, as in the gradients of a split"""
    for x, part in (node.operands, node.operands[::-1]):
        if isinstance(part.op, SetSlice) and is_zeros(part.operands[0]):
            base, y = x, part.operands[1]
            place = part.op.place(y.spec)
            while isinstance(base.op, SetSlice) and place.is_apart_from(base.op.place(base.operands[1].spec)):
                base = base.operands[0]
            if is_zeros(base):
                return apply(part.op, x, y)
    return None


def is_zeros(node: Node) -> bool:
    """Return True for zeros of any size."""
    return isinstance(node.op, Full) and node.op.value == 0 or is_all(node, 0)


def subtract_zero(node: Node) -> Node | None:
    """x - 0 -> x"""
    x, y = node.operands
    return x if is_all(y, 0) else None


def multiply_one(node: Node) -> Node | None:
    """x * 1 -> x, 1 * x -> x"""
    x, y = node.operands
    return x if is_all(y, 1) else y if is_all(x, 1) else None


def divide_one(node: Node) -> Node | None:
    """x / 1 -> x"""
    x, y = node.operands
    return x if is_all(y, 1) else None


def negative_twice(node: Node) -> Node | None:
    """-(-x) -> x"""
    x = node.operands[0]
    return x.operands[0] if isinstance(x.op, Negative) else None


def reshape_reshape(node: Node) -> Node | None:
    """reshape(reshape(x)) -> reshape(x); reshape to the same shape -> x"""
    x = node.operands[0]
    if x.shape == node.shape:
        return x
    return apply(node.op, x.operands[0]) if isinstance(x.op, Reshape) else None


def transpose_transpose(node: Node) -> Node | None:
    """transpose(transpose(x)) -> transpose(x); a transpose that moves no axis -> x"""
    x, axes = node.operands[0], node.op.axes  # type: ignore[attr-defined]
    if axes == tuple(range(len(axes))):
        return x
    if not isinstance(x.op, Transpose):
        return None
    return apply(Transpose(tuple(x.op.axes[a] for a in axes)), x.operands[0])


def broadcast_broadcast(node: Node) -> Node | None:
    """broadcast(broadcast(x)) -> broadcast(x); broadcast to the same shape -> x"""
    x = node.operands[0]
    if x.shape == node.shape:
        return x
    return apply(node.op, x.operands[0]) if isinstance(x.op, BroadcastTo) else None


def contiguous_twice(node: Node) -> Node | None:
    """contiguous(contiguous(x)) -> contiguous(x)"""
    x = node.operands[0]
    return x if isinstance(x.op, Contiguous) else None


def gradient_is_taken(node: Node) -> Node | None:
    """stop_gradient(x) -> x, custom_gradient(x, ...) -> x: no gradient is taken of a graph that is compiled"""
    return node.operands[0]


def sum_of_nothing(node: Node) -> Node | None:
    """a convolution with no element on one side -> zeros"""
    return None if all(x.size for x in node.operands) else zeros(node.shape, node.dtype)


RULES = [
    (Add, add_zero),
    (Add, add_slice),
    (Subtract, subtract_zero),
    (Multiply, multiply_one),
    (TrueDivide, divide_one),
    (Negative, negative_twice),
    (Reshape, reshape_reshape),
    (Transpose, transpose_transpose),
    (BroadcastTo, broadcast_broadcast),
    (Contiguous, contiguous_twice),
    (StopGradient, gradient_is_taken),
    (CustomGradient, gradient_is_taken),
    *((kind, sum_of_nothing) for kind in (*CONV.values(), ConvTranspose, ConvFilters)),
]
