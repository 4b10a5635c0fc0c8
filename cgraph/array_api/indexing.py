"""Indexing, sorting, clipping and searching: functions of the standard that differ from NumPy's."""

from typing import Any

import numpy as np

import cgraph.numpy as lazily
from cgraph.array_api.array import Array
from cgraph.array_api.calls import call_eagerly, call_lazily_or_eagerly, function, unwrap, value_of
from cgraph.array_api.functions import beside
from cgraph.ops.slicing import set_slice
from cgraph.ops.sort import argsort as places_in_order
from cgraph.ops.sort import sort as in_order


def parts_of(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def is_basic(part: Any) -> bool:
    return part is None or part is Ellipsis or isinstance(part, int | slice | np.integer | np.bool_)


def plain_key(key: Any) -> tuple[Any, ...]:
    """Return the key with values in place of Arrays."""
    return tuple(unwrap(p, value_of) for p in parts_of(key))


def get_item(x: Array, key: Any) -> Array:
    """Return ``x[key]``, at once if the value exists: each number of an index is part of a graph's structure."""
    parts = parts_of(key)
    arrays = [p for p in parts if not is_basic(p)]
    if not all(isinstance(p, Array | np.ndarray | list) for p in arrays):
        raise IndexError(f"{key!r:.60} is not an index. Use integers, slices, None, ... or arrays")
    masks = any(isinstance(p, list) or p.dtype.kind == "b" for p in arrays)
    if masks or (not arrays and not x.is_lazy):
        return call_eagerly("getitem", lambda x: x[plain_key(key)], (x,), {})
    return call_lazily_or_eagerly("getitem", lambda x, *parts: x[parts], lambda x, *parts: x[parts], (x, *parts), {})


def assign(x: Array, key: Any, value: Any) -> None:
    """Set ``x[key] = value``: the Array becomes another value or another node."""
    if isinstance(value, Array) and np.result_type(x.dtype, value.dtype) != x.dtype:
        raise TypeError(f"{value.dtype} does not fit into {x.dtype}. Use astype first")
    if x.is_lazy and all(map(is_basic, parts_of(key))) and not is_other_kind(value):
        new = call_lazily_or_eagerly("setitem", set_slice, replace_item, (x, parts_of(key), beside(value, x)), {})
        x.rebind(new.node, None, new.count) if new.is_lazy else x.rebind(None, new.value)
        return
    x.rebind(None, replace_item(x.value, plain_key(key), unwrap(value, value_of)))


def is_other_kind(value: Any) -> bool:
    return not isinstance(value, Array | bool | int | float | complex)


def replace_item(x: np.ndarray, key: Any, value: Any) -> np.ndarray:
    copy = np.array(x)
    copy[key] = value
    return copy


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of the elements that are not 0."""
    if not x.ndim:
        raise ValueError("an array of rank 0 has no indices. Use reshape(x, (1,))")
    return call_eagerly("nonzero", np.nonzero, (x,), {})


def eager_sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    rising = np.sort(x, axis=axis, stable=True)
    return np.flip(rising, axis=axis) if descending else rising


def eager_places(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis=axis), axis=axis, stable=True), axis=axis)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return elements in sorted order along an axis."""
    return call_lazily_or_eagerly("sort", in_order, eager_sort, (x, axis), {"descending": descending})


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort an axis."""
    return call_lazily_or_eagerly("argsort", places_in_order, eager_places, (x, axis), {"descending": descending})


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Limit elements to two bounds, in the operand's dtype."""
    bounds = tuple(b if b is None else _bound(b, x) for b in (min, max))
    return call_lazily_or_eagerly("clip", clip_lazily, np.clip, (x, *bounds), {})


def _bound(bound: Any, x: Array) -> Any:
    """Return a bound as an Array of the operand's dtype."""
    if isinstance(bound, Array):
        return bound
    limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    bound = bound if limits is None else builtin_max(limits.min, builtin_min(limits.max, bound))
    return Array(None, np.asarray(bound, x.dtype))


builtin_max, builtin_min = max, min


def clip_lazily(x: Any, low: Any, high: Any) -> Any:
    return lazily.clip(x, low, high).astype(x.dtype)


def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """Return x1 where the condition holds, otherwise x2."""
    return _where(condition, beside(x1, x2), beside(x2, x1))


_where = function("where", "condition, x1, x2, /", lazily.where, np.where)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Return all broadcast to one shape."""
    return list(call_lazily_or_eagerly("broadcast_arrays", lazily.broadcast_arrays, np.broadcast_arrays, arrays, {}))
