"""Reading and writing at positions that are data; each other's gradients.

Positions count from the end when negative. One outside its axis ends the run with a PositionError.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.index.calls import (
    put_along_axis_calls,
    scatter_calls,
    scatter_nbytes,
    take_along_axis_calls,
    take_calls,
)
from cgraph.kernels.kernel import STOP, Call, Pointer, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.compare import equal, where
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import arange, axis_of, broadcast_to, ravel, reshape, zeros, zeros_like

INDEX_DTYPES = (np.dtype("int32"), np.dtype("int64"))
LINEAR_WRITES = ("set", "add", "multiply")  # what complex numbers can be joined by
WRITES = {"set": "set", "add": "add", "multiply": "mul", "min": "min", "max": "max"}
UFUNCS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def check_positions(indices: Spec) -> None:
    if indices.dtype not in INDEX_DTYPES:
        raise DTypeError(f"positions must be int32 or int64, not {indices.dtype}")


def check_inside(indices: np.ndarray, n: int) -> None:
    """PositionError unless all positions lie within an axis of n; NumPy looks only at those whose element it moves."""
    if indices.size and (indices.min() < -n or indices.max() >= n):
        position = indices.flat[np.argmax((indices < -n) | (indices >= n))]
        raise PositionError(f"position {position} is outside an axis of {n}")


def with_length(axis: int, shape: tuple[int, ...], n: int) -> tuple[int, ...]:
    """`shape` with n elements along `axis`."""
    return (*shape[:axis], n, *shape[axis + 1 :])


class AtPositions(Op):
    """Operand 1 are positions along `axis` of operand 0, one outside of which ends the run."""

    axis: int
    can_fail = True

    def reason(self, node):
        return node.operands[1], node.operands[0].shape[self.axis]


class WritesAtPositions(AtPositions):
    """Writes operand 2 there.

    Fields
        how: ``set`` (the last one stays), ``add``, ``multiply``, ``min`` or ``max``, in the order of the positions
    """

    how: str

    @property
    def takes_complex(self) -> bool:  # type: ignore[override]
        return self.how in LINEAR_WRITES

    def calls(
        self,
        target: Target,
        write_calls: Callable[..., list[Call]],
        out: View,
        x: View,
        indices: View,
        updates: View,
        workspace: View | None = None,
    ) -> list[Call]:
        """A copy of `x`, unless it lies where the result does, then the writes."""
        first = [] if x == out else copy_calls(target, out, x)
        how = WRITES[self.how]
        return first + write_calls(target, out, indices, updates, self.axis, how, Pointer(STOP), workspace)


class Take(AtPositions):
    """Elements at positions along an axis, as ``np.take``.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64, any shape, which takes the place of the axis in the result
    """

    takes_complex = True
    takes_halves = True

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_positions(indices)
        if indices.size and x.shape[self.axis] == 0:
            raise PositionError(f"axis {self.axis} has no element to take")
        return Spec((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]), x.dtype)

    def meaning(self, x, indices):
        check_inside(indices, x.shape[self.axis])
        return np.take(x, indices, self.axis)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(lambda out, x, indices: take_calls(target, out, x, indices, self.axis, Pointer(STOP)), strided=True)

    def grad(self, node, g):
        x, indices = node.operands
        return apply(Scatter(self.axis, "add"), zeros_like(x), indices, g), None


class Scatter(WritesAtPositions):
    """`x` with the elements at positions along an axis replaced by, or joined with, those of `updates`.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64, any shape
        updates: the shape of ``np.take(x, indices, axis)``
    """

    def infer(self, x: Spec, indices: Spec, updates: Spec) -> Spec:
        shape = (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])
        check_positions(indices)
        check_writing(self.how, x, updates)
        if updates.shape != shape:
            raise ShapeError(f"the updates must have the shape {list(shape)} of what is taken")
        return x

    def meaning(self, x, indices, updates):
        check_inside(indices, x.shape[self.axis])
        rank = indices.ndim
        rows = np.array(np.moveaxis(x, self.axis, 0))
        values = np.moveaxis(updates, range(self.axis, self.axis + rank), range(rank))
        write(rows, indices.ravel(), values.reshape(indices.size, *rows.shape[1:]), self.how)
        return np.moveaxis(rows, 0, self.axis)

    def work(self, target: Target, x: Spec, indices: Spec, updates: Spec) -> Work:  # type: ignore[override]
        nbytes = scatter_nbytes(target, x.shape, self.axis, indices.size, indices.size)
        return Work(partial(self.calls, target, scatter_calls), nbytes, overwrites=(0,))

    def grad(self, node, g):
        x, indices, updates = node.operands
        take = Take(self.axis)
        if self.how == "set":
            zero = zeros_like(updates)
            order = reshape(arange(indices.size), indices.shape)
            order = reshape(order, (*indices.shape, *[1] * (x.ndim - self.axis - 1)))
            order = broadcast_to(order, updates.shape)
            last = apply(self, zeros(x.shape, "int64"), indices, order)
            wins = equal(apply(take, last, indices), order)
            return apply(self, g, indices, zero), None, where(wins, apply(take, g, indices), zero)
        return write_gradient(self, take, node, g)


class TakeAlongAxis(AtPositions):
    """For each place one element along an axis, as ``np.take_along_axis``.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64, the shape of `x` but for the axis
    """

    takes_complex = True

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_positions(indices)
        n = indices.shape[self.axis] if indices.ndim == x.ndim else 0
        if indices.shape != with_length(self.axis, x.shape, n):
            raise ShapeError(f"operand and positions differ along an axis other than {self.axis}")
        if indices.size and x.shape[self.axis] == 0:
            raise PositionError(f"axis {self.axis} has no element to take")
        return Spec(indices.shape, x.dtype)

    def meaning(self, x, indices):
        check_inside(indices, x.shape[self.axis])
        return np.take_along_axis(x, indices, self.axis)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(
            lambda out, x, places: take_along_axis_calls(target, out, x, places, self.axis, Pointer(STOP)), strided=True
        )

    def grad(self, node, g):
        x, indices = node.operands
        return apply(PutAlongAxis(self.axis, "add"), zeros_like(x), indices, g), None


class PutAlongAxis(WritesAtPositions):
    """`x` with one element along an axis, for each place, replaced by or joined with one of `updates`.

    Operands
        x: ``[..., n, ...]``
        indices, updates: of one shape, that of `x` but for the axis
    """

    def infer(self, x: Spec, indices: Spec, updates: Spec) -> Spec:
        check_positions(indices)
        check_writing(self.how, x, updates)
        n = indices.shape[self.axis] if indices.ndim == x.ndim else 0
        if indices.shape != updates.shape or indices.shape != with_length(self.axis, x.shape, n):
            raise ShapeError(f"positions and updates must have the operand's shape but for axis {self.axis}")
        return x

    def meaning(self, x, indices, updates):
        check_inside(indices, x.shape[self.axis])
        rows = np.array(np.moveaxis(x, self.axis, 0))
        places, values = np.moveaxis(indices, self.axis, 0), np.moveaxis(updates, self.axis, 0)
        others = np.indices(places.shape[1:], sparse=True)
        for i, value in zip(places, values):
            write(rows, (i, *others), value, self.how)
        return np.moveaxis(rows, 0, self.axis)

    def work(self, target: Target, x: Spec, indices: Spec, updates: Spec) -> Work:  # type: ignore[override]
        nbytes = scatter_nbytes(target, x.shape, self.axis, indices.size, indices.shape[self.axis])
        return Work(partial(self.calls, target, put_along_axis_calls), nbytes, overwrites=(0,), strided=True)

    def grad(self, node, g):
        x, indices, updates = node.operands
        take = TakeAlongAxis(self.axis)
        if self.how == "set":
            zero = zeros_like(updates)
            steps = arange(indices.shape[self.axis])
            order = reshape(steps, [-1 if i == self.axis else 1 for i in range(x.ndim)])
            order = broadcast_to(order, updates.shape) if updates.size else zeros(updates.shape, "int64")
            last = apply(self, zeros(x.shape, "int64"), indices, order)
            wins = equal(apply(take, last, indices), order)
            return apply(self, g, indices, zero), None, where(wins, apply(take, g, indices), zero)
        return write_gradient(self, take, node, g)


def check_writing(how: str, x: Spec, updates: Spec) -> None:
    if how not in WRITES:
        raise ShapeError(f"there is no way to write called {how!r}; use {', '.join(WRITES)}")
    if x.dtype != updates.dtype or (how != "set" and x.dtype.kind == "b"):
        raise DTypeError("operand and updates must be of one dtype, and numbers unless they are set")


def write(rows: np.ndarray, places: Any, values: np.ndarray, how: str) -> None:
    """Write into `rows` in the order of the places."""
    if how == "set":
        rows[places] = values
    else:
        UFUNCS[how].at(rows, places, values)


def write_gradient(op: Any, take: Op, node: Node, g: Node) -> tuple[Node, None, Node]:
    """The gradients of adding, multiplying, or taking the smallest or largest; equal ones share.

    An update of 0 that is multiplied has no finite gradient here.
    """
    x, indices, updates = node.operands
    if op.how == "add":
        return g, None, apply(take, g, indices)
    if op.how == "multiply":
        return apply(op, g, indices, updates), None, apply(take, g * node, indices) / updates
    stays = equal(x, node).astype(x.dtype)
    enters = equal(updates, apply(take, node, indices)).astype(x.dtype)
    adds = type(op)(op.axis, "add")
    share = g / apply(adds, stays, indices, enters)
    return share * stays, None, apply(take, share, indices) * enters


# -- public functions -------------------------------------------------------------------------------------------------


def positions(indices: Any) -> Node:
    """Positions as int32 or int64. DTypeError for floats and bool."""
    indices = as_node(indices)
    if indices.dtype.kind not in "iu":
        if indices.size == 0:
            return zeros(indices.shape, "int64")
        raise DTypeError(f"positions must be whole numbers, not {indices.name} {indices.spec}")
    return indices if indices.dtype in INDEX_DTYPES else indices.astype("int64")


@public
def take(x: Any, indices: Any, axis: int | None = None) -> Node:
    """Elements at positions along an axis, of all elements by default, as ``np.take``."""
    x = as_node(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return apply(Take(axis_of(axis, x.ndim)), x, positions(indices))


@public
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Node:
    """For each place one element along an axis, as ``np.take_along_axis``; the other axes broadcast."""
    x, indices = as_node(x), positions(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    x, indices = broadcast_indices(x, indices, axis)
    return apply(TakeAlongAxis(axis), x, indices)


def broadcast_indices(x: Node, indices: Node, axis: int) -> tuple[Node, Node]:
    """Operand and positions broadcast against one another along the axes other than `axis`."""
    if indices.ndim != x.ndim:
        raise ShapeError(f"{x.name} {x.spec} and positions {indices.name} {indices.spec} differ in rank")
    try:
        shape = np.broadcast_shapes(with_length(axis, x.shape, 1), with_length(axis, indices.shape, 1))
    except ValueError:
        raise ShapeError(f"{x.name} {x.spec} and positions {indices.name} {indices.spec} do not fit") from None
    return (broadcast_to(v, with_length(axis, shape, v.shape[axis])) for v in (x, indices))  # type: ignore[return-value]


@public
def scatter(x: Any, indices: Any, updates: Any, how: str = "set", axis: int = 0) -> Node:
    """`x` with the elements at positions along an axis replaced by `updates`, or joined with them.

    Parameters
        indices: positions, any shape
        updates: broadcast to the shape of ``take(x, indices, axis)``
        how: ``set`` (of several the last stays), ``add``, ``multiply``, ``min`` or ``max``
    """
    x, indices = as_node(x), positions(indices)
    axis = axis_of(axis, x.ndim)
    updates = as_node(updates, x.dtype).astype(x.dtype)
    updates = broadcast_to(updates, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return apply(Scatter(axis, how), x, indices, updates)


@public
def scatter_add(x: Any, indices: Any, updates: Any, axis: int = 0) -> Node:
    """`x` with `updates` added at positions along an axis; equal positions add up."""
    return scatter(x, indices, updates, "add", axis)


@public
def put_along_axis(x: Any, indices: Any, values: Any, axis: int = -1, how: str = "set") -> Node:
    """`x` with one element along an axis, for each place, replaced by one of `values`, or joined with it.

    x itself stays as it is. `how` as in `scatter`; positions and values broadcast along the other axes.
    """
    x, indices = as_node(x), positions(indices)
    axis = axis_of(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(f"{x.name} {x.spec} and positions {indices.name} {indices.spec} differ in rank")
    indices = broadcast_to(indices, with_length(axis, x.shape, indices.shape[axis]))
    values = broadcast_to(as_node(values, x.dtype).astype(x.dtype), indices.shape)
    return apply(PutAlongAxis(axis, how), x, indices, values)
