"""Concatenation, splitting, insertion and deletion."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.shapes import atleast_1d, atleast_2d, atleast_3d
from cgraph.numpy.table import of
from cgraph.ops import join, slicing
from cgraph.ops.leaf import ConstOp, as_node
from cgraph.ops.shape import axis_of, broadcast_to, expand_dims, moveaxis, ravel
from cgraph.ops.take import take

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "delete", "dsplit", "dstack", "hsplit",
    "hstack", "insert", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


@of(np.concatenate)
def concatenate(
    arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None, casting: Any = "same_kind"
) -> Node:
    """Return operands one after another along an axis; None flattens them first."""
    arrays = [as_node(x) for x in arrays] if dtype is not None else list(arrays)
    if dtype is None:
        return join.concat(arrays, axis)
    check_casts(arrays, dtype, casting)
    return join.concat([x.astype(dtype) for x in arrays], axis)


concat = concatenate


def check_casts(xs: Sequence[Any], dtype: Any, casting: Any) -> None:
    """Raise DTypeError unless all operands may become this dtype."""
    for x in xs:
        if not np.can_cast(x.dtype, dtype, casting):
            raise DTypeError(f"{x.dtype} does not become {np.dtype(dtype)} under casting={casting!r}; use astype first")


@of(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    """Join operands of one shape along a new axis."""
    nodes = [as_node(x) for x in arrays]
    if len({x.shape for x in nodes}) > 1:
        raise ShapeError(
            f"operands of one shape are stacked, not {', '.join(str(x.spec) for x in nodes)}; use np.broadcast_arrays"
        )
    axis = axis_of(axis, nodes[0].ndim + 1) if nodes else 0
    return concatenate([expand_dims(x, axis) for x in nodes], axis, dtype=dtype, casting=casting)


@of(np.vstack)
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    """Join along the first axis; vectors are rows."""
    return concatenate([atleast_2d(x) for x in tup], 0, dtype=dtype, casting=casting)


@of(np.hstack)
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    """Join along the second axis; vectors along their only one."""
    nodes = [atleast_1d(x) for x in tup]
    return concatenate(nodes, 0 if nodes[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@of(np.dstack)
def dstack(tup: Sequence[Any]) -> Node:
    """Join along the third axis."""
    return concatenate([atleast_3d(x) for x in tup], 2)


@of(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Node:
    """Join along the second axis; vectors are columns."""
    nodes = [as_node(x) for x in tup]
    return concatenate([x if x.ndim > 1 else atleast_2d(x).T for x in nodes], 1)


@of(np.block)
def block(arrays: Any) -> Node:
    """Join nested lists of blocks: the innermost lists along the last axis, the next along the one before it."""
    depth = depth_of(arrays)
    rank = max(depth, *(as_node(x).ndim for x in leaves(arrays)))

    def joined(part: Any, level: int) -> Node:
        if not isinstance(part, list):
            part = as_node(part)
            return part if part.ndim >= rank else expand_dims(part, list(range(rank - part.ndim)))
        return concatenate([joined(p, level + 1) for p in part], rank - depth + level)

    return joined(arrays, 0)


def depth_of(part: Any) -> int:
    """Return the depth of nested lists. ShapeError unless all leaves have the same depth."""
    if not isinstance(part, list):
        return 0
    depths = set(map(depth_of, part))
    if len(depths) > 1:
        raise ShapeError(f"blocks lie {sorted(depths)} lists deep next to each other; put each into as many lists")
    return 1 + max(depths, default=0)


def leaves(part: Any) -> list[Any]:
    return [leaf for p in part for leaf in leaves(p)] if isinstance(part, list) else [part]


@of(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Node:
    """Append elements to an axis; without an axis, flatten both operands first."""
    return concatenate([arr, values] if axis is not None else [ravel(arr), ravel(values)], axis or 0)


# -- apart ------------------------------------------------------------------------------------------------------------


@of(np.split)
def split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Node]:
    """Split into equal parts, or before each position."""
    if np.ndim(indices_or_sections) == 0:
        return slicing.split(ary, int(indices_or_sections), axis)  # type: ignore[arg-type]
    return array_split(ary, indices_or_sections, axis)


@of(np.array_split)
def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Node]:
    """Split into parts of nearly equal length, the longer ones first, or before each position."""
    ary = as_node(ary)
    axis = axis_of(axis, ary.ndim)
    n = ary.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        parts = int(indices_or_sections)  # type: ignore[arg-type]
        if parts < 1:
            raise ShapeError(f"there are no {parts} parts; give at least 1")
        edges = [n // parts * i + min(i, n % parts) for i in range(parts + 1)]
    else:
        edges = [0, *np.asarray(indices_or_sections).tolist(), n]
    lead = (slice(None),) * axis
    return [ary[(*lead, slice(a, b))] for a, b in zip(edges, edges[1:])]


def split_along(name: str, axis: int, least: int) -> Any:
    def function(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Node]:
        ary = as_node(ary)
        if ary.ndim < least:
            raise ShapeError(f"{ary.name} {ary.spec} has fewer than {least} axes; use np.expand_dims")
        return split(ary, indices_or_sections, axis if ary.ndim > 1 else 0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Cut along axis {axis}."
    return of(getattr(np, name))(function)


vsplit, hsplit, dsplit = split_along("vsplit", 0, 2), split_along("hsplit", 1, 1), split_along("dsplit", 2, 3)


@of(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Node, ...]:
    """Return the parts along an axis, without it."""
    return tuple(moveaxis(x, axis, 0))


# -- fewer and more ---------------------------------------------------------------------------------------------------


def constant_positions(positions: Any, verb: str) -> Any:
    """Return positions as an array. NoMeaningError for a node that is not constant: the result's shape depends on
    them."""
    if isinstance(positions, Node) and isinstance(positions.op, ConstOp):
        return positions.op.array
    if isinstance(positions, Node):
        raise NoMeaningError(
            f"which elements to {verb} is {positions.spec} without a value yet, so the shape of the result may depend "
            "on it; use np.take(x, positions) of those that stay"
        )
    return positions


def flat_or_axis(arr: Any, axis: int | None) -> tuple[Node, int]:
    arr = ravel(arr) if axis is None else as_node(arr)
    return arr, axis_of(axis or 0, arr.ndim)


@of(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Node:
    """Return the operand without the elements at constant positions along an axis."""
    arr, axis = flat_or_axis(arr, axis)
    stay = np.delete(np.arange(arr.shape[axis]), constant_positions(obj, "delete"))
    return take(arr, stay, axis)


@of(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Node:
    """Return the operand with values inserted before constant positions along an axis."""
    arr, axis = flat_or_axis(arr, axis)
    n, obj = arr.shape[axis], constant_positions(obj, "insert before")
    places = np.arange(*obj.indices(n)) if isinstance(obj, slice) else np.asarray(obj)
    places = np.flatnonzero(places) if places.dtype.kind == "b" else places if places.size else places.astype(int)
    values = as_node(values, arr.dtype).astype(arr.dtype)
    values = expand_dims(values, list(range(arr.ndim - values.ndim))) if values.ndim < arr.ndim else values
    values = moveaxis(values, 0, axis) if places.ndim == 0 else values
    count = values.shape[axis] if places.size == 1 else places.size
    new = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    order = np.insert(np.arange(n), places.item() if places.size == 1 else places, np.arange(n, n + count))
    return take(concatenate([arr, new], axis), order, axis)
