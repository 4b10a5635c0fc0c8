"""Operators that read or write at positions which are data: gather, scatter, one-hot, the largest k."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node
from cgraph.ops.index import rows_at
from cgraph.ops.leaf import Const
from cgraph.ops.shape import axis_of


@operator("Gather")
def gather(c: Context) -> Node:
    return cg.take(c[0], c[1], axis_of(c.attribute("axis", 0), c[0].ndim))


@operator("GatherElements")
def gather_elements(c: Context) -> Node:
    """Along one axis, each element from a position of its own; other axes may be shorter than the operand's."""
    x, index, axis = c[0], c[1], axis_of(c.attribute("axis", 0), c[0].ndim)
    return cg.take_along_axis(x[beside(index, axis)], index, axis)


def beside(index: Node, axis: int) -> tuple[slice, ...]:
    """The part of an array beside positions along an axis: all of that axis, of others as much as they have."""
    return tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(index.shape))


@operator("GatherND")
def gather_nd(c: Context) -> Node:
    """Each last axis of the positions is one position along the first axes after the batch axes."""
    batch = c.attribute("batch_dims", 0)
    c.spend(nbytes=32 * prod(c[0].shape[:batch]) if batch else 0)
    return cg.gather_nd(c[0], c[1], batch)


@operator("ScatterElements", "Scatter")
def scatter_elements(c: Context) -> Node:
    """Along one axis, each element of the updates to a position of its own."""
    x, index, axis = c[0], c[1], axis_of(c.attribute("axis", 0), c[0].ndim)
    place = beside(index, axis)
    part = cg.put_along_axis(x[place], index, c[2], axis, way_to_write(c))
    return part if part.shape == x.shape else cg.set_slice(x, place, part)


def way_to_write(c: Context) -> str:
    """The library's name of a reduction; equal positions are written one after another."""
    reduction = c.attribute("reduction", "none")
    names = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    if reduction not in names:
        raise FormatError(f"reduction {reduction!r} is not supported")
    return names[reduction]


@operator("ScatterND")
def scatter_nd(c: Context) -> Node:
    x, rest = c[0], c[0].shape[c[1].shape[-1] :]
    rows, flat = rows_at(x, c[1])
    values = cg.reshape(c[2], (*flat.shape, *rest))
    return cg.reshape(cg.scatter(rows, flat, values, way_to_write(c)), x.shape)


@operator("TensorScatter")
def tensor_scatter(c: Context) -> Node:
    """Values written along an axis from a position on that each sample has of its own."""
    x, values, axis = c[0], c[1], axis_of(c.attribute("axis", -2), c[0].ndim)
    n, count = x.shape[axis], values.shape[axis]
    c.spend(nbytes=8 * count)
    start = cg.zeros((x.shape[0],), "int64") if c.value(2) is None else cg.astype(c[2], "int64")
    steps = cg.expand_dims(start, 1) + np.arange(count)  # [batch, count]
    if c.attribute("mode", "linear") == "circular":
        steps = cg.remainder(steps, n)
    else:
        steps = cg.where(cg.less(steps, 0), n, steps)  # none counts from the end: it lies outside
    shape = [1] * x.ndim
    shape[0], shape[axis] = x.shape[0], count
    return cg.put_along_axis(x, cg.broadcast_to(cg.reshape(steps, shape), values.shape), values, axis)


@operator("OneHot")
def one_hot(c: Context) -> Node:
    """The second of two values at a position along a new axis, the first elsewhere; positions outside hit nothing."""
    index, depth, values = c[0], int(c.number(1)), c[2]
    c.spend(8 * max(depth, 0))
    axis = axis_of(c.attribute("axis", -1), index.ndim + 1)
    index = cg.astype(index, "int64")
    index = cg.expand_dims(cg.where(index < 0, index + depth, index), axis)  # negative ones count from the end
    steps = np.arange(depth).reshape(-1, *[1] * (index.ndim - 1 - axis))
    return cg.where(cg.equal(index, steps), values[1], values[0])


@operator("TopK")
def top_k(c: Context) -> tuple[Node, Node]:
    """The k largest or smallest along an axis, sorted, and their places; the first of equal ones wins."""
    x, axis = c[0], axis_of(c.attribute("axis", -1), c[0].ndim)
    k = c.attribute("k") if c.opset < 10 else c.number(1)
    places = sorted_places(x, axis, bool(c.attribute("largest", 1)))
    places = places[(*[slice(None)] * axis, slice(0, k))]
    return cg.take_along_axis(x, places, axis), places


def sorted_places(x: Node, axis: int, largest: bool) -> Node:
    """Places in sorted order along an axis, equal elements in their order."""
    if not largest:
        return cg.argsort(x, axis)
    turned = cg.argsort(cg.flip(x, axis), axis)
    return x.shape[axis] - 1 - cg.flip(turned, axis)


@operator("Compress")
def compress(c: Context) -> Node:
    """Elements where a condition holds; the condition must be known now."""
    c.spend(nbytes=8 * c[1].size)
    x, kept = c[0], np.flatnonzero(c.constant(1))
    axis = c.attribute("axis")
    return cg.take(cg.ravel(x) if axis is None else x, kept, axis or 0)


@operator("NonZero")
def non_zero(c: Context) -> Node:
    """Places of elements that are not 0; the operand must be known now."""
    c.spend(nbytes=16 * c[0].size * max(c[0].ndim, 1))
    return Const(np.array(np.nonzero(c.constant(0)), np.int64))


@operator("Unique")
def unique(c: Context) -> tuple[Node, ...]:
    """Different elements or slices, sorted or as they come; the operand must be known now."""
    c.spend(nbytes=64 * c[0].size, work=64 * c[0].size)
    x, axis = c.constant(0), c.attribute("axis")
    found, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not c.attribute("sorted", 1):
        order = np.argsort(first, kind="stable")
        found = np.take(found, order, axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return tuple(Const(v) for v in (found, *(np.asarray(v, np.int64) for v in (first, inverse, counts))))
