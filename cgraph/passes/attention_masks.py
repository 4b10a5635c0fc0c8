"""Masks of attention in separate ops: the keys that they hide, and their shape relative to that of the products."""

from functools import reduce
from math import inf
from operator import add

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.roots import New
from cgraph.ops.arithmetic import Cast
from cgraph.ops.compare import Where, logical_not
from cgraph.ops.diagonal import Triangle
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import broadcast_to, number_of, reshape, swapaxes, unbroadcast
from cgraph.record import Record

HIDDEN = -1e30  # a score with this added, or replaced by it, has no weight beside a visible one


class Mask(Record, eq=False):
    """A mask that hides keys, or numbers that are added to scores.

    Fields
        node: True where a key is seen, or numbers; what it is broadcast from
        lead: leading axes of the scores to which it is applied
        turned: these scores have keys before queries
        negated: it is True where a key is hidden
        more: other numbers that are added to the same array
        parts: the shape of these scores where queries or keys have several axes, such as rows and columns of an image;
            empty if they have one each
        whole: the shape that it has with one axis each
    """

    node: Node
    lead: tuple[int, ...]
    turned: bool = False
    negated: bool = False
    more: tuple[Node, ...] = ()
    parts: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()


def applied(mask: Mask, lead: tuple[int, ...], new: New) -> Node:
    """Return a mask, or factors, for scores of these leading axes; axes of length 1 stay where they can."""
    x = reduce(add, (new[y] for y in mask.more), new[mask.node])
    x = reshape(broadcast_to(x, mask.parts), mask.whole) if mask.parts else x
    x = reshape(x, (1,) * (len(mask.lead) + 2 - x.ndim) + x.shape)
    x = logical_not(x) if mask.negated else x
    x = swapaxes(x, -1, -2) if mask.turned else x
    shape, full = regrouped(x.shape[:-2], mask.lead, lead)
    return reshape(broadcast_to(x, (*full, *x.shape[-2:])), (*shape, *x.shape[-2:]))


def regrouped(
    narrow: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of an array under `new` axes, and the shape to which it must be broadcast before.

    Parameters
        narrow: its shape, for a broadcast to `old`

    >>> regrouped((1, 64, 1), (1, 64, 3), (64, 3))
    ((64, 1), (1, 64, 1))
    >>> regrouped((2, 1), (2, 4), (8,))
    ((8,), (2, 4))
    """
    shape, full = list(new), list(narrow)
    i = j = 0
    while i < len(old) or j < len(new):
        begin, start, size, other = i, j, 1, 1
        while (i, j) == (begin, start) or size != other:
            if size <= other and i < len(old):
                size, i = size * old[i], i + 1
            else:
                other, j = other * new[j], j + 1
        if all(n == 1 for n in narrow[begin:i]):
            shape[start:j] = [1] * (j - start)
        else:
            full[begin:i] = old[begin:i]
    return tuple(shape), tuple(full)


def is_lower_triangle(x: Node) -> bool:
    """Return True for a known bool ``[..., m, n]`` that is True on the main diagonal and below it."""
    x = unbroadcast(x)
    while isinstance(x.op, Cast):
        x = x.operands[0]
    if isinstance(x.op, Triangle):
        return x.op.offset == 0 and not x.op.upper and number_of(x.operands[0]) not in (None, 0.0)
    return isinstance(x.op, ConstOp) and is_triangle(x.op.array != 0)


def number_of_later_keys(x: Node) -> float | None:
    """Return the largest number that hides a later key in `x` ``[..., m, n]``, which is 0 on the main diagonal and
    below it.

    None if `x` is another matrix, or does not hide every later key.
    """
    x = unbroadcast(x)
    if isinstance(x.op, Where):
        visible, zero, low = x.operands
        value = number_of(low)
        hides = number_of(zero) == 0 and value is not None and value < HIDDEN and is_lower_triangle(visible)
        return value if hides else None
    if not isinstance(x.op, ConstOp) or not is_triangle(x.op.array == 0):
        return None
    value = float(x.op.array.max(initial=-inf, where=x.op.array != 0))
    return value if value < HIDDEN else None


def is_triangle(visible: np.ndarray) -> bool:
    """Return True if the array ``[..., m, n]`` is one matrix that is True exactly on and below its main diagonal."""
    if visible.ndim < 2 or visible.size != visible.shape[-1] * visible.shape[-2]:
        return False
    return bool((visible.reshape(visible.shape[-2:]) == (np.tri(*visible.shape[-2:]) > 0)).all())
