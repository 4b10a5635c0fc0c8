"""Reductions that ignore NaN. If no elements are left they return NumPy's result, without its warning."""

from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy import reductions
from cgraph.numpy.table import of
from cgraph.ops.compare import isnan, logical_not, where
from cgraph.ops.elementary import root_of_squares
from cgraph.ops.family import wide_node
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import Axis
from cgraph.ops.reduce import all as all_true

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def fill_nan(a: Any, value: float) -> Node:
    """Replace NaN by a number."""
    a = wide_node(a)
    return where(isnan(a), np.asarray(value, a.dtype), a) if a.dtype.kind in "fc" else a


def counts(a: Node, more: Any) -> Any:
    """Return the mask of the elements that count: not NaN, and selected by `more`."""
    if a.dtype.kind not in "fc":
        return more
    return logical_not(isnan(a)) if more is True or more is None else logical_not(isnan(a)) & as_node(more).astype(bool)


@of(np.nansum)
def nansum(
    a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Node:
    """Return the sum of the elements that are not NaN."""
    return reductions.sum(fill_nan(a, 0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@of(np.nanprod)
def nanprod(
    a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Node:
    """Return the product of the elements that are not NaN."""
    return reductions.prod(fill_nan(a, 1), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@of(np.nanmean)
def nanmean(a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True) -> Node:
    """Return the mean of the elements that are not NaN; NaN where nothing is left."""
    a = wide_node(a)
    return reductions.mean(fill_nan(a, 0), axis, dtype, keepdims=keepdims, where=counts(a, where))


@of(np.nanvar)
def nanvar(
    a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False, where: Any = True,
    mean: Any = None, correction: float | None = None,
) -> Node:  # fmt: skip
    """Return the variance of the elements that are not NaN; NaN where no more than `ddof` elements are left."""
    a = wide_node(a)
    ddof = reductions.freedom(ddof, correction)
    if mean is not None and a.dtype.kind in "fc":  # NumPy subtracts it in place
        mean = as_node(mean).astype(a.dtype)
        if np.broadcast_shapes(a.shape, mean.shape) != a.shape:
            raise ShapeError(f"mean {mean.spec} does not broadcast to {a.spec}. Pass np.nanmean(a, keepdims=True)")
    variance = reductions.var(fill_nan(a, 0), axis, dtype, ddof, keepdims=keepdims, where=counts(a, where), mean=mean)
    if a.dtype.kind not in "fc":
        return variance
    left = reductions.sum(logical_not(isnan(a)), axis, keepdims=keepdims, where=where)
    return choice(left > ddof, variance, np.asarray(np.nan, variance.dtype))


choice = where


@of(np.nanstd)
def nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False, where: Any = True,
    mean: Any = None, correction: float | None = None,
) -> Node:  # fmt: skip
    """Return the square root of `nanvar`."""
    return root_of_squares(
        nanvar(a, axis, dtype, ddof, keepdims=keepdims, where=where, mean=mean, correction=correction)
    )


@of(np.nanmax)
def nanmax(a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Node:
    """Return the largest of the elements that are not NaN; NaN where nothing is left."""
    return extreme(reductions.max, -np.inf, a, axis, keepdims, initial, where)


@of(np.nanmin)
def nanmin(a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Node:
    """Return the smallest of the elements that are not NaN; NaN where nothing is left."""
    return extreme(reductions.min, np.inf, a, axis, keepdims, initial, where)


def extreme(reduce: Any, last: float, a: Any, axis: Axis, keepdims: bool, initial: Any, mask: Any) -> Node:
    a = wide_node(a)
    if a.dtype.kind not in "fc":
        return reduce(a, axis, keepdims=keepdims, initial=initial, where=mask)
    extremum = reduce(fill_nan(a, last), axis, keepdims=keepdims, initial=initial, where=mask)
    if initial is not None:
        return extremum
    return where(all_true(isnan(a), axis, keepdims=keepdims), np.asarray(np.nan, a.dtype), extremum)


@of(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Return the index of the largest element, ignoring NaN; 0 if all are NaN, which NumPy refuses."""
    return reductions.argmax(fill_nan(a, -np.inf), axis, keepdims=keepdims)


@of(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Return the index of the smallest element, ignoring NaN; 0 if all are NaN, which NumPy refuses."""
    return reductions.argmin(fill_nan(a, np.inf), axis, keepdims=keepdims)


@of(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """Return running sums of the elements that are not NaN."""
    return reductions.cumsum(fill_nan(a, 0), axis, dtype)


@of(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """Return running products of the elements that are not NaN."""
    return reductions.cumprod(fill_nan(a, 1), axis, dtype)
