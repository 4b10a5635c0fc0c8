"""Detection of root-mean-square normalisation written with plain ops."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply, Square, TrueDivide
from cgraph.ops.elementary import Sqrt
from cgraph.ops.norm import RmsNorm
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


def fuse_rms_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """x / sqrt(mean(x ** 2) + eps) * scale -> one op, if no other node reads the values in between: fewer bytes.

    The mean is over the last axes; `scale` differs along these alone. Values change in the last places. Not detected: a
    root to which eps is added behind it, and a norm with a lower bound in place of eps.
    """
    graph = Roots.of(outputs)
    if not graph.has(Sqrt) or not graph.has(Sum):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Multiply | TrueDivide) or node.dtype.kind != "f":
            return None
        for y, scale, term in affine_forms(node):
            parts = parts_of(y) if term is None else None
            if parts is None:
                continue
            x, axes, eps = parts
            is_free = scale is None or set(shape_from_the_right(scale, x.ndim)[:-axes]) <= {1}
            if is_free and is_closed(graph, node, (x,) if scale is None else (x, scale)):
                return apply(RmsNorm(axes, eps), new[x], parameter(scale, x, axes, new))
        return None

    return rebuild(graph, change)


def parameter(scale: Node | None, x: Node, axes: int, new: New) -> Node:
    """Return the factor in the shape of the last axes of `x`."""
    shape = x.shape[-axes:]
    if scale is None:
        return full(shape, 1.0, x.dtype)
    return broadcast_to(reshape(new[unbroadcast(scale)], shape_from_the_right(scale, x.ndim)[-axes:]), shape)


def parts_of(node: Node) -> tuple[Node, int, float] | None:
    """Return x, over how many axes the mean is, and eps, of a norm without a scale."""
    for x, sum_with_eps in root_quotients(node):
        for squares, added in either(sum_with_eps, Add):
            eps, total = number_of(added), sum_behind(squares)
            if eps is None or eps < 0 or total is None:
                continue
            square = total.operands[0]
            is_square = isinstance(square.op, Square | Multiply) and all(y is x for y in square.operands)
            axes = axes_of_mean(squares, square) if is_square else None
            if axes is not None:
                return x, axes, eps
    return None
