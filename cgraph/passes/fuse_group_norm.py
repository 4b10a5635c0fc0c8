"""Detection of group normalisation that exporters write as instance normalisation of groups, scaled per channel."""

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply
from cgraph.ops.leaf import ConstOp
from cgraph.ops.norm import GroupNorm
from cgraph.ops.shape import Reshape, broadcast_to, full, number_of, reshape, unbroadcast
from cgraph.passes.patterns import affine_forms, is_closed, shape_from_the_right


def fuse_group_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """reshape(group_norm(reshape(x), 1, 0)) * scale + shift -> group_norm(x, scale, shift), if no other node reads the
    values in between: one pass over x fewer.

    The norm takes each group as a channel, as ``InstanceNormalization`` of ``[n, groups, ...]``, or is one of `x`
    itself. `scale` and `shift` differ only between channels. Values change in the last places.
    """
    graph = Roots.of(outputs)
    if not graph.has(GroupNorm):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Add | Multiply) or node.ndim < 2:
            return None
        for y, scale, shift in affine_forms(node):
            parts = plain_norm(y)
            if parts is None or not (is_by_channel(scale, y) and is_by_channel(shift, y)):
                continue
            x, groups, eps = parts
            if is_closed(graph, node, tuple(v for v in (x, scale, shift) if v is not None)):
                parameters = [channels(v, y, number, new) for v, number in ((scale, 1.0), (shift, -0.0))]
                return apply(GroupNorm(groups, eps), new[x], *parameters)
        return None

    return rebuild(graph, change)


def plain_norm(node: Node) -> tuple[Node, int, float] | None:
    """Return x, the groups and eps of a norm without scale and shift, which may be one of x in another shape."""
    norm = node.operands[0] if isinstance(node.op, Reshape) else node
    if not isinstance(norm.op, GroupNorm):
        return None
    inner, scale, shift = norm.operands
    if not (is_filled(scale, 1.0) and is_filled(shift, 0.0)):
        return None
    if norm is node:
        return inner, norm.op.groups, norm.op.eps
    x, (n, groups) = inner.operands[0] if isinstance(inner.op, Reshape) else inner, inner.shape[:2]
    fits = x.shape == node.shape and x.shape[0] == n and groups > 0 and x.shape[1] % groups == 0
    return (x, groups, norm.op.eps) if fits and norm.op.groups == groups else None


def is_filled(node: Node, number: float) -> bool:
    """Return True for a constant all of whose elements are this number."""
    node = unbroadcast(node)
    return number_of(node) == number or isinstance(node.op, ConstOp) and bool(np.all(node.op.array == number))


def is_by_channel(parameter: Node | None, y: Node) -> bool:
    """Return True if a factor or term differs only along axis 1."""
    if parameter is None:
        return True
    first, _, *rest = shape_from_the_right(parameter, y.ndim)
    return {first, *rest} <= {1}


def channels(parameter: Node | None, y: Node, number: float, new: New) -> Node:
    """Return a factor or term as ``[c]``."""
    shape = y.shape[1:2]
    if parameter is None:
        return full(shape, number, y.dtype)
    size = shape_from_the_right(parameter, y.ndim)[1]
    return broadcast_to(reshape(new[unbroadcast(parameter)], (size,)), shape)
