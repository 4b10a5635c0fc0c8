"""Importers of reductions, argmax, argmin and cumulative sums."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Importer, operator
from cgraph.formats.onnx.dynamic.bounds import node_of
from cgraph.formats.onnx.dynamic.value import Array, counts_of, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.dynamic_ops.operators import highest, keeping, lowest, number, reducing
from cgraph.formats.onnx.dynamic_ops.reshape import element_count
from cgraph.ir.graph import Node
from cgraph.ops.shape import axes_of

PLAIN = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod"}
EXTREME = {"ReduceMax": "max", "ReduceMin": "min"}


def axes_over(c: Context) -> tuple[int, ...] | None:
    """Return the axes to reduce; None if there are none. Without axes it is all, unless noop_with_empty_axes."""
    axes, rank = c.axes(1), c.array(0).ndim
    if not axes:
        return None if c.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return axes_of(axes, rank)


def keeps(c: Context) -> bool:
    return bool(c.attribute("keepdims", 1))


def reduce_axes(fill: Any) -> Callable[[Importer], Importer]:
    """Declare an importer that reduces along dynamic axes with neutral padding."""
    return reducing(lambda c: axes_over(c) or (), keeps, fill)


def plain(c: Context) -> Node:
    x, axes = c[0], axes_over(c)
    return x if axes is None else cg.astype(getattr(cg, PLAIN[c.kind])(x, axes, keepdims=keeps(c)), x.dtype)


operator("ReduceSum")(reduce_axes(number(0))(plain))
operator("ReduceProd")(reduce_axes(number(1))(plain))


@operator("ReduceMean")
def mean(c: Context) -> Array:
    """Import ReduceMean; along dynamic axes, the sum divided by the number of elements."""
    x, axes = c.array(0), axes_over(c)
    gone = set(axes or ()) & set(counts_of(x))
    if not gone:
        return reducing(lambda c: axes or (), keeps, None)(plain)(c)
    total = reduce_axes(number(0))(lambda c: cg.sum(c[0], axes, keepdims=keeps(c)))(c)
    count = node_of(element_count(c, [lengths_of(x)[a] for a in axes or ()]))
    return with_lengths(cg.astype(node_in(total) / cg.astype(count, x.dtype), x.dtype), counts_of(total))


def extreme(c: Context) -> Node:
    """Import ReduceMax and ReduceMin; without elements, the dtype's lowest and highest value."""
    x, axes = c[0], axes_over(c)
    if axes is None:
        return x
    if x.dtype == bool:
        return (cg.any if c.kind == "ReduceMax" else cg.all)(x, axes, keepdims=keeps(c))
    if all(x.shape[a] for a in axes):
        return getattr(cg, EXTREME[c.kind])(x, axes, keepdims=keeps(c))
    least, most = (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    reduced_shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    shape = reduced_shape if keeps(c) else [n for i, n in enumerate(x.shape) if i not in axes]
    return cg.full(shape, least if c.kind == "ReduceMax" else most, x.dtype)


operator("ReduceMax")(reduce_axes(lowest)(extreme))
operator("ReduceMin")(reduce_axes(highest)(extreme))


def reduce_function(function: Any, outer: Any = None) -> Any:
    """Return an importer that applies `function`, sums over the axes, then applies `outer`."""

    def importer(c: Context) -> Node:
        x, axes = c[0], axes_over(c)
        reduced = function(x) if axes is None else cg.sum(function(x), axes, keepdims=keeps(c))
        return cg.astype(reduced if outer is None else outer(reduced), x.dtype)

    return importer


operator("ReduceL1")(reduce_axes(number(0))(reduce_function(lambda x: cg.abs(x))))
operator("ReduceL2")(reduce_axes(number(0))(reduce_function(lambda x: cg.square(x), lambda x: cg.sqrt(x))))
operator("ReduceSumSquare")(reduce_axes(number(0))(reduce_function(lambda x: cg.square(x))))
operator("ReduceLogSum")(reduce_axes(number(0))(reduce_function(lambda x: x, lambda x: cg.log(x))))


@operator("ReduceLogSumExp")
@reduce_axes(lowest)
def log_sum_exp(c: Context) -> Node:
    x, axes = c[0], axes_over(c)
    return x if axes is None else cg.astype(cg.logsumexp(x, axes, keepdims=keeps(c)), x.dtype)


def place(c: Context) -> Node:
    x, axis = c[0], c.attribute("axis", 0) % c[0].ndim
    function = cg.argmax if c.kind == "ArgMax" else cg.argmin
    if not c.attribute("select_last_index", 0):
        return function(x, axis, keepdims=keeps(c))
    return x.shape[axis] - 1 - function(cg.flip(x, axis), axis, keepdims=keeps(c))


def one_axis(c: Context) -> tuple[int]:
    return (c.attribute("axis", 0),)


operator("ArgMax")(reducing(one_axis, keeps, lowest)(place))
operator("ArgMin")(reducing(one_axis, keeps, highest)(place))


def cumulative(c: Context) -> Node:
    """Import CumSum and CumProd, optionally reversed and exclusive."""
    x, axis = c[0], c.number(1) % c[0].ndim
    function, start = (cg.cumsum, 0) if c.kind == "CumSum" else (cg.cumprod, 1)
    turned = cg.flip(x, axis) if c.attribute("reverse", 0) else x
    sums = cg.astype(function(turned, axis), x.dtype)
    if c.attribute("exclusive", 0):
        first = cg.full([1 if i == axis else n for i, n in enumerate(x.shape)], start, x.dtype)
        rest = sums[(*[slice(None)] * axis, slice(0, -1))]
        sums = cg.concat([first, rest], axis)
    return cg.flip(sums, axis) if c.attribute("reverse", 0) else sums


operator("CumSum")(keeping(lambda c: (c.number(1),), number(0))(cumulative))
operator("CumProd")(keeping(lambda c: (c.number(1),), number(1))(cumulative))
