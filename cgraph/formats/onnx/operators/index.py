"""Operators that read or write at positions which are data: gather, scatter, one-hot, the largest k."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.names import cg
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const
from cgraph.ops.shape import axis_of


def positive_index(index: Node, n: Any) -> Node:
    """Negative positions count from the end."""
    index = cg.astype(index, "int64")
    return cg.where(index < 0, index + n, index)


@operator("Gather")
def gather(c: Context) -> Node:
    axis = axis_of(c.attribute("axis", 0), c[0].ndim)
    return cg.take(c[0], positive_index(c[1], c[0].shape[axis]), axis)


@operator("GatherElements")
def gather_elements(c: Context) -> Node:
    """Along one axis, each element from a position of its own; other axes may be shorter than the operand's."""
    x, index, axis = c[0], c[1], axis_of(c.attribute("axis", 0), c[0].ndim)
    x = x[tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(index.shape))]
    return cg.take_along_axis(x, positive_index(index, x.shape[axis]), axis)


@operator("GatherND")
def gather_nd(c: Context) -> Node:
    """Each last axis of the positions is one position along the first axes after the batch axes."""
    x, index, batch = c[0], c[1], c.attribute("batch_dims", 0)
    flat, rest = flat_positions(index, x.shape, batch)
    rows = cg.reshape(x, (prod(x.shape) // max(prod(rest), 1) if prod(rest) else 0, *rest))
    return cg.take(rows, flat, 0)


def flat_positions(index: Node, shape: tuple[int, ...], batch: int = 0) -> tuple[Node, tuple[int, ...]]:
    """Positions ``[..., k]`` along axes ``batch..batch+k`` as numbers of rows, and the shape of a row."""
    k = index.shape[-1]
    sizes = shape[batch : batch + k]
    steps = [prod(sizes[i + 1 :]) for i in range(k)]
    index = positive_index(index, np.array(sizes, np.int64))
    flat = cg.sum(index * np.array(steps, np.int64), -1)
    if batch:
        start = np.arange(prod(shape[:batch])).reshape(shape[:batch]) * prod(sizes)
        flat = flat + start.reshape(*shape[:batch], *[1] * (flat.ndim - batch))
    return flat, shape[batch + k :]


@operator("ScatterElements", "Scatter")
def scatter_elements(c: Context) -> Node:
    x, axis = c[0], axis_of(c.attribute("axis", 0), c[0].ndim)
    index = positive_index(c[1], x.shape[axis])
    places = [np.broadcast_to(i, index.shape) for i in np.indices(index.shape, sparse=True)]
    steps = [prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    base = sum((places[i] * steps[i] for i in range(x.ndim) if i != axis), np.zeros(index.shape, np.int64))
    flat = index * np.int64(steps[axis]) + base
    return scattered(x, cg.reshape(flat, (-1,)), cg.reshape(c[2], (-1,)), (), c.attribute("reduction", "none"))


@operator("ScatterND")
def scatter_nd(c: Context) -> Node:
    x, index = c[0], c[1]
    flat, rest = flat_positions(index, x.shape)
    return scattered(x, cg.reshape(flat, (-1,)), cg.reshape(c[2], (-1, *rest)), rest, c.attribute("reduction", "none"))


def scattered(x: Node, rows: Node, values: Node, rest: tuple[int, ...], reduction: str) -> Node:
    """`x` with rows of shape `rest` replaced by, or joined with, values; equal positions one after another."""
    flat = cg.reshape(x, (-1, *rest))
    if reduction not in ("none", "add", "mul", "max", "min"):
        raise FormatError(f"reduction {reduction!r} is not supported")
    names = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    return cg.reshape(cg.scatter(flat, rows, values, names[reduction]), x.shape)


@operator("TensorScatter")
def tensor_scatter(c: Context) -> Node:
    """Values written along an axis from a position on that each sample has of its own."""
    x, values, axis = c[0], c[1], axis_of(c.attribute("axis", -2), c[0].ndim)
    n, count = x.shape[axis], values.shape[axis]
    start = cg.zeros((x.shape[0],), "int64") if c.value(2) is None else cg.astype(c[2], "int64")
    steps = cg.expand_dims(start, 1) + np.arange(count)  # [batch, count]
    steps = cg.remainder(steps, n) if c.attribute("mode", "linear") == "circular" else steps
    shape = [1] * x.ndim
    shape[0], shape[axis] = x.shape[0], count
    index = cg.broadcast_to(cg.reshape(steps, shape), values.shape)
    places = np.indices(values.shape)
    factors = [prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    base = sum(places[i] * factors[i] for i in range(x.ndim) if i != axis)
    return scattered(x, cg.ravel(index * np.int64(factors[axis]) + base), cg.ravel(values), (), "none")


@operator("OneHot")
def one_hot(c: Context) -> Node:
    """The second of two values at a position along a new axis, the first elsewhere; positions outside hit nothing."""
    index, depth, values = c[0], int(c.number(1)), c[2]
    c.known.allow(8 * max(depth, 0))
    axis = axis_of(c.attribute("axis", -1), index.ndim + 1)
    index = cg.expand_dims(positive_index(index, depth), axis)
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
    x, kept = c[0], np.flatnonzero(c.constant(1))
    axis = c.attribute("axis")
    return cg.take(cg.ravel(x) if axis is None else x, kept, axis or 0)


@operator("NonZero")
def non_zero(c: Context) -> Node:
    """Places of elements that are not 0; the operand must be known now."""
    return Const(np.array(np.nonzero(c.constant(0)), np.int64))


@operator("Unique")
def unique(c: Context) -> tuple[Node, ...]:
    """Different elements or slices, sorted or as they come; the operand must be known now."""
    x, axis = c.constant(0), c.attribute("axis")
    found, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not c.attribute("sorted", 1):
        order = np.argsort(first, kind="stable")
        found = np.take(found, order, axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return tuple(Const(v) for v in (found, *(np.asarray(v, np.int64) for v in (first, inverse, counts))))
