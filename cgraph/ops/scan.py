"""Cumulative sums and products along an axis."""

from typing import Any, ClassVar

import numpy as np

from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.scan.calls import scan_calls
from cgraph.kernels.target import Target
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import sum_dtype
from cgraph.ops.shape import axis_of, ravel, zeros_like
from cgraph.ops.slicing import flip, getitem


class Scan(Op):
    """Base of ops that combine each element with all before it along an axis."""

    axis: int
    how: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return type(self).numpy(x, axis=self.axis, dtype=x.dtype)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: scan_calls(target, out, x, self.axis, self.how), overwrites=(0,), strided=True)


class Cumsum(Scan):
    """Cumulative sums along an axis."""

    takes_complex = True

    how, numpy = "add", staticmethod(np.cumsum)

    def grad(self, node, g):
        return (flip(apply(self, flip(g, self.axis)), self.axis),)


class Cumprod(Scan):
    """Cumulative products along an axis."""

    takes_complex = True

    how, numpy = "mul", staticmethod(np.cumprod)

    def grad(self, node, g):
        """Use products over 1, 2, 4 … elements, whose gradients need no division and are valid at zeros."""
        x = node.operands[0]
        n, step, levels = x.shape[self.axis], 1, []
        while step < n:
            levels.append((x, step))
            x = concat([self.part(x, 0, step), self.part(x, step, n) * self.part(x, 0, n - step)], self.axis)
            step *= 2
        for y, step in reversed(levels):
            late = self.part(g, step, n)
            to_late = concat([self.part(g, 0, step), late * self.part(y, 0, n - step)], self.axis)
            to_early = concat([late * self.part(y, step, n), zeros_like(self.part(g, 0, step))], self.axis)
            g = to_late + to_early
        return (g,)

    def part(self, x: Node, start: int, stop: int) -> Node:
        """Slice along the axis."""
        return getitem(x, (*[slice(None)] * self.axis, slice(start, stop)))


def scan_node(op: type[Scan], x: Any, axis: int | None) -> Node:
    x = as_node(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return apply(op(axis_of(axis, x.ndim)), x.astype(sum_dtype(x.dtype)))


@public
def cumsum(x: Any, axis: int | None = None) -> Node:
    """Return cumulative sums along an axis, of the flattened operand by default; integers are summed in 64 bits."""
    return scan_node(Cumsum, x, axis)


@public
def cumprod(x: Any, axis: int | None = None) -> Node:
    """Return cumulative products along an axis, of the flattened operand by default; integers use 64 bits."""
    return scan_node(Cumprod, x, axis)
