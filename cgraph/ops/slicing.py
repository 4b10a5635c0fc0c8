"""Basic indexing: slices with steps, slice assignment, splitting and flipping."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.index import bool_index, take_index
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ViewOp, axes_of, axis_of, broadcast_to, reshape, zeros
from cgraph.record import replace


class Slice(ViewOp):
    """Every `steps[i]`-th element from `starts[i]` on along axis i, `lengths[i]` of them; steps may be negative."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    lengths: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        for n, start, step, length in zip(x.shape, self.starts, self.steps, self.lengths, strict=True):
            if length and not (0 <= start < n and 0 <= start + (length - 1) * step < n):
                raise ShapeError(f"slice {start}:{start + length * step}:{step} is outside an axis of {n}; shorten it")
        return Spec(self.lengths, x.dtype)

    @property
    def index(self) -> tuple[slice, ...]:
        """The slice as Python slices."""
        slices = []
        for start, step, length in zip(self.starts, self.steps, self.lengths):
            stop = start + length * step
            slices.append(slice(start, None if stop < 0 else stop, step))
        return tuple(slices)

    def is_apart_from(self, other: "Slice") -> bool:
        """Return True if one ends before the other begins along some axis, so they share no element."""
        return any(max(a) < min(b) or max(b) < min(a) for a, b in zip(self.ends, other.ends) if a and b)

    @property
    def ends(self) -> list[tuple[int, ...]]:
        """The first and last element along each axis; empty for an empty axis."""
        numbers = zip(self.starts, self.steps, self.lengths)
        return [(start, start + (n - 1) * step) if n else () for start, step, n in numbers]

    def meaning(self, x):
        return x[self.index]

    def alias(self, x: View) -> View:
        offset = sum(start * stride for start, stride in zip(self.starts, x.strides)) if prod(self.lengths) else 0
        strides = tuple(step * stride for step, stride in zip(self.steps, x.strides))
        return View(x.at + offset, self.lengths, strides, x.dtype)

    def row_rule(self, x: Spec) -> RowRule | None:
        if self.starts[:1] != (0,) or self.steps[0] != 1:
            return None
        return RowRule((0,), lambda rows: replace(self, lengths=(rows, *self.lengths[1:])))

    def grad(self, node, g):
        zero = zeros(node.operands[0].shape, node.dtype)
        return (apply(SetSlice(self.starts, self.steps), zero, g),)


class SetSlice(Op):
    """`x` with the elements of a slice replaced by those of `y`; x itself is unchanged."""

    takes_complex = True

    starts: tuple[int, ...]
    steps: tuple[int, ...]

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype:
            raise DTypeError(f"a slice of {x.dtype} cannot be set to {y.dtype}; convert y with astype")
        self.place(y).infer(x)
        return x

    def place(self, y: Spec | View | np.ndarray) -> Slice:
        """Return the slice of the result that holds `y`."""
        return Slice(self.starts, self.steps, y.shape)

    def meaning(self, x, y):
        out = np.array(x)
        out[self.place(y).index] = y
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, y: View) -> list[Call]:
            first = [] if x == out else copy_calls(target, out, x)
            return first + copy_calls(target, self.place(y).alias(out), y)

        return Work(calls, overwrites=(0,), strided=True)

    def grad(self, node, g):
        y = node.operands[1]
        zero = zeros(y.shape, y.dtype)
        return apply(self, g, zero), apply(self.place(y.spec), g)


@public
def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Node]:
    """Split along an axis into equal parts, or before each position, as ``np.split``."""
    x = as_node(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(parts, int):
        if parts < 1 or n % parts:
            raise ShapeError(
                f"axis {axis} of {x.name} {x.spec} does not divide into {parts} equal parts; pass positions"
            )
        parts = [n // parts * i for i in range(1, parts)]
    edges = [0, *parts, n]
    index = [slice(None)] * x.ndim
    return [getitem(x, (*index[:axis], slice(a, b), *index[axis + 1 :])) for a, b in zip(edges, edges[1:])]


@public
def flip(x: Any, axis: int | Sequence[int] | None = None) -> Node:
    """Reverse the order of elements along axes, all by default."""
    x = as_node(x)
    axes = axes_of(axis, x.ndim)
    return getitem(x, tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim)))


@public
def getitem(x: Any, index: Any) -> Node:
    """Index with integers, slices, None and an ellipsis; an integer array or node takes along its axis."""
    x = as_node(x)
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(is_array_index(p) for p in parts):
        return take_index(x, parts)
    slices, shape = basic_index(x, parts)
    op = Slice(*zip(*slices)) if slices else None
    identity = op is None or (op.lengths == x.shape and all(s == 1 for s in op.steps))
    return reshape(x if identity else apply(op, x), shape)  # type: ignore[arg-type]


@public
def set_slice(x: Any, index: Any, y: Any) -> Node:
    """Return `x` with ``x[index]`` replaced by `y`, which broadcasts; x itself is unchanged."""
    x = as_node(x)
    slices, shape = basic_index(x, list(index) if isinstance(index, tuple) else [index])
    y = broadcast_to(as_node(y, x.dtype).astype(x.dtype), shape)
    if not slices:
        return y
    starts, steps, lengths = zip(*slices)
    return apply(SetSlice(starts, steps), x, reshape(y, lengths))


def is_array_index(part: Any) -> bool:
    """Return True if a part of an index is an array, node or sequence."""
    return isinstance(part, Node | list | np.ndarray) or (isinstance(part, Sequence) and not isinstance(part, str))


def basic_index(x: Node, parts: list) -> tuple[list[tuple[int, int, int]], tuple[int, ...]]:
    """Return start, step and length along every axis of `x`, and the shape after dropped and new axes."""
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > x.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(f"index of {used} axes does not fit {x.name} {x.spec}; use at most {x.ndim} and one ellipsis")
    at = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    parts = [*parts[:at], *[slice(None)] * (x.ndim - used), *parts[at + 1 :]]
    slices: list[tuple[int, int, int]] = []
    shape: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        n = x.shape[len(slices)]
        if isinstance(part, slice):
            start, stop, step = part.indices(n)
            length = len(range(start, stop, step))
            slices.append((start if length else 0, step, length))
            shape.append(length)
            continue
        slices.append((position_of(part, n, x), 1, 1))
    return slices, tuple(shape)


def position_of(part: Any, n: int, x: Node) -> int:
    """Return a non-negative position along an axis of length n. ShapeError outside it."""
    if isinstance(part, bool | np.bool_):
        raise bool_index(part, x)
    if not isinstance(part, int | np.integer):
        raise ShapeError(f"{part!r} does not index {x.name} {x.spec}; use ints, slices, None, ... or integer arrays")
    if not -n <= part < n:
        raise ShapeError(f"index {part} is outside an axis of {n} of {x.name} {x.spec}; pass one from {-n} to {n - 1}")
    return int(part) % n
