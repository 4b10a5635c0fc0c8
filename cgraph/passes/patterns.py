"""What passes share that recognise ops written out as several."""

from collections.abc import Iterator

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots
from cgraph.ops.arithmetic import Add, Multiply
from cgraph.ops.shape import unbroadcast
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
