"""softmax and log_softmax along an axis."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import OPS, Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ops.family import float_dtype, plain
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axis_of


@dataclass(frozen=True)
class Softmax(Op):
    """``exp(x) / sum of exp(x)`` along an axis, without overflow."""

    axis: int

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind != "f":
            raise DTypeError(f"{x.dtype} is no float")
        return x

    def meaning(self, x):
        if x.size == 0:
            return x.copy()
        e = np.exp(x - x.max(self.axis, keepdims=True))
        return e / e.sum(self.axis, keepdims=True)

    def overwrites(self, x: Spec) -> tuple[int, ...]:
        return (0,)

    def grad(self, node, g):
        return (node * (g - OPS["sum"](g * node, self.axis, keepdims=True)),)


@dataclass(frozen=True)
class LogSoftmax(Softmax):
    """``x - log of the sum of exp(x)`` along an axis, without overflow."""

    def meaning(self, x):
        if x.size == 0:
            return x.copy()
        x = x - x.max(self.axis, keepdims=True)
        return x - np.log(np.exp(x).sum(self.axis, keepdims=True))

    def grad(self, node, g):
        return (g - OPS["exp"](node) * OPS["sum"](g, self.axis, keepdims=True),)


@public
def softmax(x: Any, axis: int = -1) -> Node:
    """exp(x) over its sum along an axis."""
    return along(Softmax, x, axis)


@public
def log_softmax(x: Any, axis: int = -1) -> Node:
    """The logarithm of softmax along an axis."""
    return along(LogSoftmax, x, axis)


def along(op: type[Softmax], x: Any, axis: int) -> Node:
    x = as_node(plain(x))
    return apply(op(axis_of(axis, x.ndim)), OPS["astype"](x, float_dtype(x.dtype)))
