"""Reading and writing rows at a position that is data and never fails, such as a cache of keys and values, in place."""

from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.rows.calls import rows_calls
from cgraph.kernels.rows.signature import SET, TAKE
from cgraph.kernels.target import Target
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axis_of, zeros_like


def check_start(start: Spec, x: Spec, axis: int) -> None:
    """Check the position: one, or one for each element of a first axis that precedes the axis of rows."""
    if start.dtype != np.int64:
        raise DTypeError(f"start is {start}, but must be int64; convert it with astype")
    if start.shape != () and (axis == 0 or start.shape != x.shape[:1]):
        raise ShapeError(
            f"start {start} does not fit {x}; pass one position, or one for each element of axis 0 if axis={axis} > 0"
        )


def row_slices(start: np.ndarray, n: int, m: int, x: np.ndarray, axis: int) -> Any:
    """Yield, for each element of the first axis, its index, the rows of x in range, and which of `m` rows these are."""
    for i in range(x.shape[0]) if start.ndim else (slice(None),):
        first = int(start[i] if start.ndim else start)
        low, high = (min(max(edge, 0), n) for edge in (first, first + m))
        before = (slice(None),) * (axis - start.ndim)
        yield i, (*before, slice(low, high)), (*before, slice(low - first, high - first))


class SetRows(Op):
    """`x` with the rows from a position on replaced by those of `y`; rows outside the axis are dropped.

    Operands
        x: ``[..., n, ...]``
        y: ``[..., m, ...]``, of the shape of `x` except along the axis
        start: int64, one position or one for each element of the first axis
    """

    axis: int

    def infer(self, x: Spec, y: Spec, start: Spec) -> Spec:
        check_start(start, x, self.axis)
        if x.dtype != y.dtype:
            raise DTypeError(f"x is {x.dtype} and y {y.dtype}; convert y with astype")
        if x.ndim != y.ndim or any(a != b for i, (a, b) in enumerate(zip(x.shape, y.shape)) if i != self.axis):
            raise ShapeError(
                f"x {x} and y {y} differ along an axis other than {self.axis}; reshape y or pass another axis="
            )
        return x

    def meaning(self, x, y, start):
        out = np.array(x)
        for i, place, rows in row_slices(start, x.shape[self.axis], y.shape[self.axis], x, self.axis):
            out[i][place] = y[i][rows]
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(self.calls, target), overwrites=(0,))

    def calls(self, target: Target, out: View, x: View, y: View, start: View) -> list[Call]:
        first = [] if x == out else copy_calls(target, out, x)
        return first + rows_calls(target, SET, out, y, start, self.axis)

    def grad(self, node, g):
        _, y, start = node.operands
        return apply(self, g, zeros_like(y), start), apply(TakeRows(self.axis, y.shape[self.axis]), g, start), None


class TakeRows(Op):
    """`count` rows of `x` from a position on; zeros for rows outside the axis.

    Operands
        x: ``[..., n, ...]``
        start: int64, one position or one for each element of the first axis
    """

    axis: int
    count: int

    def infer(self, x: Spec, start: Spec) -> Spec:
        check_start(start, x, self.axis)
        return Spec((*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :]), x.dtype)

    def meaning(self, x, start):
        out = np.zeros((*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :]), x.dtype)
        for i, place, rows in row_slices(start, x.shape[self.axis], self.count, x, self.axis):
            out[i][rows] = x[i][place]
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(lambda out, x, start: rows_calls(target, TAKE, x, out, start, self.axis))

    def grad(self, node, g):
        x, start = node.operands
        return apply(SetRows(self.axis), zeros_like(x), g, start), None


@public
def set_rows(x: Any, start: Any, y: Any, axis: int = 0) -> Node:
    """Return `x` with the rows from a position on replaced by those of `y`; rows outside the axis are dropped.

    As the source of an update edge to the Var `x`, it writes only these rows, without a copy.

    Parameters
        start: an integer, or one for each element of the first axis; negative ones do not count from the end
        y: of the shape of `x` except along the axis
    """
    x = as_node(x)
    y = as_node(y, x.dtype).astype(x.dtype)
    return apply(SetRows(axis_of(axis, x.ndim)), x, y, as_node(start).astype("int64"))


@public
def take_rows(x: Any, start: Any, count: int, axis: int = 0) -> Node:
    """Return `count` rows of `x` from a position on, with zeros for rows outside the axis, so it never fails.

    Parameters
        start: an integer, or one for each element of the first axis; negative ones do not count from the end
    """
    x = as_node(x)
    return apply(TakeRows(axis_of(axis, x.ndim), int(count)), x, as_node(start).astype("int64"))
