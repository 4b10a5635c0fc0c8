"""NumPy's functions that change their first argument, as functions that return its new value."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node, locates_errors
from cgraph.numpy.assign import with_item
from cgraph.numpy.at import Elements
from cgraph.numpy.shapes import resize
from cgraph.ops.compare import where as choose
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ravel, reshape
from cgraph.ops.sort import sort
from cgraph.ops.take import put_along_axis as put_along
from cgraph.transforms.weak import SAMPLES

UPDATES = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
    np.power: "power",
    np.minimum: "min",
    np.maximum: "max",
}
"""Ufuncs with a method ``at``, and the method of `Elements` that does the same."""


@locates_errors
def copyto(dst: Node, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    """Return `dst` with the values of `src` where a mask is True. DTypeError for values of another kind."""
    new = as_node(src, dst.dtype)
    dtype = np.result_type(dst.dtype, src) if type(src) in SAMPLES else new.dtype
    if not np.can_cast(dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"np.copyto does not copy {dtype} to {dst.name} {dst.spec} with casting={casting!r}; use astype first"
        )
    return with_item(dst, ..., new if where is True else choose(as_node(where), new, dst))


@locates_errors
def putmask(a: Node, mask: Any, values: Any) -> Node:
    """Return `a` with the value of the same place where a mask is True; values are repeated."""
    return with_item(a, ..., choose(as_node(mask).astype(bool), repeat_to(values, a, a.shape), a))


@locates_errors
def put(a: Node, ind: Any, v: Any, mode: str = "raise") -> Node:
    """Return `a` with values at positions of the flattened array; values are repeated."""
    if mode != "raise":
        raise NoMeaningError(f"np.put has no mode={mode!r} for nodes; use positions % x.size, or np.clip of them")
    places = ravel(as_node(ind))
    return reshape(with_item(ravel(a), places, repeat_to(v, a, places.shape)), a.shape)


@locates_errors
def fill_diagonal(a: Node, val: Any, wrap: bool = False) -> Node:
    """Return `a` with values on its main diagonal; values are repeated."""
    if wrap or a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ShapeError(
            f"np.fill_diagonal takes a matrix, or an array of equal lengths, without wrap=True; not {a.name} {a.spec}"
        )
    places = np.arange(min(a.shape))
    return with_item(a, (places,) * a.ndim, repeat_to(val, a, places.shape))


@locates_errors
def put_along_axis(arr: Node, indices: Any, values: Any, axis: int | None) -> Node:
    """Return `arr` with values at positions along an axis, of the flattened array for None."""
    if axis is None:
        return reshape(put_along(ravel(arr), ravel(as_node(indices)), values, 0), arr.shape)
    return put_along(arr, indices, values, axis)


def partition(a: Node, kth: Any, axis: int = -1) -> Node:
    """Return `a` sorted along an axis, which is a partition for every `kth`."""
    return sort(a, axis)


def update_at(ufunc: np.ufunc, a: Node, indices: Any, b: Any) -> Node:
    """Return `a` after ``ufunc.at(a, indices, b)``: equal positions are combined with all their values."""
    if ufunc not in UPDATES:
        names = ", ".join(f"np.{x.__name__}.at" for x in UPDATES)
        raise NoMeaningError(f"np.{ufunc.__name__}.at has no meaning for nodes; use one of {names}")
    return getattr(Elements(a, indices), UPDATES[ufunc])(b)


def repeat_to(values: Any, a: Node, shape: tuple[int, ...]) -> Node:
    """Return values for elements of `a` in a shape, in which they are repeated; a number unchanged."""
    values = as_node(values, a.dtype)
    return resize(values, shape) if values.ndim else values


CHANGING: dict[Callable, Callable[..., Node]] = {
    np.copyto: copyto,
    np.fill_diagonal: fill_diagonal,
    np.put: put,
    np.put_along_axis: put_along_axis,
    np.putmask: putmask,
}
"""NumPy's functions, and what gives the new value of their first argument."""
