"""Indexing with integer arrays, gather_nd, one_hot, and indices of nonzero elements."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Bundle, Spec, dtype_of
from cgraph.ir.work import Work
from cgraph.kernels.index.calls import nonzero_calls, one_hot_calls
from cgraph.kernels.target import Target
from cgraph.ops.compare import where
from cgraph.ops.leaf import ConstOp, as_node
from cgraph.ops.shape import axis_of, broadcast_to, items, moveaxis, reshape
from cgraph.ops.take import check_positions, positions, take

INDEX = np.dtype("int64")


class OneHot(Op):
    """`on` at one position along a new axis, `off` elsewhere; a position outside the axis gives `off` everywhere.

    Operands
        indices: int32 or int64; negative ones count from the end
    Fields
        depth: length of the new axis
        axis: its position in the result
    """

    depth: int
    axis: int
    dtype: np.dtype
    on: float | int | bool
    off: float | int | bool

    def infer(self, indices: Spec) -> Spec:
        check_positions(indices)
        return Spec((*indices.shape[: self.axis], self.depth, *indices.shape[self.axis :]), self.dtype)

    def meaning(self, indices):
        targets = np.expand_dims(np.where(indices < 0, indices + self.depth, indices), self.axis)
        steps = np.arange(self.depth).reshape(-1, *[1] * (indices.ndim - self.axis))
        return np.where(targets == steps, self.on, self.off).astype(self.dtype)

    def work(self, target: Target, indices: Spec) -> Work:
        return Work(lambda out, x: one_hot_calls(target, out, x, self.axis, self.off, self.on), strided=True)

    def grad(self, node, g):
        return (None,)


class Nonzero(Op):
    """The indices of nonzero elements in C order: int64 ``[axes, size]``, padded with `fill`; and their number."""

    size: int
    fill: int

    def infer(self, x: Spec) -> Bundle:
        return Bundle((Spec((x.ndim, self.size), INDEX), Spec((), INDEX)))

    def meaning(self, x):
        indices = np.array(np.nonzero(x), INDEX).reshape(x.ndim, -1)
        out = np.full((x.ndim, self.size), self.fill, INDEX)
        count = indices.shape[1]
        out[:, :count] = indices[:, : self.size]
        return out, np.array(count)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: nonzero_calls(target, out[0], out[1], x, fill=self.fill))


# -- public functions -------------------------------------------------------------------------------------------------


@public
def one_hot(
    indices: Any,
    depth: int,
    axis: int = -1,
    dtype: Any = "float32",
    on: float | int | bool = 1,
    off: float | int | bool = 0,
) -> Node:
    """Return `on` at each position along a new axis of length `depth`, `off` elsewhere and for positions outside."""
    indices = positions(indices)
    return apply(OneHot(int(depth), axis_of(axis, indices.ndim + 1), dtype_of(dtype), on, off), indices)


@public
def nonzero(x: Any, size: int, fill: int = 0) -> tuple[Node, Node]:
    """Return the indices of nonzero elements in C order, ``[axes, size]`` padded with `fill`, and their number.

    The number may exceed `size`; the indices beyond `size` are dropped.
    """
    x = as_node(x)
    x = x.astype(bool) if x.dtype.kind == "c" else x
    indices, count = items(apply(Nonzero(int(size), int(fill)), atleast_1d(x)))
    return indices, count


@public
def atleast_1d(x: Any) -> Node:
    """Return the operand, with one axis if it has none."""
    x = as_node(x)
    return x if x.ndim else reshape(x, (1,))


@public
def gather_nd(x: Any, indices: Any, batch: int = 0) -> Node:
    """Return the slices of `x` at the positions along its first axes that the last axis of `indices` holds.

    Parameters
        indices: ``[..., k]``; the result is ``[..., *x.shape[batch + k:]]``
        batch: number of leading axes that both share
    Source
        ONNX operator GatherND
    """
    rows, flat = flatten_rows(as_node(x), positions(indices), batch)
    return take(rows, flat, 0)


def flatten_rows(x: Node, indices: Node, batch: int = 0) -> tuple[Node, Node]:
    """Return `x` as rows ``[rows, *rest]``, and the row numbers that the last axis of `indices` selects."""
    indices = indices.astype(INDEX)
    k = indices.shape[-1] if indices.ndim else 0
    if batch + k > x.ndim or batch >= max(indices.ndim, 1) or x.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(
            f"positions {indices.spec} with batch={batch} do not fit {x.name} {x.spec}; "
            f"pass [..., k] with k <= {x.ndim - batch}"
        )
    lengths = x.shape[: batch + k]
    grids = np.indices(x.shape[:batch], sparse=True)
    leading = [i.reshape(*i.shape, *[1] * (indices.ndim - 1 - batch)) for i in grids]
    flat = flat_position([*leading, *(indices[..., i] for i in range(k))], lengths, indices.shape[:-1])
    return reshape(x, (prod(lengths), *x.shape[batch + k :])), flat


@public
def take_index(x: Any, parts: Any) -> Node:
    """Return ``x[parts]`` with integer arrays among the parts, as NumPy's advanced indexing."""
    x = as_node(x)
    check_masks(x, parts)
    parts = [p for part in parts for p in array_parts(part)]
    separated = not are_neighbours(parts)
    parts = expand_ellipsis(x, parts)
    arrays = array_axes(parts)
    basic = [slice(None) if i in arrays else p for i, p in enumerate(parts)]
    x = x[tuple(basic)]
    axes = list(arrays)
    indices = [arrays[i] for i in axes]
    try:
        shape = np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        raise ShapeError(
            f"the positions for {x.name} {x.spec} do not broadcast together; use equal lengths or 1"
        ) from None
    if separated:
        x = moveaxis(x, axes, range(len(axes)))
        axes = list(range(len(axes)))
    lengths = x.shape[axes[0] : axes[-1] + 1]
    rows = flat_position(indices, lengths, shape)
    return take(reshape(x, (*x.shape[: axes[0]], prod(lengths), *x.shape[axes[-1] + 1 :])), rows, axes[0])


def check_masks(x: Node, parts: Any) -> None:
    """Raise ShapeError for one bool, and for a constant mask whose lengths are not those of the axes at its place."""
    masks = [mask_of(part) for part in parts]
    for part, mask in zip(parts, masks):
        if isinstance(part, bool | np.bool_) or (mask is not None and not mask.ndim):
            raise bool_index(part, x)
    counts = [0 if p is None or p is Ellipsis else 1 if m is None else m.ndim for p, m in zip(parts, masks)]
    axis = 0
    for part, mask, count in zip(parts, masks, counts):
        if mask is not None and mask.shape != x.shape[axis : axis + count]:
            raise ShapeError(
                f"a mask of shape {mask.shape} selects from axes of {x.name} {x.spec} with other lengths. "
                "Pass one of equal lengths"
            )
        axis += x.ndim - sum(counts) if part is Ellipsis else count


def bool_index(part: Any, x: Node) -> ShapeError:
    """Return the error for one bool as an index."""
    return ShapeError(f"{part!r} does not index {x.name} {x.spec}; use x[None] for True and x[None][:0] for False")


def mask_of(part: Any) -> np.ndarray | None:
    """Return a part of an index that is a constant mask as an array; None for any other."""
    if isinstance(part, Node):
        part = part.op.array if isinstance(part.op, ConstOp) else None
    array = np.asarray(part) if isinstance(part, list | tuple | np.ndarray) else None
    return array if array is not None and array.dtype.kind == "b" else None


def array_parts(part: Any) -> list[Any]:
    """Return a part of an index as a list; a constant bool array becomes the indices of its True elements."""
    if isinstance(part, list | tuple):
        part = np.asarray(part)
    if isinstance(part, Node) and isinstance(part.op, ConstOp):
        part = part.op.array
    if isinstance(part, Node) and part.dtype.kind == "b":
        raise DTypeError(
            f"{part.name} {part.spec} is a mask without a value yet, so the shape of the result is unknown; "
            "use cg.where, or cg.nonzero with a size"
        )
    if isinstance(part, np.ndarray) and part.dtype.kind == "b":
        return list(np.nonzero(part))
    return [part]


def are_neighbours(parts: list[Any]) -> bool:
    """Return True if nothing stands between the arrays of an index. An ellipsis separates, also one of no axes."""
    places = [i for i, p in enumerate(parts) if p is not None and p is not Ellipsis and not isinstance(p, slice)]
    return places[-1] - places[0] == len(places) - 1


def expand_ellipsis(x: Node, parts: list[Any]) -> list[Any]:
    """Return one part for each axis of `x` or new axis, with the ellipsis replaced by full slices."""
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > x.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(
            f"an index of {used} axes does not fit {x.name} {x.spec}; use at most {x.ndim} and one ellipsis"
        )
    at = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * (x.ndim - used), *parts[at + 1 :]]


def array_axes(parts: list[Any]) -> dict[int, Node]:
    """Return the arrays among the parts, integers included, by position."""
    return {
        i: positions(np.asarray(p) if isinstance(p, int | np.integer) else p)
        for i, p in enumerate(parts)
        if p is not None and not isinstance(p, slice)
    }


def flat_position(indices: list[Any], lengths: tuple[int, ...], shape: tuple[int, ...]) -> Node:
    """Return one flat position from one position along each axis; outside all elements if any is outside its axis."""
    if len(indices) == 1:
        return broadcast_to(positions(indices[0]), shape)
    flat: Any = np.zeros((), INDEX)
    inside: Any = np.ones((), bool)
    for index, n in zip(indices, lengths):
        array = index.op.array if isinstance(index, Node) and isinstance(index.op, ConstOp) else index
        if isinstance(array, np.ndarray) and ((array < -n) | (array >= n)).any():
            raise PositionError(f"a position is outside an axis of {n}; pass positions from {-n} to {n - 1}")
        index = array.astype(INDEX)
        inside = inside & (index >= -n) & (index < n)
        flat = flat * n + (np.where(index < 0, index + n, index) if isinstance(index, np.ndarray) else index % n)
    if isinstance(inside, Node):
        flat = where(inside, flat, prod(lengths))
    return broadcast_to(as_node(flat), shape)
