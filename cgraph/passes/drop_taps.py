"""Removal of the outer rows and columns of filters that meet nothing but padding."""

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.kernels.mapped import in_c_order, is_finite
from cgraph.ops.conv import CONV
from cgraph.ops.leaf import Const, ConstOp


def drop_taps(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Cut constant filters to the taps that meet the image for any result: fewer products.

    A dilation near the size of the image leaves only the middle of a filter. Filters that hold NaN or an infinity stay:
    their product with padding is NaN.
    """
    return rewrite(outputs, RULES)


def cut_filters(node: Node) -> Node | None:
    """conv(x, f) -> conv(x, f[first:last + 1]) with less padding, along each axis"""
    x, f = node.operands
    if not isinstance(f.op, ConstOp):
        return None
    op, axes = node.op, f.ndim - 2
    pad, dilation, cuts = list(op.pad), list(op.dilation), [slice(None)] * 2  # type: ignore[attr-defined]
    for i, (size, taps, results) in enumerate(zip(x.shape[2:], f.shape[2:], node.shape[2:])):
        places = np.arange(results) * op.stride[i] - pad[i]  # type: ignore[attr-defined]
        starts = [places + t * dilation[i] for t in range(taps)]
        live = [t for t, at in enumerate(starts) if ((at >= 0) & (at < size)).any()]
        if not live:
            return None
        before = min(live[0], pad[i] // dilation[i])
        after = min(taps - 1 - live[-1], pad[axes + i] // dilation[i])
        pad[i] -= before * dilation[i]
        pad[axes + i] -= after * dilation[i]
        cuts.append(slice(before, taps - after))
    part = f.op.array[tuple(cuts)]
    if part.shape == f.shape or part.dtype.kind != "f" or not is_finite(f.op.array):
        return None
    fields = (op.stride, tuple(pad), tuple(dilation), op.groups)  # type: ignore[attr-defined]
    return apply(CONV[axes](*fields), x, Const(in_c_order(part), copy=False))


RULES = [(kind, cut_filters) for kind in CONV.values()]
