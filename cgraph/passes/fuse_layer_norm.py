"""Detection of layer normalisation written with plain ops: means, differences from them, their root mean square."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply, Square, Subtract, TrueDivide
from cgraph.ops.elementary import Sqrt
from cgraph.ops.norm import LayerNorm
from cgraph.ops.reduce import Sum
from cgraph.ops.shape import broadcast_to, full, number_of, reshape, unbroadcast
from cgraph.passes.patterns import (
    affine_forms,
    axes_of_mean,
    either,
    is_closed,
    root_quotients,
    shape_from_the_right,
    sum_behind,
)  # fmt: skip
from cgraph.record import Record


class NormParts(Record, eq=False):
    """``(x - mean) / sqrt(variance + eps)``, with mean and variance over the last axes."""

    x: Node
    axes: int
    eps: float


def fuse_layer_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps) * scale + shift -> one op, if no other node reads the values
    in between: fewer bytes.

    The means are over the last axes. Values change in the last places. Not detected: a root to which eps is added
    behind it, a variance that is the mean of squares less the square of the mean, and norms whose parts a backward part
    reads.
    """
    graph = Roots.of(outputs)
    if not graph.has(Sqrt) or not graph.has(Sum):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Add | Multiply | TrueDivide) or node.dtype.kind != "f":
            return None
        for y, scale, shift in affine_forms(node):
            unit = standard_of(y)
            if unit is not None and fits(scale, unit) and fits(shift, unit):
                leaves = tuple(v for v in (unit.x, scale, shift) if v is not None)
                return fuse(unit, scale, shift, new) if is_closed(graph, node, leaves) else None
        return None

    return rebuild(graph, change)


def fuse(unit: NormParts, scale: Node | None, shift: Node | None, new: New) -> Node:
    """Return the op on operands of the shape of the last axes."""
    ndim, shape = unit.x.ndim, unit.x.shape[-unit.axes :]
    parameters = [
        full(shape, number, unit.x.dtype)
        if v is None
        else broadcast_to(reshape(new[unbroadcast(v)], shape_from_the_right(v, ndim)[-unit.axes :]), shape)
        for v, number in ((scale, 1.0), (shift, -0.0))  # -0.0 + 0.0 would be 0.0
    ]
    return apply(LayerNorm(unit.axes, unit.eps), new[unit.x], *parameters)


def fits(parameter: Node | None, unit: NormParts) -> bool:
    """Return True if a factor or term differs along the last axes alone."""
    return parameter is None or set(shape_from_the_right(parameter, unit.x.ndim)[: -unit.axes]) <= {1}


def standard_of(node: Node) -> NormParts | None:
    """Return the parts of a norm without factor and term: difference / deviation, difference * (1 / deviation)"""
    for difference, variance in root_quotients(node):
        if isinstance(difference.op, Subtract):
            return standard(difference, variance)
    return None


def standard(difference: Node, sum_with_eps: Node) -> NormParts | None:
    """Return the parts if the difference is that from the mean, and the sum that of its variance and a number."""
    x, mean = difference.operands
    axes = axes_of_mean(mean, x)
    for variance, added in either(sum_with_eps, Add):
        eps = number_of(added)
        total = sum_behind(variance)
        if axes is None or eps is None or eps < 0 or total is None:
            continue
        square = total.operands[0]
        is_square = isinstance(square.op, Square | Multiply) and all(y is difference for y in square.operands)
        if is_square and axes_of_mean(variance, square) == axes:
            return NormParts(x, axes, eps)
    return None
