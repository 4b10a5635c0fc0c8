"""Reshape of values with dynamic lengths, or to a shape with dynamic lengths.

Equal leading and trailing axes stay unchanged. Between them, the elements are contiguous if the only dynamic axis comes
first; otherwise a run gathers each element from its position, computed from the lengths.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.dynamic.bounds import Length, Size, most, node_of, product_of
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.formats.onnx.dynamic.value import Array, lengths_of, node_in, resize_axis, with_lengths
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import as_node

MOST_ROOM = 64  # largest ratio of the maximum size of a result to the size of its operand


def reshape_to(c: Context, x: Array, target: Sequence[Length]) -> Array:
    """Reshape a value; one length may be -1. A run checks the number of elements.

    Raises
        FormatError: the shapes differ in the number of elements
    """
    old = lengths_of(x)
    target = keep_rows(c, x, [open_rest(c, n, old, target) for n in target])
    new = [n if n != -1 else rest_of(c, old, [m for m in target if m != -1]) for n in target]
    c.limits.check_equal(element_count(c, old), element_count(c, new), c.unequal)
    front = common_prefix(old, new)
    back = common_prefix(old[front:][::-1], new[front:][::-1])
    ends = len(old) - back, len(new) - back
    shape = node_in(x).shape
    inner = merge_axes(c, x, range(front, ends[0]), new[front : ends[1]])
    lengths = dict(enumerate(old[:front])) | {ends[1] + i: n for i, n in enumerate(old[ends[0] :])}
    node = cg.reshape(inner, (*shape[:front], *max_lengths(c, x, new[front : ends[1]]), *shape[ends[0] :]))
    return with_lengths(node, lengths | {front + i: n for i, n in enumerate(new[front : ends[1]])})


def keep_rows(c: Context, x: Array, target: Sequence[Length]) -> Sequence[Length]:
    """Return a shape ``[n, -1 …]`` with the length of axis 0 of `x` for n, if the result would need too much room else.

    Exporters count the rows of one value and reshape another one by the count; a run checks that both are equal.
    """
    old = lengths_of(x)
    first = target[0] if old and target else 0
    if not isinstance(first, Size) or not isinstance(old[0], Size) or first == old[0] or -1 not in target[1:]:
        return target
    rest = element_count(c, old)
    if needs_room(node_in(x).size, max_sizes(x, [rest if n == -1 else n for n in target])):
        c.limits.check_equal(first, old[0], c.unequal)
        return [old[0], *target[1:]]
    return target


def common_prefix(x: Sequence[Length], y: Sequence[Length]) -> int:
    """Return the length of the common prefix."""
    count = 0
    while count < min(len(x), len(y)) and x[count] == y[count]:
        count += 1
    return count


def element_count(c: Context, lengths: Sequence[Length]) -> Length:
    """Return the number of elements."""
    total = product_of(lengths)
    return c.limits.length(total) if isinstance(total, Node) else total


def rest_of(c: Context, old: Sequence[Length], others: Sequence[Length]) -> Length:
    """Return the length of axis -1, given the others; common dynamic lengths cancel."""
    left, right = list(old), []
    for n in others:
        if isinstance(n, Size) and n in left:
            left.remove(n)
        else:
            right.append(n)
    left_product, right_product = (prod(n for n in v if not isinstance(n, Size)) for v in (left, right))
    if left_product and right_product and left_product % right_product == 0 and all(isinstance(n, int) for n in right):
        left, right = [left_product // right_product, *(n for n in left if isinstance(n, Size))], []
    if not right:
        sizes = [n for n in left if n != 1]
        return sizes[0] if len(sizes) == 1 else element_count(c, left)
    whole, part = (element_count(c, v) for v in (left, right))
    if part == 0:
        raise FormatError(
            f"shape {[n for n in others if isinstance(n, int)]} leaves axis -1 undetermined: give its length"
        )
    return c.limits.length(cg.floor_divide(node_of(whole), cg.maximum(node_of(part), 1)))


def open_rest(c: Context, length: Length, old: Sequence[Length], target: Sequence[Length]) -> Length:
    """Return a length that is the remaining one if it is -1 at run time."""
    if not isinstance(length, Size) or length.low >= 0:
        return length
    others = cg.maximum(cg.abs(as_node(product_of(target))), 1)
    left = cg.floor_divide(as_node(product_of(old)), others)
    return c.limits.length(cg.where(cg.equal(length.node, -1), left, length.node))


def max_lengths(c: Context, x: Array, lengths: Sequence[Length]) -> list[int]:
    """Return the maximum of each length. UnknownError if they need much more room than `x`."""
    size, sizes = node_in(x).size, max_sizes(x, lengths)
    if needs_room(size, sizes):
        reason = (
            f"{size} elements would need room for {prod(sizes):,}, since {sizes} bound the axes, known only at run time"
        )
        shape = c.value(1)
        missing = c.evaluator.missing(shape) if isinstance(shape, Node) else []
        raise UnknownError(reason, {}, missing, c.read[1:2] if missing else c.written[:1])
    return sizes


def max_sizes(x: Array, lengths: Sequence[Length]) -> list[int]:
    """Return the maximum of each length: at most the number of elements over the product of the fixed lengths."""
    size, others = node_in(x).size, max(prod(n for n in lengths if isinstance(n, int)), 1)
    return [n if isinstance(n, int) else int(min(most(n), size // others)) for n in lengths]


def needs_room(size: int, sizes: Sequence[int]) -> bool:
    """Return True if a result needs much more room than its operand of `size` elements."""
    return prod(sizes) > max(MOST_ROOM * size, SMALL)


def merge_axes(c: Context, x: Array, axes: range, new: Sequence[Length]) -> Node:
    """Return some axes as one axis, with the maximum number of elements of the new lengths."""
    node, old = node_in(x), [lengths_of(x)[a] for a in axes]
    shape = [node.shape[a] for a in axes]
    flat = cg.reshape(node, (*node.shape[: axes.start], prod(shape), *node.shape[axes.stop :]))
    rooms = max_lengths(c, x, new)
    if is_contiguous(old) and is_contiguous(new):
        return resize_axis(flat, axes.start, prod(rooms))
    place = np.zeros((), np.int64)
    steps: Any = c.limits.steps(prod(rooms))
    number = ravel(unravel(steps, rooms), new)
    place = ravel(unravel(number, old), shape)
    return cg.take(flat, cg.clip(place, 0, max(prod(shape) - 1, 0)), axes.start)


def is_contiguous(lengths: Sequence[Length]) -> bool:
    """Return True if the elements of a value are contiguous in its array."""
    wide = [n for n in lengths if n != 1]
    return all(isinstance(n, int) for n in wide[1:])


def unravel(number: Any, lengths: Sequence[Length]) -> list[Any]:
    """Return the index along each axis of an element by its flat index."""
    digits = []
    for n in reversed(lengths):
        n = cg.maximum(node_of(n), 1) if isinstance(n, Size) else max(n, 1)
        digits.append(cg.remainder(number, n))
        number = cg.floor_divide(number, n)
    return digits[::-1]


def ravel(places: Sequence[Any], lengths: Sequence[Length]) -> Any:
    """Return the flat index of an element by its index along each axis."""
    number: Any = 0
    for place, n in zip(places, lengths):
        number = number * (node_of(n) if isinstance(n, Size) else n) + place
    return number
