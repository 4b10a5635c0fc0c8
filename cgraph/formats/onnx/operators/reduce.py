"""Reductions over axes, extremes' places, running sums."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Importer, operator
from cgraph.formats.onnx.dynamic.bounds import node_of
from cgraph.formats.onnx.dynamic.value import Array, counts_of, lengths_of, made, node_in
from cgraph.formats.onnx.dynamic_ops.operators import highest, keeping, lowest, number, reducing
from cgraph.formats.onnx.dynamic_ops.reshape import counted
from cgraph.ir.graph import Node
from cgraph.ops.shape import axes_of

PLAIN = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod"}
EXTREME = {"ReduceMax": "max", "ReduceMin": "min"}


def axes_over(c: Context) -> tuple[int, ...] | None:
    """The axes to reduce; None when there is nothing to do. No axes given means all, unless the node says otherwise."""
    given, rank = c.axes(1), c.array(0).ndim
    if not given:
        return None if c.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return axes_of(given, rank)


def keeps(c: Context) -> bool:
    return bool(c.attribute("keepdims", 1))


def over(fill: Any) -> Callable[[Importer], Importer]:
    """Along axes of open length, elements behind the value are what changes nothing."""
    return reducing(lambda c: axes_over(c) or (), keeps, fill)


def plain(c: Context) -> Node:
    x, axes = c[0], axes_over(c)
    return x if axes is None else cg.astype(getattr(cg, PLAIN[c.kind])(x, axes, keepdims=keeps(c)), x.dtype)


operator("ReduceSum")(over(number(0))(plain))
operator("ReduceProd")(over(number(1))(plain))


@operator("ReduceMean")
def mean(c: Context) -> Array:
    """Over axes of open length the sum over how many elements there are."""
    x, axes = c.array(0), axes_over(c)
    gone = set(axes or ()) & set(counts_of(x))
    if not gone:
        return reducing(lambda c: axes or (), keeps, None)(plain)(c)
    total = over(number(0))(lambda c: cg.sum(c[0], axes, keepdims=keeps(c)))(c)
    count = node_of(counted(c, [lengths_of(x)[a] for a in axes or ()]))
    return made(cg.astype(node_in(total) / cg.astype(count, x.dtype), x.dtype), counts_of(total))


def extreme(c: Context) -> Node:
    """Of no elements at all: the dtype's smallest for the largest, and the other way round."""
    x, axes = c[0], axes_over(c)
    if axes is None:
        return x
    if x.dtype == bool:
        return (cg.any if c.kind == "ReduceMax" else cg.all)(x, axes, keepdims=keeps(c))
    if all(x.shape[a] for a in axes):
        return getattr(cg, EXTREME[c.kind])(x, axes, keepdims=keeps(c))
    least, most = (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    shape = kept if keeps(c) else [n for i, n in enumerate(x.shape) if i not in axes]
    return cg.full(shape, least if c.kind == "ReduceMax" else most, x.dtype)


operator("ReduceMax")(over(lowest)(extreme))
operator("ReduceMin")(over(highest)(extreme))


def inner(function: Any, outer: Any = None) -> Any:
    """An importer that applies `function`, sums over the axes and applies `outer`; `function` alone over no axes."""

    def importer(c: Context) -> Node:
        x, axes = c[0], axes_over(c)
        found = function(x) if axes is None else cg.sum(function(x), axes, keepdims=keeps(c))
        return cg.astype(found if outer is None else outer(found), x.dtype)

    return importer


operator("ReduceL1")(over(number(0))(inner(lambda x: cg.abs(x))))
operator("ReduceL2")(over(number(0))(inner(lambda x: cg.square(x), lambda x: cg.sqrt(x))))
operator("ReduceSumSquare")(over(number(0))(inner(lambda x: cg.square(x))))
operator("ReduceLogSum")(over(number(0))(inner(lambda x: x, lambda x: cg.log(x))))


@operator("ReduceLogSumExp")
@over(lowest)
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


def running(c: Context) -> Node:
    """Optionally from behind, and without the element itself."""
    x, axis = c[0], c.number(1) % c[0].ndim
    function, start = (cg.cumsum, 0) if c.kind == "CumSum" else (cg.cumprod, 1)
    turned = cg.flip(x, axis) if c.attribute("reverse", 0) else x
    found = cg.astype(function(turned, axis), x.dtype)
    if c.attribute("exclusive", 0):
        first = cg.full([1 if i == axis else n for i, n in enumerate(x.shape)], start, x.dtype)
        rest = found[(*[slice(None)] * axis, slice(0, -1))]
        found = cg.concat([first, rest], axis)
    return cg.flip(found, axis) if c.attribute("reverse", 0) else found


operator("CumSum")(keeping(lambda c: (c.number(1),), number(0))(running))
operator("CumProd")(keeping(lambda c: (c.number(1),), number(1))(running))
