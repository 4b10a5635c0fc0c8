"""Slices, joins, repeats and padding whose lengths or bounds are known only at run time.

Each gathers elements along an axis at indices that a run computes. Indices in the padding may have any value, so they
are clipped to the array.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.dynamic.apart import most_apart
from cgraph.formats.onnx.dynamic.bounds import Length, Size, most, node_of
from cgraph.formats.onnx.dynamic.distance import exact_distance
from cgraph.formats.onnx.dynamic.value import (
    Array,
    Ragged,
    common_length,
    counts_of,
    lengths_of,
    node_in,
    pads_zeros,
    part_of_axis,
    resize_axis,
    with_lengths,
)
from cgraph.ir.graph import Node


def take_along(c: Context, x: Array, axis: int, places: Any, length: Length) -> Array:
    """Gather the elements at indices along an axis, of which the first `length` count; indices are clipped."""
    node = node_in(x)
    if not node.shape[axis]:
        node = resize_axis(node, axis, 1)
    items = cg.take(node, cg.clip(places, 0, node.shape[axis] - 1), axis)
    return with_lengths(items, {**counts_of(x), axis: length})


def as_length(c: Context, node: Any) -> Length:
    """Return a computed length, from a number or a node."""
    return c.limits.length(node) if isinstance(node, Node) else int(node)


def clip_index(at: Any, low: Any, high: Any) -> Any:
    """Clip a number or node between two others."""
    if isinstance(at, Node) or isinstance(high, Node):
        return cg.maximum(cg.minimum(at, high), low)
    return max(min(at, high), low)


def wrap_index(at: Any, n: Any) -> Any:
    """Resolve an index that counts from the end if negative."""
    if isinstance(at, Node):
        return cg.where(at < 0, at + n, at)
    return at if at >= 0 else n + at


def unwrap(length: Length) -> Any:
    """Return a length as a number or a node."""
    return node_of(length) if isinstance(length, Size) else length


def slice_axis(c: Context, x: Array, axis: int, start: Length, end: Length, step: int) -> Array:
    """Slice along an axis, by ONNX's rules for bounds outside it."""
    if step == 0:
        raise FormatError(f"step {step} is not supported: give a step above or below 0")
    room, length = node_in(x).shape[axis], lengths_of(x)[axis]
    n = unwrap(length)
    rows = rows_inside(c, length, start, end) if step == 1 else None
    if rows is not None:
        return take_along(c, x, axis, unwrap(start) + c.limits.steps(rows), rows)
    first, last = (wrap_index(unwrap(v), n) for v in (start, end))
    if step > 0:
        first, last = clip_index(first, 0, n), clip_index(last, 0, n)
        count = clip_index((last - first + step - 1) // step, 0, n)
        if isinstance(start, Size) and isinstance(end, Size) and isinstance(count, Node):
            limit_count(c, count, most_apart(end.node, start.node), step)
    else:
        first, last = clip_index(first, -1, n - 1), clip_index(last, -1, n - 1)
        count = clip_index((first - last - step - 1) // -step, 0, n)
    size = as_length(c, count)
    places = int(min(most(size), ceil(room / abs(step)), c.maximum if isinstance(size, Size) else room))
    if isinstance(first, int) and step > 0:
        return with_lengths(
            part_of_axis(node_in(x), axis, slice(first, first + places * step, step)), {**counts_of(x), axis: size}
        )
    return take_along(c, x, axis, first + c.limits.steps(places) * step, size)


def rows_inside(c: Context, length: Length, start: Length, end: Length) -> int | None:
    """Return the number of elements of a slice from a computed start, if it is inside the axis in all runs."""
    if not isinstance(start, Size) or not isinstance(end, Size) or isinstance(length, Size):
        return None
    rows = exact_distance(c.limits, end, start)
    return rows if rows is not None and rows >= 0 and start.low >= 0 and end.high <= length else None


def limit_count(c: Context, count: Node, apart: int | None, step: float) -> None:
    """Bound a number of positions by the distance of their ends, if it is known: a run checks it."""
    if apart is not None:
        most_positions = max(ceil(apart / step), 0)
        c.limits.limit(count, most_positions, f"{c.unequal}: there are more than {most_positions} positions")


def join_along(c: Context, values: Sequence[Array], axis: int) -> Array:
    """Concatenate values along an axis without gaps."""
    axis = axis + values[0].ndim if axis < 0 else axis
    values = list(values)
    lengths: dict[int, Length] = {}
    for a in range(values[0].ndim):
        beside = [lengths_of(x)[a] for x in values]
        if a != axis and any(isinstance(n, Size) for n in beside):
            lengths[a] = common_length(c.limits, beside, c.unequal)
    nodes = [shrink(x, lengths) for x in values]
    parts = [lengths_of(x)[axis] for x in values]
    if holds_all(nodes[0], parts, axis):
        return append_along(c, values, nodes, axis, lengths)
    whole = cg.concat(nodes, axis)
    if not any(isinstance(n, Size) for n in parts):
        return with_lengths(whole, lengths)
    places: Any = c.limits.steps(whole.shape[axis])
    begin: Any = 0  # offset of a part in the value, and in the array
    room, moved = 0, places
    for node, part in zip(nodes, parts):
        moved = cg.where(places >= begin, places + (room - begin), moved)
        begin, room = begin + unwrap(part), room + node.shape[axis]
    return take_along(c, with_lengths(whole, lengths), axis, moved, as_length(c, begin))


def holds_all(first: Node, parts: Sequence[Length], axis: int) -> bool:
    """Return True if the array of the first part is large enough for all parts, as the state of a loop that grows."""
    return isinstance(parts[0], Size) and sum(map(most, parts)) <= first.shape[axis]


def append_along(
    c: Context, values: Sequence[Array], nodes: Sequence[Node], axis: int, lengths: dict[int, Length]
) -> Array:
    """Write all parts but the first behind it, into its array. Nothing is copied if no later step reads it."""
    first, *others = values
    whole, end = nodes[0], node_of(lengths_of(first)[axis])
    for node, x in zip(nodes[1:], others):
        whole, end = cg.set_rows(whole, end, node, axis), end + unwrap(lengths_of(x)[axis])
    result = with_lengths(whole, {**lengths, axis: c.limits.length(end)})
    if isinstance(first, Ragged) and pads_zeros(c.limits, first) and all(isinstance(x, Node) for x in others):
        c.limits.zero_padded[whole] = {a: n.node for a, n in counts_of(result).items()}
    return result


def shrink(x: Array, lengths: dict[int, Length]) -> Node:
    """Cut an array along some axes to the maximum of lengths."""
    node = node_in(x)
    for axis, length in lengths.items():
        node = resize_axis(node, axis, int(most(length)))
    return node


def repeat(c: Context, x: Array, axis: int, times: Length) -> Array:
    """Repeat a whole axis `times` times."""
    length = lengths_of(x)[axis]
    size = as_length(c, unwrap(length) * unwrap(times))
    room = c.room(size, [1], axis)
    places = cg.remainder(c.limits.steps(room), cg.maximum(node_of(length), 1))
    return take_along(c, x, axis, places, size)


def pad_axis(c: Context, x: Array, axis: int, before: Length, size: Length, mode: str, value: Any) -> Array:
    """Pad an axis to `size` elements, `before` of them in front; negative values cut."""
    n = node_of(lengths_of(x)[axis])
    room = c.room(size, [1], axis)
    places = c.limits.steps(room) - unwrap(before)
    if mode == "constant":
        items = take_along(c, x, axis, places, size)
        within_x = cg.logical_and(places >= 0, places < n)
        around = cg.reshape(value, ()) if isinstance(value, Node) else np.asarray(value, x.dtype)
        node = cg.where(align_row(within_x, node_in(items), axis), node_in(items), around)
        return with_lengths(node, {**counts_of(x), axis: size})
    if mode == "wrap":
        places = cg.remainder(places, cg.maximum(n, 1))
    elif mode == "reflect":
        period = cg.maximum(2 * n - 2, 1)
        places = cg.remainder(places, period)
        places = cg.where(places >= n, period - places, places)
    elif mode == "edge":
        places = cg.clip(places, 0, cg.maximum(n - 1, 0))
    else:
        raise FormatError(f"mode {mode!r} is not supported. Use constant, edge, reflect or wrap")
    return take_along(c, x, axis, places, size)


def align_row(row: Node, x: Node, axis: int) -> Node:
    """Align a vector with an axis of an array, cut to its length."""
    return cg.reshape(row[: x.shape[axis]], (-1, *[1] * (x.ndim - 1 - axis)))


def expand_to(c: Context, x: Array, target: Sequence[Length]) -> Array:
    """Broadcast to lengths that may be dynamic.

    An axis of dynamic length is not repeated.
    """
    old = lengths_of(x)
    rank = max(len(old), len(target))
    old, new = ([*[1] * (rank - len(v)), *v] for v in (old, target))
    lengths: dict[int, Length] = {}
    for axis, (n, m) in enumerate(zip(old, new)):
        if n == 1:
            lengths[axis] = m
        elif m == 1 or n == m:
            lengths[axis] = n
        elif isinstance(n, int) and isinstance(m, int):
            raise FormatError(f"{n} elements along axis {axis} cannot be repeated to {m}; only one can")
        else:
            beside = cg.logical_or(cg.equal(node_of(m), node_of(n)), cg.equal(node_of(m), 1))
            c.limits.check(beside, c.unequal)
            lengths[axis] = n
    node = cg.reshape(node_in(x), (*[1] * (rank - x.ndim), *node_in(x).shape))
    shape = [c.room(m, [1], axis) if old[axis] == 1 else node.shape[axis] for axis, m in lengths.items()]
    return with_lengths(cg.broadcast_to(node, shape), lengths)
