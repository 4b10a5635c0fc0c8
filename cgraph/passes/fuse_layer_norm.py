"""Detection of layer normalisation written with plain ops: means, differences from them, their root mean square."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply, Subtract, TrueDivide
from cgraph.ops.elementary import Sqrt
from cgraph.ops.norm import LayerNorm
from cgraph.ops.reduce import Sum
from cgraph.passes.patterns import (
    affine_forms,
    axes_of_mean,
    is_closed,
    is_square_of,
    over_last_axes,
    roots_with_eps,
    varies_along_last,
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
            if unit is not None and all(varies_along_last(v, unit.x.ndim, unit.axes) for v in (scale, shift)):
                leaves = tuple(v for v in (unit.x, scale, shift) if v is not None)
                return fuse(unit, scale, shift, new) if is_closed(graph, node, leaves) else None
        return None

    return rebuild(graph, change)


def fuse(unit: NormParts, scale: Node | None, shift: Node | None, new: New) -> Node:
    """Return the op on operands of the shape of the last axes."""
    parameters = [
        over_last_axes(v, number, unit.x, unit.axes, new)
        for v, number in ((scale, 1.0), (shift, -0.0))  # -0.0 + 0.0 would be 0.0
    ]
    return apply(LayerNorm(unit.axes, unit.eps), new[unit.x], *parameters)


def standard_of(node: Node) -> NormParts | None:
    """Return the parts of a norm without factor and term: difference / deviation, difference * (1 / deviation)"""
    for difference, variance, total, eps in roots_with_eps(node):
        if not isinstance(difference.op, Subtract):
            continue
        x, mean = difference.operands
        axes, square = axes_of_mean(mean, x), total.operands[0]
        if axes is not None and is_square_of(square, difference) and axes_of_mean(variance, square) == axes:
            return NormParts(x, axes, eps)
    return None
