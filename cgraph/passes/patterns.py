"""Patterns shared by passes that recognise ops written as several."""

from collections.abc import Iterator
from math import prod

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.roots import New, Roots
from cgraph.ops.arithmetic import Abs, Add, Multiply, Reciprocal, Square, TrueDivide
from cgraph.ops.compare import Where
from cgraph.ops.elementary import Sqrt
from cgraph.ops.reduce import Sum, keepdims_shape
from cgraph.ops.shape import Reshape, broadcast_to, full, number_of, reshape, unbroadcast
from cgraph.passes.fold_constants import is_constant


def is_closed(graph: Roots, root: Node, leaves: tuple[Node, ...]) -> bool:
    """Return True if nobody but `root` needs the values between it and `leaves`, constants left out."""
    inner, ends, rest = {root}, set(leaves), list(root.operands)
    while rest:
        node = rest.pop()
        if node in inner or node in ends or is_constant(node):
            continue
        if not node.operands:
            return False  # a value that the pattern does not have
        inner.add(node)
        rest += node.operands
    return all(x is root or x not in graph.ends and inner.issuperset(graph.users[x]) for x in inner)


def is_nearly(number: float, value: float, like: Node) -> bool:
    """Return True if both are one number, up to two roundings to the dtype of `like`."""
    return abs(number - value) <= 2 * np.finfo(like.dtype).eps * abs(value)


def affine_forms(root: Node) -> Iterator[tuple[Node, Node | None, Node | None]]:
    """Yield (y, factor, term) for which ``y * factor + term`` is the node, as it is and with parts that are None."""
    yield root, None, None
    for y, term in either(root, Add):
        yield y, None, term
        for z, factor in either(y, Multiply):
            yield z, factor, term
    for y, factor in either(root, Multiply):
        yield y, factor, None


def either(node: Node, op: type) -> tuple[tuple[Node, Node], ...]:
    """Return the operands of a binary op in both orders; nothing if the node is of another op."""
    if not isinstance(node.op, op):
        return ()
    x, y = node.operands
    return (x, y), (y, x)


def shape_from_the_right(x: Node, ndim: int) -> tuple[int, ...]:
    """Return the shape of the operand of a broadcast to `ndim` axes, with ones in front."""
    shape = unbroadcast(x).shape
    return (*[1] * (ndim - len(shape)), *shape)


def varies_along_last(x: Node | None, ndim: int, axes: int) -> bool:
    """Return True if a factor or term, broadcast to `ndim` axes, differs along the last axes only; also for None."""
    return x is None or set(shape_from_the_right(x, ndim)[:-axes]) <= {1}


def over_last_axes(x: Node | None, number: float, like: Node, axes: int, new: New) -> Node:
    """Return a factor or term in the shape of the last axes of `like`; `number` in each element for None."""
    shape = like.shape[-axes:]
    if x is None:
        return full(shape, number, like.dtype)
    return broadcast_to(reshape(new[unbroadcast(x)], shape_from_the_right(x, like.ndim)[-axes:]), shape)


def is_square_of(node: Node, x: Node) -> bool:
    """Return True if the node is ``square(x)`` or ``x * x``."""
    return isinstance(node.op, Square | Multiply) and all(y is x for y in node.operands)


def roots_with_eps(node: Node) -> Iterator[tuple[Node, Node, Node, float]]:
    """Yield (x, y, total, eps) for which ``x / sqrt(y + eps)`` is the node: y is `total` over a number, eps >= 0."""
    for x, sum_with_eps in root_quotients(node):
        for y, added in either(sum_with_eps, Add):
            eps, total = number_of(added), sum_behind(y)
            if eps is not None and eps >= 0 and total is not None:
                yield x, y, total, eps


def root_quotients(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield (x, y) for which ``x / sqrt(y)`` is the node: a quotient, or a product with a reciprocal root.

    Powers by a half are roots here: where they differ, y is negative infinity.
    """
    is_quotient = isinstance(node.op, TrueDivide)
    for x, y in [node.operands] if is_quotient else either(node, Multiply):
        root = y if is_quotient else inverted(y)
        root = None if root is None else without_corner(unbroadcast(root))
        if root is not None and isinstance(root.op, Sqrt):
            yield x, root.operands[0]


def inverted(node: Node) -> Node | None:
    """Return the node whose reciprocal a node is, as ``1 / y`` or a reciprocal; None if it is neither."""
    node = without_corner(unbroadcast(node))
    if isinstance(node.op, Reciprocal):
        return node.operands[0]
    return node.operands[1] if isinstance(node.op, TrueDivide) and number_of(node.operands[0]) == 1 else None


def without_corner(node: Node) -> Node:
    """Return the root in a power by 0.5 or -0.5 as `multiply_powers` writes it; another node as it is."""
    if not isinstance(node.op, Where):
        return node
    corner, _, value = node.operands
    root = value.operands[0] if isinstance(value.op, Abs) else value
    inner = root.operands[0] if isinstance(root.op, Reciprocal) else root
    is_power = isinstance(inner.op, Sqrt) and corner.op.name == "equal" and corner.operands[0] is inner.operands[0]
    return root if is_power and number_of(corner.operands[1]) == -np.inf else node


def axes_of_mean(node: Node, x: Node) -> int | None:
    """Return over how many of its last axes the node is the mean of `x`, perhaps broadcast; None if it is another."""
    node = unbroadcast(node)
    total = sum_behind(node)
    if total is None or total.operands[0] is not x or not x.size:
        return None
    axes = total.op.axes  # type: ignore[attr-defined]
    last = tuple(range(x.ndim - len(axes), x.ndim))
    if axes != last or node.shape != keepdims_shape(x.shape, axes) or total.dtype != x.dtype:
        return None
    return len(axes) if count_behind(node) == prod(x.shape[a] for a in axes) else None


def sum_behind(node: Node) -> Node | None:
    """Return the sum of which the node is a quotient by a number, in any shape."""
    node = without_shape(node)
    total = without_shape(node.operands[0]) if isinstance(node.op, TrueDivide) else node
    return total if total is not node and isinstance(total.op, Sum) else None


def count_behind(node: Node) -> float | None:
    """Return the number by which a sum is divided."""
    return number_of(without_shape(node).operands[1])


def without_shape(node: Node) -> Node:
    """Return the node before it was reshaped."""
    while isinstance(node.op, Reshape):
        node = node.operands[0]
    return node
