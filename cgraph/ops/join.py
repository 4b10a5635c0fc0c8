"""Concatenation, stacking, repetition and rolling."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.cut import Cut, row_by_row
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec, shape_of
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.ops.arithmetic import remainder
from cgraph.ops.family import ROWS_AXES, common_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import arange, axis_of, broadcast_to, expand_dims, ravel, reshape
from cgraph.ops.slicing import Slice, split
from cgraph.ops.take import positions, take


class Concat(Op):
    """Operands concatenated along an axis."""

    takes_complex = True

    axis: int

    def infer(self, *xs: Spec) -> Spec:
        first = xs[0]
        for x in xs[1:]:
            if x.ndim != first.ndim or x.dtype != first.dtype:
                raise ShapeError(f"operands {first} and {x} differ in rank or dtype; use expand_dims or astype")
            if any(m != n for i, (m, n) in enumerate(zip(x.shape, first.shape)) if i != self.axis):
                raise ShapeError(
                    f"operands {first} and {x} differ along an axis other than {self.axis}; use another axis, or pad"
                )
        shape = list(first.shape)
        shape[self.axis] = sum(x.shape[self.axis] for x in xs)
        return Spec(tuple(shape), first.dtype)

    def meaning(self, *xs):
        return np.concatenate(xs, self.axis)

    def places(self, out: View, *xs: View | Spec) -> list[View]:
        """Return the view of each operand within the result."""
        views, at = [], 0
        for x in xs:
            starts = tuple(at if i == self.axis else 0 for i in range(len(x.shape)))
            views.append(Slice(starts, (1,) * len(x.shape), x.shape).alias(out))
            at += x.shape[self.axis]
        return views

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, *xs: View) -> list[Call]:
            pairs = zip(self.places(out, *xs), xs)
            return [call for place, x in pairs if not place.shows_same(x) for call in copy_calls(target, place, x)]

        return Work(calls, strided=True)

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return rows_of_all(self, *(x.shape for x in specs)) if self.axis else None

    def cut(self, *specs: Spec) -> Cut | None:
        if self.axis != 1 or specs[0].ndim < ROWS_AXES:
            return None
        return Cut((row_by_row(specs[0].shape[2]),) * len(specs), lambda first, stop: self)

    def grad(self, node, g):
        at, gradients = 0, []
        for x in node.operands:
            starts = tuple(at if i == self.axis else 0 for i in range(x.ndim))
            gradients.append(apply(Slice(starts, (1,) * x.ndim, x.shape), g))
            at += x.shape[self.axis]
        return tuple(gradients)


@public
def concat(xs: Sequence[Any], axis: int | None = 0) -> Node:
    """Concatenate operands along an axis, promoted to one dtype; ``axis=None`` flattens them first."""
    if not len(xs):
        raise ShapeError("concat got no operands; pass at least one")
    dtype = common_dtype(*xs)
    nodes = [as_node(x, dtype).astype(dtype) for x in xs]
    if axis is None:
        nodes, axis = [ravel(x) for x in nodes], 0
    axis = axis_of(axis, nodes[0].ndim)
    return nodes[0] if len(nodes) == 1 else apply(Concat(axis), *nodes)


@public
def stack(xs: Sequence[Any], axis: int = 0) -> Node:
    """Join operands along a new axis."""
    nodes = [as_node(x) for x in xs]
    for x in nodes:
        if x.shape != nodes[0].shape:
            raise ShapeError(f"operands {nodes[0].name} {nodes[0].spec} and {x.name} {x.spec} differ in shape; pad one")
    return concat([expand_dims(x, axis_of(axis, nodes[0].ndim + 1)) for x in nodes], axis)


@public
def roll(x: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Node:
    """Shift elements along axes; those that leave at one end enter at the other.

    Parameters
        shift: whole numbers, or nodes of them, one for each axis or one for all
    """
    x = as_node(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    for a, s in shifts(shift, axis):
        a = axis_of(a, x.ndim)
        n = x.shape[a]
        if isinstance(s, Node):
            x = take(x, remainder(arange(n) - positions(s).astype("int64"), n), a) if n else x
        elif n and s % n:
            head, tail = split(x, [n - s % n], a)
            x = concat([tail, head], a)
    return x


def shifts(shift: Any, axis: int | Sequence[int]) -> list[tuple[int, Any]]:
    """Return pairs of an axis and its shift, an integer or a node of one."""
    if isinstance(shift, Node) and shift.ndim:
        shift = [shift[i] for i in range(shift.shape[0])]
    numbers = list(shift) if isinstance(shift, Sequence) else [shift]
    if not any(isinstance(s, Node) for s in numbers):
        numbers = np.atleast_1d(shift).tolist()
    axes = np.atleast_1d(axis).tolist()
    if len(numbers) != len(axes) and 1 not in (len(numbers), len(axes)):
        raise ShapeError(f"{len(numbers)} shifts do not fit {len(axes)} axes; pass one for each, or one for all")
    if len(axes) == 1:
        axes = axes * len(numbers)
    return list(zip(axes, numbers * len(axes) if len(numbers) == 1 else numbers))


@public
def tile(x: Any, reps: int | Sequence[int]) -> Node:
    """Repeat the whole operand `reps` times along each axis."""
    x = as_node(x)
    repetitions = shape_of(np.atleast_1d(reps).tolist())
    times = (1,) * (x.ndim - len(repetitions)) + repetitions
    pairs = list(zip(times, (1,) * (len(times) - x.ndim) + x.shape))
    x = reshape(x, tuple(m for _, n in pairs for m in (1, n)))
    x = broadcast_to(x, tuple(m for r, n in pairs for m in (r, n)))
    return reshape(x, tuple(r * n for r, n in pairs))


@public
def repeat(x: Any, repeats: int, axis: int | None = None) -> Node:
    """Repeat each element `repeats` times along an axis, of the flattened operand by default."""
    x = as_node(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    wide = broadcast_to(expand_dims(x, axis + 1), (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]))
    return reshape(wide, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))
