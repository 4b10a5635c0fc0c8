"""Softmax, log-softmax and log-sum-exp along an axis."""

from math import prod
from typing import Any, ClassVar

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.cut import ROWS, Cut, row_by_row
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import LINE
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.target import Target
from cgraph.ops.elementary import exp
from cgraph.ops.family import ROWS_AXES, float_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axes_of, axis_of, expand_dims, reshape, transpose
from cgraph.record import replace


class Softmax(Op):
    """``exp(x) / sum(exp(x))`` along an axis, without overflow."""

    axis: int
    kind: ClassVar[str] = "softmax"

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind != "f":
            raise DTypeError(f"{self.name} needs a float, not {x.dtype}; convert with astype")
        return x

    def meaning(self, x):
        if x.size == 0:
            return x.copy()
        e = np.exp(x - x.max(self.axis, keepdims=True))
        return e / e.sum(self.axis, keepdims=True)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: softmax_calls(target, self.kind, out, x, self.axis), overwrites=(0,), strided=True)

    def row_rule(self, x: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape) if self.axis else None

    def cut(self, x: Spec) -> Cut | None:
        """Cut by rows if a row contains all that it sums and fills a vector: the order of sums must not change."""
        if x.ndim < ROWS_AXES or self.axis == ROWS:
            return None
        if self.axis != x.ndim - 1 and x.shape[-1] * x.dtype.itemsize < LINE:
            return None
        return Cut((row_by_row(x.shape[ROWS]),), lambda first, stop: self)

    def grad(self, node, g):
        return (node * (g - (g * node).sum(self.axis, keepdims=True)),)


class LogSoftmax(Softmax):
    """``x - log(sum(exp(x)))`` along an axis, without overflow."""

    kind = "log_softmax"

    def meaning(self, x):
        if x.size == 0:
            return x.copy()
        x = x - x.max(self.axis, keepdims=True)
        return x - np.log(np.exp(x).sum(self.axis, keepdims=True))

    def grad(self, node, g):
        return (g - exp(node) * g.sum(self.axis, keepdims=True),)


class Logsumexp(Softmax):
    """``log(sum(exp(x)))`` along an axis, which the result drops; -inf if there are no elements."""

    kind = "logsumexp"

    def infer(self, x: Spec) -> Spec:
        return Spec((*x.shape[: self.axis], *x.shape[self.axis + 1 :]), super().infer(x).dtype)

    def meaning(self, x):
        return np.logaddexp.reduce(x, self.axis)

    def cut(self, x: Spec) -> Cut | None:
        return None

    def work(self, target: Target, x: Spec) -> Work:
        if not x.size:
            return Work(lambda out, x: fill_calls(target, out, -np.inf), strided=True)
        return replace(super().work(target, x), overwrites=())

    def grad(self, node, g):
        x = node.operands[0]
        shares = exp(x - expand_dims(node, self.axis))
        return (expand_dims(g, self.axis) * shares,)


@public
def softmax(x: Any, axis: int = -1) -> Node:
    """Return exp(x) over its sum along an axis."""
    return softmax_node(Softmax, x, axis)


@public
def log_softmax(x: Any, axis: int = -1) -> Node:
    """Return the logarithm of softmax along an axis."""
    return softmax_node(LogSoftmax, x, axis)


def softmax_node(op: type[Softmax], x: Any, axis: int) -> Node:
    """Build the node in a float dtype."""
    x = as_node(x)
    return apply(op(axis_of(axis, x.ndim)), x.astype(float_dtype(x.dtype)))


@public
def logsumexp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Node:
    """Return the logarithm of the sum of exp(x) along axes, all by default, without overflow."""
    x = as_node(x)
    x = x.astype(float_dtype(x.dtype))
    axes = axes_of(axis, x.ndim)
    if not axes:
        return x
    rest = [i for i in range(x.ndim) if i not in axes]
    if len(axes) == 1:
        y = apply(Logsumexp(axes[0]), x)
    else:
        shape = [x.shape[i] for i in rest]
        flat = reshape(transpose(x, [*rest, *axes]), (*shape, prod(x.shape[i] for i in axes)))
        y = apply(Logsumexp(len(rest)), flat)
    return reshape(y, [1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else y
