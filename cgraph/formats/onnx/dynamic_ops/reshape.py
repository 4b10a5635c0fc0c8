"""A value with axes of open length, or one whose new shape is open, under another shape.

Axes in front and behind that stay are left alone. Between them the elements lie together as they did where one open
axis comes first; elsewhere each is taken from where it lies, which is computed from the counts when run.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.dynamic.bounds import Length, Size, most, node_of, times
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.formats.onnx.dynamic.value import Array, lengths_of, made, node_in, resized
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import as_node

MOST_ROOM = 64  # times as many elements as there are


def reshaped(c: Context, x: Array, target: Sequence[Length]) -> Array:
    """The same elements in C order; one length may be -1. How many there are is checked when run.

    Raises
        FormatError: the shapes cannot hold as many elements
    """
    old = lengths_of(x)
    target = [open_rest(c, n, old, target) for n in target]
    new = [n if n != -1 else rest_of(c, old, [m for m in target if m != -1]) for n in target]
    c.limits.check_equal(counted(c, old), counted(c, new), c.unequal)
    front = common(old, new)
    back = common(old[front:][::-1], new[front:][::-1])
    ends = len(old) - back, len(new) - back
    shape = node_in(x).shape
    inner = rearranged(c, x, range(front, ends[0]), new[front : ends[1]])
    kept = dict(enumerate(old[:front])) | {ends[1] + i: n for i, n in enumerate(old[ends[0] :])}
    found = cg.reshape(inner, (*shape[:front], *room(c, x, new[front : ends[1]]), *shape[ends[0] :]))
    return made(found, kept | {front + i: n for i, n in enumerate(new[front : ends[1]])})


def common(x: Sequence[Length], y: Sequence[Length]) -> int:
    """How many lengths are the same from the beginning."""
    found = 0
    while found < min(len(x), len(y)) and x[found] == y[found]:
        found += 1
    return found


def counted(c: Context, lengths: Sequence[Length]) -> Length:
    """How many elements there are."""
    total = times(lengths)
    return c.limits.length(total) if isinstance(total, Node) else total


def rest_of(c: Context, old: Sequence[Length], others: Sequence[Length]) -> Length:
    """The length that is left for an axis beside others; an open one that both have stays what it is."""
    left, right = list(old), []
    for n in others:
        if isinstance(n, Size) and n in left:
            left.remove(n)
        else:
            right.append(n)
    known, wanted = (prod(n for n in v if not isinstance(n, Size)) for v in (left, right))
    if known and wanted and known % wanted == 0 and all(isinstance(n, int) for n in right):
        left, right = [known // wanted, *(n for n in left if isinstance(n, Size))], []
    if not right:
        sizes = [n for n in left if n != 1]
        return sizes[0] if len(sizes) == 1 else counted(c, left)
    whole, part = (counted(c, v) for v in (left, right))
    if part == 0:
        raise FormatError(f"shape {[n for n in others if isinstance(n, int)]} leaves axis -1 open")
    return c.limits.length(cg.floor_divide(node_of(whole), cg.maximum(node_of(part), 1)))


def open_rest(c: Context, length: Length, old: Sequence[Length], target: Sequence[Length]) -> Length:
    """A length that is what is left where it is -1 when run."""
    if not isinstance(length, Size) or length.low >= 0:
        return length
    others = cg.maximum(cg.abs(as_node(times(target))), 1)
    left = cg.floor_divide(as_node(times(old)), others)
    return c.limits.length(cg.where(cg.equal(length.node, -1), left, length.node))


def room(c: Context, x: Array, lengths: Sequence[Length]) -> list[int]:
    """The greatest length of each axis: no more than there are elements, given the others that are known."""
    size = node_in(x).size
    others = max(prod(n for n in lengths if isinstance(n, int)), 1)
    found = [n if isinstance(n, int) else int(min(most(n), size // others)) for n in lengths]
    if prod(found) > max(MOST_ROOM * size, SMALL):
        reason = (
            f"{size} elements would need room for {prod(found):,}, since {found} bound the axes, known only when run"
        )
        shape = c.value(1)
        missing = c.known.missing(shape) if isinstance(shape, Node) else []
        raise UnknownError(reason, {}, missing, c.read[1:2] if missing else c.written[:1])
    return found


def rearranged(c: Context, x: Array, axes: range, new: Sequence[Length]) -> Node:
    """Some axes as one, with as many elements as `room` has for the new lengths."""
    node, old = node_in(x), [lengths_of(x)[a] for a in axes]
    shape = [node.shape[a] for a in axes]
    flat = cg.reshape(node, (*node.shape[: axes.start], prod(shape), *node.shape[axes.stop :]))
    rooms = room(c, x, new)
    if lies_together(old) and lies_together(new):
        return resized(flat, axes.start, prod(rooms))
    place = np.zeros((), np.int64)
    steps: Any = c.limits.steps(prod(rooms))
    number = raveled(unraveled(steps, rooms), new)
    place = raveled(unraveled(number, old), shape)
    return cg.take(flat, cg.clip(place, 0, max(prod(shape) - 1, 0)), axes.start)


def lies_together(lengths: Sequence[Length]) -> bool:
    """The elements of a value lie one after another in an array that has more room."""
    wide = [n for n in lengths if n != 1]
    return all(isinstance(n, int) for n in wide[1:])


def unraveled(number: Any, lengths: Sequence[Length]) -> list[Any]:
    """The position along each axis of an element by its number."""
    found = []
    for n in reversed(lengths):
        n = cg.maximum(node_of(n), 1) if isinstance(n, Size) else max(n, 1)
        found.append(cg.remainder(number, n))
        number = cg.floor_divide(number, n)
    return found[::-1]


def raveled(places: Sequence[Any], lengths: Sequence[Length]) -> Any:
    """The number of an element by its position along each axis."""
    found: Any = 0
    for place, n in zip(places, lengths):
        found = found * (node_of(n) if isinstance(n, Size) else n) + place
    return found
