"""Detection of root-mean-square normalisation written with plain ops."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Multiply, TrueDivide
from cgraph.ops.elementary import Sqrt
from cgraph.ops.norm import RmsNorm
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


def fuse_rms_norm(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """x / sqrt(mean(x ** 2) + eps) * scale -> one op, if no other node reads the values in between: fewer bytes.

    The mean is over the last axes; `scale` differs only along these. Values change in the last places. Not detected: a
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
            leaves = (x,) if scale is None else (x, scale)
            if varies_along_last(scale, x.ndim, axes) and is_closed(graph, node, leaves):
                return apply(RmsNorm(axes, eps), new[x], over_last_axes(scale, 1.0, x, axes, new))
        return None

    return rebuild(graph, change)


def parts_of(node: Node) -> tuple[Node, int, float] | None:
    """Return x, over how many axes the mean is, and eps, of a norm without a scale."""
    for x, squares, total, eps in roots_with_eps(node):
        square = total.operands[0]
        axes = axes_of_mean(squares, square) if is_square_of(square, x) else None
        if axes is not None:
            return x, axes, eps
    return None
