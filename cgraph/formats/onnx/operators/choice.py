"""Importers whose results have a data-dependent length: NonZero, Compress, Unique.

Constant operands give constants. Otherwise the result has its maximum length, and a run computes the length.
"""

from typing import Any

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, node_of
from cgraph.formats.onnx.dynamic.value import Array, counts_of, fill_padding, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.dynamic_ops.reshape import reshape_to
from cgraph.formats.onnx.operators.index import positions
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const
from cgraph.ops.shape import axis_of


@operator("Compress")
def compress(c: Context) -> Array:
    """Import Compress: the elements whose condition is true."""
    axis = c.attribute("axis")
    if c.is_open(1) or c.is_ragged:
        x, (places, length) = c.array(0), places_of(c, c.array(1))
        x = reshape_to(c, x, [-1]) if axis is None else x
        axis = axis_of(axis or 0, x.ndim)
        indices = positions(c, with_lengths(places[0], {0: length}), lengths_of(x)[axis])
        return with_lengths(cg.take(node_in(x), indices, axis), {**counts_of(x), axis: length})
    c.spend(nbytes=8 * c[1].size)
    x, where_true = c[0], np.flatnonzero(c.constant(1))
    return cg.take(cg.ravel(x) if axis is None else x, where_true, axis or 0)


def places_of(c: Context, x: Array) -> tuple[Node, Length]:
    """Return the indices ``[axes, most]`` of nonzero elements, and their number."""
    node = fill_padding(c.limits, x, 0)
    room = int(min(node.size, c.maximum))
    places, count = cg.nonzero(node, room)
    return places, c.limits.length(count)


@operator("NonZero")
def non_zero(c: Context) -> Array:
    """Import NonZero: the indices of nonzero elements."""
    if c.is_open(0) and c.array(0).ndim:
        places, length = places_of(c, c.array(0))
        return with_lengths(places, {1: length})
    c.spend(nbytes=16 * c[0].size * max(c[0].ndim, 1))
    return Const(np.array(np.nonzero(c.constant(0)), np.int64))


@operator("Unique")
def unique(c: Context) -> tuple[Any, ...]:
    """Import Unique, sorted or in order of occurrence, of elements or of slices along an axis."""
    if c.is_open(0):
        return open_unique(c)
    c.spend(nbytes=64 * c[0].size, work=64 * c[0].size)
    x, axis = c.constant(0), c.attribute("axis")
    items, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not c.attribute("sorted", 1):
        order = np.argsort(first, kind="stable")
        items = np.take(items, order, axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return tuple(Const(v) for v in (items, *(np.asarray(v, np.int64) for v in (first, inverse, counts))))


def open_unique(c: Context) -> tuple[Array, ...]:
    """Import Unique at run time: sort, and select the first of each run of equal elements or slices.

    Padding repeats the first slice of the value, so it only changes counts, which are corrected.
    """
    x, axis = c.array(0), c.attribute("axis")
    x, axis = (reshape_to(c, x, [-1]), 0) if axis is None else (x, axis_of(axis, x.ndim))
    lengths, length = counts_of(x), lengths_of(x)[axis]
    node = cg.moveaxis(fill_padding(c.limits, x, 0, [a for a in lengths if a != axis]), axis, 0)
    n = node.shape[0]
    if not n:
        return x, *[Const(np.zeros(0, np.int64))] * 3
    valid = c.limits.steps(n) < node_of(length)
    node = cg.where(cg.reshape(valid, (n, *[1] * (node.ndim - 1))), node, node[:1])
    order, differs = sorted_order(c, node)
    begins = cg.concat([cg.ones((1,), bool), differs], 0)
    group = cg.scatter(cg.zeros((n,), "int64"), order, cg.cumsum(cg.astype(begins, "int64")) - 1, "set")
    if not c.attribute("sorted", 1):
        group = by_first_place(group, n)
    first = cg.scatter(cg.full((n,), n - 1, "int64"), group, c.limits.steps(n), "min")
    counts = cg.scatter(cg.zeros((n,), "int64"), group, cg.astype(valid, "int64"), "add")
    count = cg.where(cg.equal(node_of(length), 0), 0, cg.sum(cg.astype(begins, "int64")))
    c.limits.at_most(count, n)
    size = c.limits.length(count)
    items = with_lengths(cg.moveaxis(cg.take(node, first, 0), 0, axis), {**lengths, axis: size})
    first, counts = (with_lengths(v, {0: size}) for v in (first, counts))
    return items, first, with_lengths(group, {0: length}), counts


def sorted_order(c: Context, x: Node) -> tuple[Node, Node]:
    """Return the indices that sort slices ``[n, ...]`` by their elements, and whether each one differs from the one
    before it ``[n - 1]``. Elements that are NaN are equal to one another, slices with one differ from all others.
    """
    n = x.shape[0]
    if x.ndim == 1:
        order = cg.argsort(x)
        rising = cg.take(x, order, 0)
        differs = cg.not_equal(rising[1:], rising[:-1])
        if x.dtype.kind == "f":
            both = cg.logical_and(cg.isnan(rising[1:]), cg.isnan(rising[:-1]))
            differs = cg.logical_and(differs, cg.logical_not(both))
        return order, differs
    rows = cg.reshape(x, (n, x.size // n))
    order = c.limits.steps(n)
    if rows.shape[1]:  # stable sorts by each column, the last one first

        def by_column(order: Node, column: Node) -> tuple[Node, tuple[()]]:
            return cg.take(order, cg.argsort(cg.take(column, order, 0)), 0), ()

        order, _ = cg.scan(by_column, order, cg.flip(cg.swapaxes(rows, 0, 1), 0))
    rising = cg.take(rows, order, 0)
    return order, cg.any(cg.not_equal(rising[1:], rising[:-1]), 1)


def by_first_place(group: Node, n: int) -> Node:
    """Renumber groups of elements by the index of their first element."""
    first = cg.scatter(cg.full((n,), n, "int64"), group, np.arange(n), "min")
    number = cg.argsort(cg.argsort(first))
    return cg.take(number, group, 0)
