"""Importers of gather, scatter, one-hot and top-k."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size, most, node_of
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.formats.onnx.dynamic.value import (
    Array,
    Ragged,
    broadcast_lengths,
    counts_of,
    fill_padding,
    lengths_of,
    node_in,
    part_of_axis,
    resize_axis,
    valid_mask,
    with_lengths,
)
from cgraph.formats.onnx.dynamic_ops.operators import highest, lowest
from cgraph.formats.onnx.operators.slices import slice_of
from cgraph.ir.graph import Node, apply
from cgraph.kernels.sort.calls import LEADING_SHARE
from cgraph.ops.index import flatten_rows
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.first_rows import FirstWrites
from cgraph.ops.prefix import Prefix
from cgraph.ops.shape import axis_of, unbroadcast
from cgraph.ops.slicing import Slice
from cgraph.ops.take import Scatter


def positions(c: Context, index: Array, n: Length) -> Node:
    """Return indices into an axis as an array with padding 0; negative ones count from the end of a dynamic axis.

    An index outside the axis ends the run, as for a fixed length.
    """
    node = node_in(index)
    if isinstance(n, Size):
        node = cg.astype(node, "int64")
        node = cg.where(node < 0, node + n.node, node)
        node = cg.where(cg.logical_and(node >= 0, node < n.node), node, int(n.high))
    node = c.limits.positions(node, int(most(n)))
    return fill_padding(c.limits, Ragged(node, index.counts) if isinstance(index, Ragged) else node, 0)


@operator("Gather")
def gather(c: Context) -> Array:
    if c.is_ragged:
        x, index = c.array(0), c.array(1)
        axis = axis_of(c.attribute("axis", 0), x.ndim)
        node = cg.take(node_in(x), positions(c, index, lengths_of(x)[axis]), axis)
        lengths = [*lengths_of(x)[:axis], *lengths_of(index), *lengths_of(x)[axis + 1 :]]
        return with_lengths(node, dict(enumerate(lengths)))
    axis = axis_of(c.attribute("axis", 0), c[0].ndim)
    return cg.take(c[0], c.limits.positions(c[1], c[0].shape[axis]), axis)


@operator("GatherElements")
def gather_elements(c: Context) -> Array:
    """Import GatherElements; other axes may be shorter than those of the operand."""
    if c.is_ragged:
        x, index = c.array(0), c.array(1)
        axis = axis_of(c.attribute("axis", 0), x.ndim)
        node = positions(c, index, lengths_of(x)[axis])
        for a, n in enumerate(node_in(x).shape):
            node = node if a == axis else resize_axis(node, a, min(n, node.shape[a]))
        return with_lengths(cg.take_along_axis(node_in(x)[beside(node, axis)], node, axis), counts_of(index))
    x, axis = c[0], axis_of(c.attribute("axis", 0), c[0].ndim)
    index = c.limits.positions(c[1], x.shape[axis])
    return cg.take_along_axis(x[beside(index, axis)], index, axis)


def beside(index: Node, axis: int) -> tuple[slice, ...]:
    """Return the slices of an array that indices along an axis cover: the whole axis, and the extent of the others."""
    return tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(index.shape))


@operator("GatherND")
def gather_nd(c: Context) -> Array:
    """Import GatherND: the last axis of the indices is an index into the first axes after the batch axes."""
    batch = c.attribute("batch_dims", 0)
    if c.is_ragged:
        if batch:
            raise FormatError(
                f"batch_dims {batch} is not supported if lengths are known only at run time. Give shapes= that fix them"
            )
        x, index = c.array(0), c.array(1)
        places = positions_nd(c, x, index)
        lengths = [*lengths_of(index)[:-1], *lengths_of(x)[places.shape[-1] :]]
        return with_lengths(cg.gather_nd(node_in(x), places), dict(enumerate(lengths)))
    c.spend(nbytes=32 * prod(c[0].shape[:batch]) if batch else 0)
    return cg.gather_nd(c[0], c.limits.positions(c[1], smallest_axis(c, batch)), batch)


def smallest_axis(c: Context, batch: int = 0) -> int:
    """Return the smallest extent among the axes of operand 0 that the indices in operand 1 refer to."""
    return min(c[0].shape[batch : batch + c[1].shape[-1]], default=0)


def positions_nd(c: Context, x: Array, index: Array) -> Node:
    """Return indices into the first axes of a value, in the last axis of an array."""
    if index.ndim - 1 in counts_of(index):
        raise FormatError("the number of indexed axes is known only at run time. Give shapes= that fix it")
    columns = []
    for i, n in enumerate(lengths_of(x)[: node_in(index).shape[-1]]):
        columns.append(positions(c, with_lengths(node_in(index)[..., i], counts_of(index)), n))
    return cg.stack(columns, -1)


def places_to_write(c: Context, places: Node, index: Array, room: int) -> Node:
    """Return indices into an axis with one slot more than `room`, which receives the padding."""
    places = cg.astype(places, "int64")
    places = cg.where(places < 0, places + room, places)
    places = cg.where(cg.logical_and(places >= 0, places < room), places, room + 1)
    return cg.where(valid_mask(c.limits, index), places, room) if isinstance(index, Ragged) else places


def open_scatter_elements(c: Context) -> Array:
    """Import a scatter whose operands have dynamic lengths."""
    x, axis = c.array(0), axis_of(c.attribute("axis", 0), c.array(0).ndim)
    (node, values), lengths = broadcast_lengths(c.limits, [c.array(1), c.array(2)], c.unequal)
    index, room = with_lengths(node, lengths), node_in(x).shape[axis]
    rows = repeated_rows(node) if axis == 0 and [*lengths] == [0] and node.shape[1:] == node_in(x).shape[1:] else None
    if rows is not None:
        return open_scatter_rows(c, x, with_lengths(rows, lengths), values)
    written = places_to_write(c, positions(c, index, lengths_of(x)[axis]), index, room)
    wide = resize_axis(node_in(x), axis, room + 1)
    place = beside(written, axis)
    part = cg.put_along_axis(wide[place], written, values, axis, way_to_write(c))
    updated = part if part.shape == wide.shape else cg.set_slice(wide, place, part)
    return with_lengths(resize_axis(updated, axis, room), counts_of(x))


def repeated_rows(index: Node) -> Node | None:
    """Return the positions of whole rows, one of each, if the indices repeat them along all axes after the first."""
    while isinstance(index.op, Prefix):
        index = index.operands[0]
    x = unbroadcast(index)
    is_column = x.ndim == index.ndim and x.shape == (index.shape[0], *[1] * (x.ndim - 1))
    return cg.reshape(x, (x.shape[0],)) if is_column and x is not index else None


def open_scatter_rows(c: Context, x: Array, index: Array, values: Node) -> Array:
    """Import a scatter of whole rows, as many as the positions have."""
    room = node_in(x).shape[0]
    written = places_to_write(c, positions(c, index, lengths_of(x)[0]), index, room)
    count = node_of(lengths_of(index)[0])
    wide = apply(FirstWrites(Scatter(0, way_to_write(c))), with_one_more(node_in(x)), written, values, count)
    return with_lengths(resize_axis(wide, 0, room), counts_of(x))


def with_one_more(x: Node) -> Node:
    """Return the rows and an arbitrary one; the array that they are the first rows of, if that has just one more."""
    shape, source = (x.shape[0] + 1, *x.shape[1:]), x
    while isinstance(source.op, Prefix):
        source = source.operands[0]
    if isinstance(source.op, Slice) and source.op.starts[0] == 0 and source.operands[0].shape == shape:
        return source.operands[0]
    return resize_axis(x, 0, shape[0])


def open_scatter_nd(c: Context) -> Array:
    """Import a scatter whose operands have dynamic lengths."""
    x, index, updates = c.array(0), c.array(1), c.array(2)
    places = positions_nd(c, x, index)
    rows, flat = flatten_rows(node_in(x), places)
    room, rest = rows.shape[0], node_in(x).shape[places.shape[-1] :]
    beside_it = [*lengths_of(index)[:-1], *lengths_of(x)[places.shape[-1] :]]
    for n, m in zip(beside_it, lengths_of(updates), strict=True):
        c.limits.check_equal(n, m, c.unequal)
    values = node_in(updates)
    for a, n in enumerate((*flat.shape, *rest)):
        values = resize_axis(values, a, n)
    written = places_to_write(c, flat, with_lengths(flat, counts_of(index)), room)
    node = cg.scatter(resize_axis(rows, 0, room + 1), written, values, way_to_write(c))
    return with_lengths(cg.reshape(resize_axis(node, 0, room), node_in(x).shape), counts_of(x))


@operator("ScatterElements", "Scatter")
def scatter_elements(c: Context) -> Array:
    """Import ScatterElements."""
    if c.is_ragged:
        return open_scatter_elements(c)
    if is_small_write(c):
        return written_vector(c)
    x, axis = c[0], axis_of(c.attribute("axis", 0), c[0].ndim)
    index = c.limits.positions(c[1], x.shape[axis])
    place = beside(index, axis)
    part = cg.put_along_axis(x[place], index, c[2], axis, way_to_write(c))
    return part if part.shape == x.shape else cg.set_slice(x, place, part)


def is_small_write(c: Context) -> bool:
    """Return True if lengths known only at run time replace elements of a short vector at constant places."""
    x, index = c[0], c[1].op
    is_vector = x.ndim == 1 and x.size <= SMALL and x.dtype.kind in "iu"
    if not is_vector or not isinstance(index, ConstOp) or way_to_write(c) != "set" or not c.is_open(0, 2):
        return False
    return bool(np.all((index.array >= -x.size) & (index.array < x.size)))


def written_vector(c: Context) -> Array:
    """Return the vector as elements of both operands, so that bounds of lengths hold for its elements."""
    x, index, values = c[0], c.constant(1), c[2]
    places = np.arange(x.size)
    for n, place in enumerate(index):
        places[place] = x.size + n
    return cg.take(cg.concat([x, values], 0), places)


def way_to_write(c: Context) -> str:
    """Return the mode of `scatter` for a reduction; updates of equal indices apply in order."""
    reduction = c.attribute("reduction", "none")
    names = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    if reduction not in names:
        raise FormatError(f"reduction {reduction!r} is not supported. Use none, add, mul, max or min")
    return names[reduction]


@operator("ScatterND")
def scatter_nd(c: Context) -> Array:
    if c.is_ragged:
        return open_scatter_nd(c)
    x, rest = c[0], c[0].shape[c[1].shape[-1] :]
    place = slice_of(c[1], x.shape) if way_to_write(c) == "set" else None
    if place is not None and c[2].shape == (*c[1].shape[:-1], *rest):
        return c[2] if c[2].shape == x.shape else cg.set_slice(x, place, c[2])
    rows, flat = flatten_rows(x, c.limits.positions(c[1], smallest_axis(c)))
    values = cg.reshape(c[2], (*flat.shape, *rest))
    return cg.reshape(cg.scatter(rows, flat, values, way_to_write(c)), x.shape)


@operator("TensorScatter")
def tensor_scatter(c: Context) -> Node:
    """Import TensorScatter: write values along an axis from the position of each sample on."""
    x, values, axis = c[0], c[1], axis_of(c.attribute("axis", -2), c[0].ndim)
    n, count = x.shape[axis], values.shape[axis]
    c.spend(nbytes=8 * count)
    start = cg.zeros((x.shape[0],), "int64") if c.value(2) is None else cg.astype(c[2], "int64")
    steps = cg.expand_dims(start, 1) + np.arange(count)  # [batch, count]
    if c.attribute("mode", "linear") == "circular":
        steps = cg.remainder(steps, n)
    else:
        steps = cg.where(cg.less(steps, 0), n, steps)  # negative indices are outside, not counted from the end
    shape = [1] * x.ndim
    shape[0], shape[axis] = x.shape[0], count
    return cg.put_along_axis(x, cg.broadcast_to(cg.reshape(steps, shape), values.shape), values, axis)


@operator("OneHot")
def one_hot(c: Context) -> Array:
    """Import OneHot: the on value at an index along a new axis, else the off value; indices outside are ignored."""
    index, depth, values = c.array(0), c.length(1) if c.is_open(1) else int(c.number(1)), c[2]
    axis = axis_of(c.attribute("axis", -1), index.ndim + 1)
    room, last = c.room(depth, [1], axis), node_of(depth) if isinstance(depth, Size) else depth
    c.spend(8 * max(room, 0))
    node = cg.astype(node_in(index), "int64")
    node = cg.expand_dims(cg.where(node < 0, node + last, node), axis)  # negative ones count from the end
    steps = np.arange(room).reshape(-1, *[1] * (node.ndim - 1 - axis))
    encoded = cg.where(cg.equal(node, steps), values[1], values[0])
    lengths = {a + (a >= axis): n for a, n in counts_of(index).items()}
    return with_lengths(encoded, {**lengths, axis: depth})


@operator("TopK")
def top_k(c: Context) -> tuple[Array, Array]:
    """Import TopK: the k largest or smallest along an axis, sorted, and their indices; the first of equal ones wins."""
    if c.is_ragged or (c.opset >= 10 and c.is_open(1)):
        return open_top_k(c)
    x, axis = c[0], axis_of(c.attribute("axis", -1), c[0].ndim)
    k = c.attribute("k") if c.opset < 10 else c.number(1)
    places = leading_places(x, axis, k, bool(c.attribute("largest", 1)))
    return cg.take_along_axis(x, places, axis), places


def open_top_k(c: Context) -> tuple[Array, Array]:
    """Import TopK with k or a length known only at run time; padding sorts last."""
    x, largest = c.array(0), bool(c.attribute("largest", 1))
    axis = axis_of(c.attribute("axis", -1), x.ndim)
    n, k = lengths_of(x)[axis], c.length(1) if c.opset >= 10 else c.attribute("k")
    c.limits.check(cg.logical_and(node_of(k) <= node_of(n), node_of(k) >= 0), f"{c.unequal}: k is above their number")
    node = fill_padding(
        c.limits, x, lowest(x.dtype) if largest else np.nan if x.dtype.kind == "f" else highest(x.dtype)
    )
    room = int(min(most(k), node.shape[axis], c.maximum))
    places = leading_places(node, axis, room, largest)
    lengths = {**counts_of(x), axis: k}
    return with_lengths(cg.take_along_axis(node, places, axis), lengths), with_lengths(places, lengths)


def leading_places(x: Node, axis: int, k: int, largest: bool) -> Node:
    """Return the indices of the first k elements in sorted order; NaN is larger than all numbers."""
    if k * LEADING_SHARE > x.shape[axis]:
        return part_of_axis(sorted_places(x, axis, largest), axis, slice(0, k))
    places = cg.top_k(x, k, axis, largest)[1]
    if not largest or x.dtype.kind != "f":
        return places
    flags, nan_places = cg.top_k(cg.astype(cg.isnan(x), "uint8"), k, axis)
    count = cg.sum(cg.astype(flags, "int64"), axis, keepdims=True)
    steps = np.arange(k).reshape(-1, *[1] * (x.ndim - 1 - axis))
    behind = cg.broadcast_to(cg.maximum(steps - count, 0), places.shape)
    return cg.where(steps < count, nan_places, cg.take_along_axis(places, behind, axis))


def sorted_places(x: Node, axis: int, largest: bool) -> Node:
    """Return the indices of a stable sort along an axis; NaN is larger than all numbers."""
    if not largest:
        return cg.argsort(x, axis)
    turned = cg.argsort(cg.flip(x, axis), axis)
    return x.shape[axis] - 1 - cg.flip(turned, axis)
