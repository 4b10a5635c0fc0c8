"""Shape ops, which move elements without computing: views where the layout of bytes allows it, copies elsewhere."""

from collections.abc import Sequence
from functools import partial
from math import prod
from operator import index
from typing import Any

import numpy as np

from cgraph.dtypes.convert import is_storage
from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Bundle, Spec, dtype_of, shape_of
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View, collapse
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Const, ConstOp, as_node
from cgraph.record import replace


class ViewOp(Op):
    """Base of ops whose result is another view of the operand's bytes."""

    takes_complex = True
    takes_storage = True

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, *others: View) -> list[Call]:
            view = self.alias(x)
            return copy_calls(target, out.with_shape(*x.shape), x) if view is None else copy_calls(target, out, view)

        return Work(calls, strided=True)


class Reshape(ViewOp):
    """The same elements in C order under another shape of equal size."""

    shape: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if prod(self.shape) != x.size:
            raise ShapeError(
                f"{x.size} elements do not make shape {list(self.shape)} of {prod(self.shape)}; use -1 for one length"
            )
        return Spec(self.shape, x.dtype)

    def meaning(self, x):
        return x.reshape(self.shape)

    def alias(self, x: View) -> View | None:
        strides = reshaped_strides(x.shape, x.strides, self.shape)
        return None if strides is None else replace(x, shape=self.shape, strides=strides)

    def row_rule(self, x: Spec) -> RowRule | None:
        if not x.shape[:1] == self.shape[:1] != ():
            return None
        return RowRule((0,), lambda rows: Reshape((rows, *self.shape[1:])))

    def grad(self, node, g):
        return (reshape(g, node.operands[0].shape),)


def reshaped_strides(old: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides that show a strided view under another shape, or None if there are none."""
    if prod(old) == 0:
        return (0,) * len(new)
    merged, (steps,) = collapse(old, strides)
    reverse_strides: list[int] = []
    i = len(merged) - 1
    left, step = (merged[i], steps[i]) if merged else (1, 0)
    for n in reversed(new):
        if n == 1:
            reverse_strides.append(0)
            continue
        if left == 1:
            i -= 1
            left, step = merged[i], steps[i]
        if left % n:
            return None
        reverse_strides.append(step)
        left, step = left // n, step * n
    return tuple(reversed(reverse_strides))


class Transpose(ViewOp):
    """Permuted axes: axis i of the result is axis ``axes[i]`` of the operand."""

    axes: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if sorted(self.axes) != list(range(x.ndim)):
            raise ShapeError(f"axes {list(self.axes)} are not a permutation of {x.ndim} axes; name each axis once")
        return Spec(tuple(x.shape[a] for a in self.axes), x.dtype)

    def meaning(self, x):
        return x.transpose(self.axes)

    def alias(self, x: View) -> View:
        return replace(x, shape=tuple(x.shape[a] for a in self.axes), strides=tuple(x.strides[a] for a in self.axes))

    def row_rule(self, x: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape) if self.axes[:1] == (0,) else None

    def grad(self, node, g):
        return (apply(Transpose(tuple(np.argsort(self.axes).tolist())), g),)


class BroadcastTo(ViewOp):
    """The operand repeated along new leading axes and along axes of length 1."""

    shape: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        new = len(self.shape) - x.ndim
        if new < 0 or any(m not in (1, n) for m, n in zip(x.shape, self.shape[new:])):
            raise ShapeError(f"shape {list(x.shape)} does not broadcast to {list(self.shape)}; use equal lengths or 1")
        return Spec(self.shape, x.dtype)

    def meaning(self, x):
        return np.broadcast_to(x, self.shape)

    def alias(self, x: View) -> View:
        new = len(self.shape) - len(x.shape)
        steps = tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides))
        return replace(x, shape=self.shape, strides=(0,) * new + steps)

    def row_rule(self, x: Spec) -> RowRule | None:
        if not self.shape:
            return None
        has_rows = x.ndim == len(self.shape) and x.shape[0] == self.shape[0]
        return RowRule((0,) if has_rows else (), lambda rows: BroadcastTo((rows, *self.shape[1:])))

    def grad(self, node, g):
        return (sum_to(g, node.operands[0].shape),)


def unbroadcast(x: Node) -> Node:
    """Return the operand of a broadcast; `x` itself if it is not a broadcast."""
    while isinstance(x.op, BroadcastTo):
        x = x.operands[0]
    return x


def number_of(x: Node) -> float | None:
    """Return the number that fills a node, if it is known."""
    x = unbroadcast(x)
    if isinstance(x.op, Full):
        return float(x.op.value)
    return float(x.op.array.reshape(())) if isinstance(x.op, ConstOp) and x.size == 1 else None


def sum_to(g: Node, shape: tuple[int, ...]) -> Node:
    """Sum `g` over the axes along which `shape` was broadcast to its shape."""
    new = g.ndim - len(shape)
    axes = tuple(range(new)) + tuple(i + new for i, n in enumerate(shape) if n == 1 and g.shape[i + new] != 1)
    return reshape(g.sum(axis=axes), shape) if axes else g


class Item(ViewOp):
    """One result of an op with several results."""

    index: int

    def infer(self, x: Bundle) -> Spec:  # type: ignore[override]
        return x.specs[self.index]

    def meaning(self, x):
        return x[self.index]

    def alias(self, x: tuple[View, ...]) -> View:  # type: ignore[override]
        return x[self.index]


def items(bundle: Node) -> tuple[Node, ...]:
    """Return all results of a node with several results."""
    return tuple(apply(Item(i), bundle) for i in range(len(bundle.spec.specs)))


class Full(Op):
    """One value everywhere."""

    shape: tuple[int, ...]
    dtype: np.dtype
    value: float | int | bool

    def infer(self) -> Spec:
        return Spec(self.shape, self.dtype)

    def meaning(self):
        return np.full(self.shape, self.value, self.dtype)

    def work(self, target: Target) -> Work:
        return Work(lambda out: fill_calls(target, out, self.value))


class Contiguous(Op):
    """A copy in C order."""

    takes_complex = True
    takes_storage = True

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return np.ascontiguousarray(x)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(partial(copy_calls, target), strided=True)

    def row_rule(self, x: Spec) -> RowRule | None:
        return rows_of_all(self, x.shape)

    def grad(self, node, g):
        return (g,)


# -- public functions -------------------------------------------------------------------------------------------------


def axis_of(axis: int, ndim: int) -> int:
    """Return a non-negative axis. ShapeError outside ``-ndim..ndim-1``, or if it is not an integer."""
    try:
        axis = index(axis)
    except TypeError:
        raise ShapeError(f"axis={axis!r:.60} is not an integer; pass an int") from None
    if not ndim:
        raise ShapeError(f"axis {axis} does not exist: the operand has no axes; pass an array, or leave out the axis")
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is outside the {ndim} axes of the operand; pass one from {-ndim} to {ndim - 1}")
    return axis % ndim


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return non-negative axes in ascending order; None means all. ShapeError for a repeated one."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(distinct_axes(axis if isinstance(axis, Sequence) else (axis,), ndim)))


def distinct_axes(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return non-negative axes in their order. ShapeError for a repeated one."""
    positions = tuple(axis_of(a, ndim) for a in axes)
    if len(set(positions)) != len(positions):
        raise ShapeError(f"axes {tuple(axes)} name one axis twice; name each axis once")
    return positions


@public
def reshape(x: Any, *shape: Any) -> Node:
    """Return the same elements in C order under another shape; one length may be -1."""
    x = as_node(x)
    new = list(shape_of(shape[0] if len(shape) == 1 else shape))
    if new.count(-1) > 1 or any(n < -1 for n in new):
        raise ShapeError(f"shape {new} has more than one -1 or another negative length; use -1 once")
    if -1 in new:
        rest = prod(n for n in new if n != -1)
        if rest == 0 or x.size % rest:
            raise ShapeError(f"{x.name} {x.spec} has {x.size} elements, not a multiple of {rest}; pass another shape")
        new[new.index(-1)] = x.size // rest
    return x if tuple(new) == x.shape else apply(Reshape(tuple(new)), x)


@public
def ravel(x: Any) -> Node:
    """Return all elements along one axis."""
    return reshape(x, -1) if as_node(x).size else reshape(x, 0)


@public
def flatten(x: Any) -> Node:
    """Return all elements along one axis."""
    return ravel(x)


@public
def transpose(x: Any, *axes: Any) -> Node:
    """Permute the axes; reverse them by default."""
    x = as_node(x)
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    is_open = order is None or not axes
    order = tuple(reversed(range(x.ndim))) if is_open else tuple(axis_of(a, x.ndim) for a in order)
    return x if order == tuple(range(x.ndim)) else apply(Transpose(order), x)


@public
def permute_dims(x: Any, axes: Sequence[int]) -> Node:
    """Permute the axes."""
    return transpose(x, axes)


@public
def swapaxes(x: Any, axis1: int, axis2: int) -> Node:
    """Exchange two axes."""
    x = as_node(x)
    order = list(range(x.ndim))
    a, b = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


@public
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Node:
    """Move axes to other positions; the others keep their order."""
    x = as_node(x)
    sources = [axis_of(a, x.ndim) for a in np.atleast_1d(source).tolist()]
    targets = [axis_of(a, x.ndim) for a in np.atleast_1d(destination).tolist()]
    order = [a for a in range(x.ndim) if a not in sources]
    for target, a in sorted(zip(targets, sources)):
        order.insert(target, a)
    return transpose(x, order)


@public
def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Node:
    """Remove axes of length 1: the named ones, or all."""
    x = as_node(x)
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(axis, x.ndim)
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"axis {axis} of {x.name} {x.spec} has more than one element; squeeze axes of length 1 only")
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


@public
def expand_dims(x: Any, axis: int | Sequence[int]) -> Node:
    """Insert axes of length 1 at these positions of the result."""
    x = as_node(x)
    ndim = x.ndim + len(np.atleast_1d(axis))
    axes = axes_of(axis if isinstance(axis, Sequence) else (axis,), ndim)
    old = iter(x.shape)
    return reshape(x, tuple(1 if i in axes else next(old) for i in range(ndim)))


@public
def broadcast_to(x: Any, shape: Any) -> Node:
    """Repeat along new leading axes and along axes of length 1."""
    x, shape = as_node(x), shape_of(shape)
    return x if x.shape == shape else apply(BroadcastTo(shape), x)


@public
def full(shape: Any, value: float | int | bool, dtype: Any = None) -> Node:
    """Return one value everywhere."""
    dtype = dtype_of(dtype) if dtype is not None else np.result_type(value)
    if is_storage(dtype):
        return broadcast_to(Const(value, dtype), shape_of(shape))
    return apply(Full(shape_of(shape), dtype, np.asarray(value, dtype).item()))


@public
def zeros(shape: Any, dtype: Any = "float32") -> Node:
    """Return zeros."""
    return full(shape, 0, dtype)


@public
def ones(shape: Any, dtype: Any = "float32") -> Node:
    """Return ones."""
    return full(shape, 1, dtype)


@public
def zeros_like(x: Any) -> Node:
    """Return zeros of the operand's shape and dtype."""
    return broadcast_to(Const(np.zeros((), as_node(x).dtype)), as_node(x).shape)


@public
def ones_like(x: Any) -> Node:
    """Return ones of the operand's shape and dtype."""
    return broadcast_to(Const(1, as_node(x).dtype), as_node(x).shape)


@public
def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Node:
    """Return evenly spaced numbers, as ``np.arange``."""
    low, high = (0, start) if stop is None else (start, stop)
    return Const(np.arange(low, high, step, dtype))  # type: ignore[call-overload]
