"""Ops that move elements and compute none: views where the bytes allow it, copies elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import OPS, Node, Op, apply, public
from cgraph.ir.spec import Bundle, Spec, shape_of
from cgraph.kernels.calls.move import copy_calls, fill_calls
from cgraph.kernels.kernel import View, collapse
from cgraph.ops.family import common_dtype, plain
from cgraph.ops.leaf import Const, as_node


@dataclass(frozen=True)
class ViewOp(Op):
    """An op whose result is another view of its operand's bytes."""

    strided = True

    def cpu(self, out: View, *xs: View, scratch: Any = None) -> list:
        seen = self.alias(xs[0])
        return copy_calls(out, seen) if seen is not None else copy_calls(out.with_shape(*xs[0].shape), xs[0])


@dataclass(frozen=True)
class Reshape(ViewOp):
    """The same elements in C order under another shape of as many elements."""

    shape: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if prod(self.shape) != x.size:
            raise ShapeError(f"{x.size} elements do not make shape {list(self.shape)}")
        return Spec(self.shape, x.dtype)

    def meaning(self, x):
        return x.reshape(self.shape)

    def alias(self, x: View) -> View | None:
        strides = reshaped_strides(x.shape, x.strides, self.shape)
        return None if strides is None else replace(x, shape=self.shape, strides=strides)

    def grad(self, node, g):
        return (reshape(g, node.operands[0].shape),)


def reshaped_strides(old: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that show the elements of a strided view under another shape, or None when none do."""
    if prod(old) == 0:
        return (0,) * len(new)
    merged, (steps,) = collapse(old, strides)
    found: list[int] = []
    i = len(merged) - 1
    left, step = (merged[i], steps[i]) if merged else (1, 0)
    for n in reversed(new):
        if n == 1:
            found.append(0)
            continue
        if left == 1:
            i -= 1
            left, step = merged[i], steps[i]
        if left % n:
            return None
        found.append(step)
        left, step = left // n, step * n
    return tuple(reversed(found))


@dataclass(frozen=True)
class Transpose(ViewOp):
    """Axes in another order: axis i of the result is axis ``axes[i]`` of the operand."""

    axes: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        if sorted(self.axes) != list(range(x.ndim)):
            raise ShapeError(f"axes {list(self.axes)} are no order of {x.ndim} axes")
        return Spec(tuple(x.shape[a] for a in self.axes), x.dtype)

    def meaning(self, x):
        return x.transpose(self.axes)

    def alias(self, x: View) -> View:
        return replace(x, shape=tuple(x.shape[a] for a in self.axes), strides=tuple(x.strides[a] for a in self.axes))

    def grad(self, node, g):
        return (apply(Transpose(tuple(np.argsort(self.axes).tolist())), g),)


@dataclass(frozen=True)
class BroadcastTo(ViewOp):
    """The operand repeated along new leading axes and along axes of one element."""

    shape: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        new = len(self.shape) - x.ndim
        if new < 0 or any(m not in (1, n) for m, n in zip(x.shape, self.shape[new:])):
            raise ShapeError(f"shape {list(x.shape)} does not broadcast to {list(self.shape)}")
        return Spec(self.shape, x.dtype)

    def meaning(self, x):
        return np.broadcast_to(x, self.shape)

    def alias(self, x: View) -> View:
        new = len(self.shape) - len(x.shape)
        steps = tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides))
        return replace(x, shape=self.shape, strides=(0,) * new + steps)

    def grad(self, node, g):
        return (sum_to(g, node.operands[0].shape),)


def sum_to(g: Node, shape: tuple[int, ...]) -> Node:
    """`g` summed over the axes along which `shape` was broadcast to it."""
    new = g.ndim - len(shape)
    axes = tuple(range(new)) + tuple(i + new for i, n in enumerate(shape) if n == 1 and g.shape[i + new] != 1)
    return reshape(OPS["sum"](g, axis=axes), shape) if axes else g


@dataclass(frozen=True)
class Slice(ViewOp):
    """Every `steps[i]`-th element from `starts[i]` on along axis i, `lengths[i]` of them; steps may be negative."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    lengths: tuple[int, ...]

    def infer(self, x: Spec) -> Spec:
        for n, start, step, length in zip(x.shape, self.starts, self.steps, self.lengths, strict=True):
            if length and not (0 <= start < n and 0 <= start + (length - 1) * step < n):
                raise ShapeError(f"slice {start}:{start + length * step}:{step} leaves an axis of {n}")
        return Spec(self.lengths, x.dtype)

    @property
    def index(self) -> tuple[slice, ...]:
        """The same as Python slices."""
        found = []
        for start, step, length in zip(self.starts, self.steps, self.lengths):
            stop = start + length * step
            found.append(slice(start, None if stop < 0 else stop, step))
        return tuple(found)

    def meaning(self, x):
        return x[self.index]

    def alias(self, x: View) -> View:
        offset = sum(start * stride for start, stride in zip(self.starts, x.strides)) if prod(self.lengths) else 0
        strides = tuple(step * stride for step, stride in zip(self.steps, x.strides))
        return View(x.at + offset, self.lengths, strides, x.dtype)

    def grad(self, node, g):
        zero = OPS["zeros"](node.operands[0].shape, node.dtype)
        return (apply(SetSlice(self.starts, self.steps), zero, g),)


@dataclass(frozen=True)
class SetSlice(Op):
    """`x` with the elements of a slice replaced by those of `y`; x itself stays as it is."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    strided = True

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype:
            raise DTypeError(f"the slice of {x.dtype} cannot be set to {y.dtype}")
        apply_slice = Slice(self.starts, self.steps, y.shape)
        apply_slice.infer(x)
        return x

    def meaning(self, x, y):
        out = np.array(x)
        out[Slice(self.starts, self.steps, y.shape).index] = y
        return out

    def overwrites(self, x: Spec, y: Spec) -> tuple[int, ...]:
        return (0,)

    def cpu(self, out: View, x: View, y: View, scratch: Any = None) -> list:
        place = Slice(self.starts, self.steps, y.shape).alias(out)
        first = [] if x == out else copy_calls(out, x)
        return first + copy_calls(place, y)

    def grad(self, node, g):
        y = node.operands[1]
        whole = Slice(self.starts, self.steps, y.shape)
        zero = OPS["zeros"](y.shape, y.dtype)
        return apply(self, g, zero), apply(whole, g)


@dataclass(frozen=True)
class Concat(Op):
    """Operands one after another along an axis."""

    axis: int
    strided = True

    def infer(self, *xs: Spec) -> Spec:
        first = xs[0]
        for x in xs[1:]:
            if x.ndim != first.ndim or x.dtype != first.dtype:
                raise ShapeError("operands differ in rank or dtype")
            if any(m != n for i, (m, n) in enumerate(zip(x.shape, first.shape)) if i != self.axis):
                raise ShapeError(f"operands differ along an axis other than {self.axis}")
        shape = list(first.shape)
        shape[self.axis] = sum(x.shape[self.axis] for x in xs)
        return Spec(tuple(shape), first.dtype)

    def meaning(self, *xs):
        return np.concatenate(xs, self.axis)

    def places(self, out: View, *xs: View | Spec) -> list[View]:
        """Where each operand lies in the result."""
        found, at = [], 0
        for x in xs:
            starts = tuple(at if i == self.axis else 0 for i in range(len(x.shape)))
            found.append(Slice(starts, (1,) * len(x.shape), x.shape).alias(out))
            at += x.shape[self.axis]
        return found

    def cpu(self, out: View, *xs: View, scratch: Any = None) -> list:
        pairs = zip(self.places(out, *xs), xs)
        return [call for place, x in pairs if place != x for call in copy_calls(place, x)]

    def grad(self, node, g):
        at, found = 0, []
        for x in node.operands:
            starts = tuple(at if i == self.axis else 0 for i in range(x.ndim))
            found.append(apply(Slice(starts, (1,) * x.ndim, x.shape), g))
            at += x.shape[self.axis]
        return tuple(found)


@dataclass(frozen=True)
class Item(ViewOp):
    """One result of an op that has several."""

    index: int

    def infer(self, x: Bundle) -> Spec:  # type: ignore[override]
        return x.specs[self.index]

    def meaning(self, x):
        return x[self.index]

    def alias(self, x: tuple[View, ...]) -> View:  # type: ignore[override]
        return x[self.index]


def items(bundle: Node) -> tuple[Node, ...]:
    """Every result of a node that has several."""
    return tuple(apply(Item(i), bundle) for i in range(len(bundle.spec.specs)))


@dataclass(frozen=True)
class Full(Op):
    """One number everywhere."""

    shape: tuple[int, ...]
    dtype: np.dtype
    value: float | int | bool

    def infer(self) -> Spec:
        return Spec(self.shape, self.dtype)

    def meaning(self):
        return np.full(self.shape, self.value, self.dtype)

    def cpu(self, out: View, scratch: Any = None) -> list:
        return fill_calls(out, self.value)


@dataclass(frozen=True)
class Contiguous(Op):
    """A copy in C order."""

    strided = True

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return np.ascontiguousarray(x)

    def cpu(self, out: View, x: View, scratch: Any = None) -> list:
        return copy_calls(out, x)

    def grad(self, node, g):
        return (g,)


# -- public functions -------------------------------------------------------------------------------------------------


def axis_of(axis: int, ndim: int) -> int:
    """A non-negative axis. ShapeError outside ``-ndim..ndim-1``."""
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is outside the {ndim} axes of the operand")
    return axis % ndim


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Non-negative axes in rising order; None is all of them. ShapeError for a repeated one."""
    if axis is None:
        return tuple(range(ndim))
    found = [axis_of(a, ndim) for a in (axis if isinstance(axis, Sequence) else (axis,))]
    if len(set(found)) != len(found):
        raise ShapeError(f"axes {axis} name one axis twice")
    return tuple(sorted(found))


@public
def reshape(x: Any, *shape: Any) -> Node:
    """The same elements in C order under another shape; one axis may be -1."""
    x = as_node(plain(x))
    new = list(shape_of(shape[0] if len(shape) == 1 else shape))
    if new.count(-1) > 1 or any(n < -1 for n in new):
        raise ShapeError(f"reshape: shape {new} has more than one unknown axis or a negative one")
    if -1 in new:
        known = prod(n for n in new if n != -1)
        if known == 0 or x.size % known:
            raise ShapeError(f"reshape: {x.name} {x.spec} has {x.size} elements, no multiple of {known}")
        new[new.index(-1)] = x.size // known
    return x if tuple(new) == x.shape else apply(Reshape(tuple(new)), x)


@public
def ravel(x: Any) -> Node:
    """All elements along one axis."""
    return reshape(x, -1) if as_node(plain(x)).size else reshape(x, 0)


@public
def flatten(x: Any) -> Node:
    """All elements along one axis."""
    return ravel(x)


@public
def transpose(x: Any, *axes: Any) -> Node:
    """Axes in another order, reversed by default."""
    x = as_node(plain(x))
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    order = tuple(axis_of(a, x.ndim) for a in order) if order else tuple(reversed(range(x.ndim)))
    return x if order == tuple(range(x.ndim)) else apply(Transpose(order), x)


@public
def permute_dims(x: Any, axes: Sequence[int]) -> Node:
    """Axes in another order."""
    return transpose(x, axes)


@public
def swapaxes(x: Any, axis1: int, axis2: int) -> Node:
    """Two axes exchanged."""
    x = as_node(plain(x))
    order = list(range(x.ndim))
    a, b = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


@public
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Node:
    """Axes moved to other positions, the rest in their order."""
    x = as_node(plain(x))
    sources = [axis_of(a, x.ndim) for a in np.atleast_1d(source).tolist()]
    targets = [axis_of(a, x.ndim) for a in np.atleast_1d(destination).tolist()]
    order = [a for a in range(x.ndim) if a not in sources]
    for target, a in sorted(zip(targets, sources)):
        order.insert(target, a)
    return transpose(x, order)


@public
def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Node:
    """Without axes of one element: the named ones, or all."""
    x = as_node(plain(x))
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(axis, x.ndim)
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze: axis {axis} of {x.name} {x.spec} has more than one element")
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


@public
def expand_dims(x: Any, axis: int | Sequence[int]) -> Node:
    """With new axes of one element, at these positions of the result."""
    x = as_node(plain(x))
    ndim = x.ndim + len(np.atleast_1d(axis))
    axes = axes_of(axis if isinstance(axis, Sequence) else (axis,), ndim)
    old = iter(x.shape)
    return reshape(x, tuple(1 if i in axes else next(old) for i in range(ndim)))


@public
def broadcast_to(x: Any, shape: Any) -> Node:
    """Repeated along new leading axes and along axes of one element."""
    x, shape = as_node(plain(x)), shape_of(shape)
    return x if x.shape == shape else apply(BroadcastTo(shape), x)


@public
def concat(xs: Sequence[Any], axis: int | None = 0) -> Node:
    """Operands one after another along an axis; None flattens them first. Promotes to one dtype."""
    if not len(xs):
        raise ShapeError("concat needs at least one operand")
    dtype = common_dtype(*xs)
    nodes = [OPS["astype"](as_node(plain(x), dtype), dtype) for x in xs]
    if axis is None:
        nodes, axis = [ravel(x) for x in nodes], 0
    axis = axis_of(axis, nodes[0].ndim)
    return nodes[0] if len(nodes) == 1 else apply(Concat(axis), *nodes)


@public
def stack(xs: Sequence[Any], axis: int = 0) -> Node:
    """Operands along a new axis."""
    nodes = [as_node(plain(x)) for x in xs]
    return concat([expand_dims(x, axis_of(axis, nodes[0].ndim + 1)) for x in nodes], axis)


@public
def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Node]:
    """Cut along an axis: into equal parts, or before each position, as ``np.split``."""
    x = as_node(plain(x))
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(parts, int):
        if parts < 1 or n % parts:
            raise ShapeError(f"split: axis {axis} of {x.name} {x.spec} does not divide into {parts} equal parts")
        parts = [n // parts * i for i in range(1, parts)]
    edges = [0, *parts, n]
    index = [slice(None)] * x.ndim
    return [getitem(x, (*index[:axis], slice(a, b), *index[axis + 1 :])) for a, b in zip(edges, edges[1:])]


@public
def flip(x: Any, axis: int | Sequence[int] | None = None) -> Node:
    """Elements in reverse order along the axes, all by default."""
    x = as_node(plain(x))
    axes = axes_of(axis, x.ndim)
    return getitem(x, tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim)))


@public
def roll(x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Node:
    """Elements moved along axes, those that leave come in at the other end."""
    x = as_node(plain(x))
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    for a, s in zip(np.atleast_1d(axis).tolist(), np.broadcast_to(shift, np.shape(np.atleast_1d(axis))).tolist()):
        a = axis_of(a, x.ndim)
        s = s % x.shape[a] if x.shape[a] else 0
        if s:
            head, tail = split(x, [x.shape[a] - s], a)
            x = concat([tail, head], a)
    return x


@public
def tile(x: Any, reps: int | Sequence[int]) -> Node:
    """The whole repeated `reps` times along each axis."""
    x = as_node(plain(x))
    reps = (1,) * (x.ndim - len(np.atleast_1d(reps))) + shape_of(np.atleast_1d(reps).tolist())
    shape = (1,) * (len(reps) - x.ndim) + x.shape
    pairs = [(r, n) for r, n in zip(reps, shape)]
    x = reshape(x, tuple(m for _, n in pairs for m in (1, n)))
    x = broadcast_to(x, tuple(m for r, n in pairs for m in (r, n)))
    return reshape(x, tuple(r * n for r, n in pairs))


@public
def repeat(x: Any, repeats: int, axis: int | None = None) -> Node:
    """Each element `repeats` times in a row."""
    x = as_node(plain(x))
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    wide = broadcast_to(expand_dims(x, axis + 1), (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]))
    return reshape(wide, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


@public
def full(shape: Any, value: float | int | bool, dtype: Any = None) -> Node:
    """One number everywhere."""
    dtype = np.dtype(dtype) if dtype is not None else np.result_type(value)
    return apply(Full(shape_of(shape), dtype, np.asarray(value, dtype).item()))


@public
def zeros(shape: Any, dtype: Any = "float32") -> Node:
    """Zeros."""
    return full(shape, 0, dtype)


@public
def ones(shape: Any, dtype: Any = "float32") -> Node:
    """Ones."""
    return full(shape, 1, dtype)


@public
def zeros_like(x: Any) -> Node:
    """Zeros of the operand's shape and dtype."""
    return broadcast_to(Const(np.zeros((), as_node(plain(x)).dtype)), as_node(plain(x)).shape)


@public
def ones_like(x: Any) -> Node:
    """Ones of the operand's shape and dtype."""
    return broadcast_to(Const(np.ones((), as_node(plain(x)).dtype)), as_node(plain(x)).shape)


@public
def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Node:
    """Evenly spaced numbers, as ``np.arange``."""
    return Const(np.arange(0 if stop is None else start, start if stop is None else stop, step, dtype))


@public
def getitem(x: Any, index: Any) -> Node:
    """Basic indexing: ints, slices, None and an ellipsis; an integer array or node takes along its axis."""
    x = as_node(plain(x))
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(is_array_index(p) for p in parts):
        return OPS["take_index"](x, parts)
    slices, shape = basic_index(x, parts)
    op = Slice(*zip(*slices)) if slices else None
    identity = op is None or (op.lengths == x.shape and all(s == 1 for s in op.steps))
    return reshape(x if identity else apply(op, x), shape)


@public
def set_slice(x: Any, index: Any, y: Any) -> Node:
    """`x` with ``x[index]`` replaced by `y`, which broadcasts; x itself stays as it is."""
    x = as_node(plain(x))
    slices, shape = basic_index(x, list(index) if isinstance(index, tuple) else [index])
    y = broadcast_to(OPS["astype"](as_node(plain(y), x.dtype), x.dtype), shape)
    if not slices:
        return y
    starts, steps, lengths = zip(*slices)
    return apply(SetSlice(starts, steps), x, reshape(y, lengths))


def is_array_index(part: Any) -> bool:
    return isinstance(part, Node | list | np.ndarray) or (isinstance(part, Sequence) and not isinstance(part, str))


def basic_index(x: Node, parts: list) -> tuple[list[tuple[int, int, int]], tuple[int, ...]]:
    """Start, step and length along every axis of `x`, and the shape after dropped and new axes."""
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > x.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(f"index with {used} axes for {x.name} {x.spec}")
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
    """A non-negative position along an axis of n. ShapeError outside it."""
    if isinstance(part, bool) or not isinstance(part, int | np.integer):
        raise ShapeError(f"{part!r} is no index of {x.name} {x.spec}; use ints, slices, None, ... or an integer array")
    if not -n <= part < n:
        raise ShapeError(f"index {part} is outside axis of {n} of {x.name} {x.spec}")
    return int(part) % n
