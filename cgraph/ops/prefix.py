"""Prefix: a value of whose rows only the first ones count; the others need not be computed."""

import numpy as np

from cgraph.errors import DTypeError, NoGradientError, ShapeError
from cgraph.ir.graph import Node, apply
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import View
from cgraph.ops.shape import ViewOp

COUNT = np.dtype("int64")


class Prefix(ViewOp):
    """The operand, of which only the first `count` rows along axis 0 have a meaning: a run may leave out the others.

    Whoever applies it promises that no result depends on the other rows. The reference implementation makes them NaN.

    Operands
        x: at least one axis
        count: int64 scalar; a run with a larger one than there are rows computes all rows
    """

    def infer(self, x: Spec, count: Spec) -> Spec:
        if x.ndim == 0:
            raise ShapeError(f"{x} has no rows; pass a value of at least one axis")
        if count.dtype != COUNT or count.ndim:
            raise DTypeError(f"the number of rows is {count}; pass an int64 scalar")
        return x

    def meaning(self, x, count):
        if x.dtype.kind not in "fc" or count >= len(x):
            return x
        return np.where(np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)) < count, x, np.nan).astype(x.dtype)

    def alias(self, x: View, count: View) -> View:
        return x

    def grad(self, node, g):
        raise NoGradientError(
            f"prefix at {node.where} has no gradient, since rows beyond a length known only at run time are not "
            "computed. Load the file with shapes= or constants= that fix the length"
        )


def prefix(x: Node, count: Node) -> Node:
    """Return `x` with the promise that no result depends on the rows from `count` on."""
    if isinstance(x.op, Prefix) and x.operands[1] is count:
        return x
    return apply(Prefix(), x, count)
