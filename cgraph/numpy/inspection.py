"""Functions that need only shapes and dtypes, and return Python numbers, tuples and dtypes."""

from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops.join import stack
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import expand_dims, moveaxis

__all__ = [
    "apply_along_axis", "apply_over_axes", "can_cast", "common_type", "diag_indices_from", "iscomplexobj",
    "isrealobj", "ix_", "min_scalar_type", "ndim", "result_type", "shape", "size", "tril_indices_from",
    "triu_indices_from",
]  # fmt: skip


@of(np.ndim)
def ndim(a: Any) -> int:
    """Return the number of axes."""
    return as_node(a).ndim


@of(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """Return the lengths of the axes."""
    return as_node(a).shape


@of(np.size)
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, in total or along axes."""
    a = as_node(a)
    return a.size if axis is None else int(np.prod([a.shape[i] for i in np.atleast_1d(axis)]))


def plain(x: Any) -> Any:
    """Return the dtype of a node; other values unchanged."""
    return x.dtype if isinstance(x, Node) else x


@of(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype of a combination of operands."""
    return np.result_type(*map(plain, arrays_and_dtypes))


@of(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return True if one dtype, or a node's dtype, can become another."""
    return np.can_cast(plain(from_), plain(to), casting)


@of(np.common_type)
def common_type(*arrays: Any) -> type:
    """Return the float type of a combination of operands."""
    return np.common_type(*(np.zeros((), x.dtype) if isinstance(x, Node) else x for x in arrays))


@of(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> np.dtype:
    """Return the node's own dtype: its values are not known."""
    return as_node(a).dtype


@of(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Return True if the dtype is complex."""
    return as_node(x).dtype.kind == "c"


@of(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Return True if the dtype is not complex."""
    return not iscomplexobj(x)


def stand_in(a: Any) -> np.ndarray:
    """Return an array of the node's shape, of one element's bytes."""
    return np.broadcast_to(np.zeros(()), as_node(a).shape)


@of(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the elements on and above a diagonal."""
    return np.triu_indices_from(stand_in(arr), k)


@of(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the elements on and below a diagonal."""
    return np.tril_indices_from(stand_in(arr), k)


@of(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[np.ndarray, ...]:
    """Return the indices of the main diagonal."""
    return np.diag_indices_from(stand_in(arr))


@of(np.ix_)
def ix_(*args: Any) -> tuple[Node, ...]:
    """Return rows of indices, each along a different axis."""
    nodes = [as_node(x) for x in args]
    if rest := [x for x in nodes if x.ndim != 1]:
        raise ShapeError(f"{rest[0].name} {rest[0].spec} is not a row of indices. Use np.ravel(x)")
    return tuple(x.reshape([-1 if i == j else 1 for j in range(len(nodes))]) for i, x in enumerate(nodes))


@of(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Node:
    """Apply a function along one axis after another, keeping every axis."""
    a = as_node(a)
    for axis in np.atleast_1d(axes).tolist():
        values = func(a, axis)
        a = values if values.ndim == a.ndim else expand_dims(values, axis)
    return a


@of(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Node:
    """Apply a function to each row of a node along an axis; its results take the place of the axis.

    Every row adds nodes to the graph, so prefer functions with an `axis` argument.
    """
    arr = as_node(arr)
    rows = moveaxis(arr, axis, -1)
    flat = rows.reshape((-1, rows.shape[-1]))
    results = stack([func1d(flat[i], *args, **kwargs) for i in range(flat.shape[0])])
    results = results.reshape((*rows.shape[:-1], *results.shape[1:]))
    ends = range(arr.ndim - 1, results.ndim)
    return moveaxis(results, ends, [axis % arr.ndim + i for i in range(len(ends))]) if ends else results
