"""Reading and writing elements at computed indices; the two are each other's gradients.

Negative indices count from the end. An index outside its axis ends the run with a PositionError.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.index.calls import (
    ScatterRule,
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
LINEAR_WRITES = ("set", "add", "multiply")  # modes that complex numbers support
WRITES = {"set": "set", "add": "add", "multiply": "mul", "min": "min", "max": "max"}
UFUNCS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def check_positions(indices: Spec) -> None:
    """Check that positions are int32 or int64. DTypeError otherwise."""
    if indices.dtype not in INDEX_DTYPES:
        raise DTypeError(f"positions {indices} must be int32 or int64; convert them with astype")


def check_inside(indices: np.ndarray, n: int) -> None:
    """Raise PositionError unless all positions are inside an axis of n; NumPy checks only those it uses."""
    if indices.size and (indices.min() < -n or indices.max() >= n):
        position = indices.flat[np.argmax((indices < -n) | (indices >= n))]
        raise PositionError(f"position {position} is outside an axis of {n}; pass positions from {-n} to {n - 1}")


def with_length(axis: int, shape: tuple[int, ...], n: int) -> tuple[int, ...]:
    """Return `shape` with n elements along `axis`."""
    return (*shape[:axis], n, *shape[axis + 1 :])


class AtPositions(Op):
    """Base of ops whose operand 1 holds positions along `axis` of operand 0; one outside it ends the run."""

    axis: int
    can_fail = True

    def reason(self, node):
        return node.operands[1], node.operands[0].shape[self.axis]


class WritesAtPositions(AtPositions):
    """Base of ops that write operand 2 at these positions.

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
        """Copy `x`, unless the result overwrites it, then write."""
        first = [] if x == out else copy_calls(target, out, x)
        rule = ScatterRule(self.axis, WRITES[self.how], Pointer(STOP))
        return first + write_calls(target, out, indices, updates, rule, workspace)


class Take(AtPositions):
    """Elements at positions along an axis, as ``np.take``.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64 of any shape, which replaces the axis in the result
    """

    takes_complex = True
    takes_storage = True

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_positions(indices)
        if indices.size and x.shape[self.axis] == 0:
            raise PositionError(f"axis {self.axis} of {x} has no element to take; take along another axis")
        return Spec((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]), x.dtype)

    def meaning(self, x, indices):
        check_inside(indices, x.shape[self.axis])
        return np.take(x, indices, self.axis)

    def row_rule(self, x: Spec, indices: Spec) -> RowRule | None:
        if self.axis:
            return RowRule((0,), lambda rows: self)
        return RowRule((1,), lambda rows: self) if indices.ndim else None

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(lambda out, x, indices: take_calls(target, out, x, indices, self.axis, Pointer(STOP)), strided=True)

    def grad(self, node, g):
        x, indices = node.operands
        return apply(Scatter(self.axis, "add"), zeros_like(x), indices, g), None


class Scatter(WritesAtPositions):
    """`x` with the elements at positions along an axis replaced by, or combined with, those of `updates`.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64, any shape
        updates: of the shape of ``np.take(x, indices, axis)``
    """

    def infer(self, x: Spec, indices: Spec, updates: Spec) -> Spec:
        shape = (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])
        check_positions(indices)
        check_writing(self.how, x, updates)
        if updates.shape != shape:
            raise ShapeError(f"updates {updates} must have the shape {list(shape)} of take(x, indices); broadcast them")
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
    """One element along an axis for each index, as ``np.take_along_axis``.

    Operands
        x: ``[..., n, ...]``
        indices: int32 or int64, of the shape of `x` except along the axis
    """

    takes_complex = True

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_positions(indices)
        n = indices.shape[self.axis] if indices.ndim == x.ndim else 0
        if indices.shape != with_length(self.axis, x.shape, n):
            raise ShapeError(
                f"operand {x} and positions {indices} differ along an axis other than {self.axis}; broadcast them"
            )
        if indices.size and x.shape[self.axis] == 0:
            raise PositionError(f"axis {self.axis} of {x} has no element to take; take along another axis")
        return Spec(indices.shape, x.dtype)

    def meaning(self, x, indices):
        check_inside(indices, x.shape[self.axis])
        return np.take_along_axis(x, indices, self.axis)

    def row_rule(self, x: Spec, indices: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape, indices.shape) if self.axis else None

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(
            lambda out, x, places: take_along_axis_calls(target, out, x, places, self.axis, Pointer(STOP)), strided=True
        )

    def grad(self, node, g):
        x, indices = node.operands
        return apply(PutAlongAxis(self.axis, "add"), zeros_like(x), indices, g), None


class PutAlongAxis(WritesAtPositions):
    """`x` with one element along an axis, for each index, replaced by or combined with one of `updates`.

    Operands
        x: ``[..., n, ...]``
        indices, updates: of one shape, that of `x` except along the axis
    """

    def infer(self, x: Spec, indices: Spec, updates: Spec) -> Spec:
        check_positions(indices)
        check_writing(self.how, x, updates)
        n = indices.shape[self.axis] if indices.ndim == x.ndim else 0
        if indices.shape != updates.shape or indices.shape != with_length(self.axis, x.shape, n):
            raise ShapeError(
                f"positions {indices} and updates {updates} must have the shape of {x} except along axis {self.axis}"
            )
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
    """Check the mode of writing and the dtypes. ShapeError or DTypeError otherwise."""
    if how not in WRITES:
        raise ShapeError(f"how={how!r} is unknown; use {', '.join(WRITES)}")
    if x.dtype != updates.dtype or (how != "set" and x.dtype.kind == "b"):
        raise DTypeError(
            f"x {x.dtype} and updates {updates.dtype} need one dtype, and numbers unless how='set'; use astype"
        )


def write(rows: np.ndarray, places: Any, values: np.ndarray, how: str) -> None:
    """Write into `rows` in the order of the positions."""
    if how == "set":
        rows[places] = values
    else:
        UFUNCS[how].at(rows, places, values)


def write_gradient(op: Any, take: Op, node: Node, g: Node) -> tuple[Node, None, Node]:
    """Return the gradients of add, multiply, min or max; equal extremes share theirs.

    The gradient of an update of 0 that is multiplied is not finite here.
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
    """Return positions as int32 or int64. DTypeError for floats and bool."""
    indices = as_node(indices)
    if indices.dtype.kind not in "iu":
        if indices.size == 0:
            return zeros(indices.shape, "int64")
        raise DTypeError(f"positions must be integers, not {indices.name} {indices.spec}; convert them with astype")
    return indices if indices.dtype in INDEX_DTYPES else indices.astype("int64")


@public
def take(x: Any, indices: Any, axis: int | None = None) -> Node:
    """Take elements at positions along an axis, of the flattened operand by default, as ``np.take``."""
    x = as_node(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return apply(Take(axis_of(axis, x.ndim)), x, positions(indices))


@public
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Node:
    """Take one element along an axis for each index, as ``np.take_along_axis``; the other axes broadcast."""
    x, indices = as_node(x), positions(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    x, indices = broadcast_indices(x, indices, axis)
    return apply(TakeAlongAxis(axis), x, indices)


def broadcast_indices(x: Node, indices: Node, axis: int) -> tuple[Node, Node]:
    """Broadcast operand and positions along the axes other than `axis`."""
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"{x.name} {x.spec} and positions {indices.name} {indices.spec} differ in rank; use expand_dims"
        )
    try:
        shape = np.broadcast_shapes(with_length(axis, x.shape, 1), with_length(axis, indices.shape, 1))
    except ValueError:
        raise ShapeError(
            f"{x.name} {x.spec} and positions {indices.name} {indices.spec} do not fit; use equal lengths or 1"
        ) from None
    return (broadcast_to(v, with_length(axis, shape, v.shape[axis])) for v in (x, indices))  # type: ignore[return-value]


@public
def scatter(x: Any, indices: Any, updates: Any, how: str = "set", axis: int = 0) -> Node:
    """Return `x` with the elements at positions along an axis replaced by `updates`, or combined with them.

    Parameters
        indices: positions, any shape
        updates: broadcast to the shape of ``take(x, indices, axis)``
        how: ``set`` (the last of several stays), ``add``, ``multiply``, ``min`` or ``max``
    """
    x, indices = as_node(x), positions(indices)
    axis = axis_of(axis, x.ndim)
    updates = as_node(updates, x.dtype).astype(x.dtype)
    updates = broadcast_to(updates, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return apply(Scatter(axis, how), x, indices, updates)


@public
def scatter_add(x: Any, indices: Any, updates: Any, axis: int = 0) -> Node:
    """Return `x` with `updates` added at positions along an axis; updates of equal positions add up."""
    return scatter(x, indices, updates, "add", axis)


@public
def put_along_axis(x: Any, indices: Any, values: Any, axis: int = -1, how: str = "set") -> Node:
    """Return `x` with one element along an axis, for each index, replaced by one of `values`, or combined with it.

    x itself is unchanged. `how` as in `scatter`; positions and values broadcast along the other axes.
    """
    x, indices = as_node(x), positions(indices)
    axis = axis_of(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"{x.name} {x.spec} and positions {indices.name} {indices.spec} differ in rank; use expand_dims"
        )
    indices = broadcast_to(indices, with_length(axis, x.shape, indices.shape[axis]))
    values = broadcast_to(as_node(values, x.dtype).astype(x.dtype), indices.shape)
    return apply(PutAlongAxis(axis, how), x, indices, values)
