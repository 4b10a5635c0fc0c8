"""Medians, quantiles and percentiles, by sorting.

The quantile q of n elements has the position ``n * q + alpha + q * (1 - alpha - beta) - 1`` in sorted order, usually
between two elements (Hyndman and Fan 1996, Sample quantiles in statistical packages); alpha and beta depend on the
method.
"""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops.arithmetic import astype, floor, maximum, minimum, rint
from cgraph.ops.compare import isinf, isnan, logical_not, where
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import Axis, any, keepdims_shape, mean, sum
from cgraph.ops.shape import axes_of, broadcast_to, expand_dims, moveaxis, reshape, transpose
from cgraph.ops.sort import sort
from cgraph.ops.take import take_along_axis

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

BETWEEN = {
    "linear": (1.0, 1.0), "weibull": (0.0, 0.0), "hazen": (0.5, 0.5), "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
AT_AN_ELEMENT = ("lower", "higher", "midpoint", "nearest")


def rows(a: Any, axis: Axis) -> Node:
    """Return the elements along the axes, sorted, as the last axis: ``[..., n]``."""
    a = as_node(a)
    axes = axes_of(axis, a.ndim)
    others = [i for i in range(a.ndim) if i not in axes]
    flat = transpose(a, [*others, *axes])
    return sort(reshape(flat, (*(a.shape[i] for i in others), prod(a.shape[i] for i in axes))))


def numbers(a: Any) -> Node:
    """Return the operand. DTypeError for bool and complex numbers."""
    a = as_node(a)
    if a.dtype.kind in "bc":
        raise DTypeError(f"quantiles are of real numbers, not of {a.dtype}; use astype, or np.abs")
    return a


@of(np.median)
def median(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the middle element in sorted order, or the mean of the two; NaN where one is."""
    a = as_node(a)
    sorted_rows = rows(a, axis)
    n = sorted_rows.shape[-1]
    if n:
        low, high = (sorted_rows[..., i] for i in ((n - 1) // 2, n // 2))
        middle = with_nan(halfway(low, high), sorted_rows)
    else:
        middle = mean(sorted_rows, -1)
    return reshape(middle, keepdims_shape(a.shape, axes_of(axis, a.ndim))) if keepdims else middle


def halfway(low: Node, high: Node) -> Node:
    """Return the mean of two numbers; their sum may be larger than the largest number."""
    kind = low.dtype if low.dtype.kind in "fc" else np.dtype("float64")
    low, high = low.astype(kind), high.astype(kind)
    total = low + high
    middle = where(isinf(total), low * 0.5 + high * 0.5, total * 0.5)
    return where(low == high, low, middle)


def with_nan(values: Node, sorted_rows: Node) -> Node:
    """Return NaN where the last element in sorted order is NaN."""
    if sorted_rows.dtype.kind not in "fc":
        return values
    return where(isnan(sorted_rows[..., -1]), np.asarray(np.nan, values.dtype), values)


@of(np.quantile)
def quantile(
    a: Any, q: Any, axis: Axis = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Node:
    """Return the elements below which a share q of the elements lies; the axes of q come first. NaN if an element is
    NaN.

    Parameters
        q: in [0, 1]; numbers or a node
        method: as in NumPy, except its three methods that only step
    """
    a, q = numbers(a), shares(q, a.dtype)
    sorted_rows = rows(a, axis)
    n = sorted_rows.shape[-1]
    values = interpolated(sorted_rows, position(q, n, method), n, method, kind_of(a.dtype, q, method))
    values = (
        where(any(isnan(sorted_rows), -1), np.asarray(np.nan, values.dtype), values) if a.dtype.kind == "f" else values
    )
    return with_axes(values, q, a, axis) if keepdims else values


@of(np.percentile)
def percentile(
    a: Any, q: Any, axis: Axis = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Node:
    """Return the `quantile` of q / 100."""
    return quantile(a, shares(q, as_node(a).dtype, 100) / 100, axis, overwrite_input, method, keepdims)


@of(np.nanmedian)
def nanmedian(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the median of the elements that are not NaN; NaN where nothing is left."""
    a = as_node(a)
    sorted_rows = rows(a, axis)
    if a.dtype.kind not in "fc" or not sorted_rows.shape[-1]:
        return median(a, axis, keepdims=keepdims)
    count = left(sorted_rows)
    low, high = (at(sorted_rows, maximum(i, 0)) for i in ((count - 1) // 2, count // 2))
    middle = halfway(low, high)
    return reshape(middle, keepdims_shape(a.shape, axes_of(axis, a.ndim))) if keepdims else middle


@of(np.nanquantile)
def nanquantile(
    a: Any, q: Any, axis: Axis = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Node:
    """Return the quantile of the elements that are not NaN; NaN where nothing is left.

    An empty array has one NaN, or no number, for all `q`, as in NumPy.
    """
    a, q = numbers(a), shares(q, as_node(a).dtype)
    if not a.size:
        return mean(a, axis, keepdims=keepdims)
    if a.dtype.kind != "f":
        return quantile(a, q, axis, overwrite_input, method, keepdims)
    sorted_rows = rows(a, axis)
    count = left(sorted_rows)
    each = as_node(q).astype(a.dtype)
    each = reshape(each, (*each.shape, *[1] * count.ndim))
    values = interpolated(
        sorted_rows, position(each, count.astype(a.dtype), method), count, method, kind_of(a.dtype, q, method)
    )
    return with_axes(values, q, a, axis) if keepdims else values


@of(np.nanpercentile)
def nanpercentile(
    a: Any, q: Any, axis: Axis = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Node:
    """Return the `nanquantile` of q / 100."""
    return nanquantile(a, shares(q, as_node(a).dtype, 100) / 100, axis, overwrite_input, method, keepdims)


# -- position of a quantile --------------------------------------------------------------------------------------------


def shares(q: Any, dtype: np.dtype, most: int = 1) -> Any:
    """Return q as an array or the node that it is; a Python number takes the operand's float dtype, as in NumPy.
    ShapeError for constants outside 0 to `most`."""
    if isinstance(q, Node):
        return q
    if not ((np.asarray(q) >= 0) & (np.asarray(q) <= most)).all():
        raise ShapeError(f"q is {q!r:.60}. Pass numbers from 0 to {most}")
    weak = type(q) in (int, float) and dtype.kind == "f"
    return np.asarray(q, dtype if weak else None)


def kind_of(dtype: np.dtype, q: Any, method: str) -> np.dtype:
    """Return the result's dtype: the one that NumPy returns for one element."""
    kind = np.quantile(np.zeros(1, dtype), np.zeros(q.shape, q.dtype), method=method).dtype  # type: ignore[call-overload]
    return np.dtype(kind)


def position(q: Any, n: Any, method: str) -> Any:
    """Return the positions of quantiles among n sorted elements, from 0: numbers for numbers, a node for nodes."""
    if method in AT_AN_ELEMENT:
        return (n - 1) * q
    if method not in BETWEEN:
        methods = ", ".join([*BETWEEN, *AT_AN_ELEMENT])
        raise NoMeaningError(
            f"there is no method {method!r} for nodes; use one of {methods}: method='linear' is the usual"
        )
    alpha, beta = BETWEEN[method]
    return n * q + (alpha + q * (1 - alpha - beta)) - 1


def interpolated(sorted_rows: Node, place: Any, n: Any, method: str, kind: np.dtype) -> Node:
    """Return the elements at fractional positions: ``[*q, ...]``."""
    place = as_node(place)
    place = place if place.dtype.kind == "f" else place.astype("float64")
    if not isinstance(n, Node):
        place = reshape(place, (*place.shape, *[1] * (sorted_rows.ndim - 1)))
    most = maximum(n - 1, 0)
    low = maximum(minimum(floor(place), most), 0)
    high = maximum(minimum(low + 1, most), 0)
    share = minimum(maximum(place - low, 0), 1)
    if method in AT_AN_ELEMENT:
        share = {"lower": low * 0, "higher": (share > 0).astype(share.dtype), "nearest": rint(place) - low}.get(
            method, where((share > 0), 0.5, 0.0).astype(share.dtype)
        )
    below, above = at(sorted_rows, low), at(sorted_rows, high)
    return between(below, above, share, kind)


def between(below: Node, above: Node, share: Node, kind: np.dtype) -> Node:
    """Interpolate between two numbers by a share, starting at the nearer one so that both ends are exact."""
    if kind.kind != "f":
        return where(share > 0.5, above, below).astype(kind)
    below, above, share = below.astype(kind), above.astype(kind), share.astype(kind)
    step = where(below == above, np.zeros((), kind), above - below)
    value = where(share >= 0.5, above - step * (1 - share), below + step * share)
    return where(share <= 0, below, where(share >= 1, above, value))


def at(sorted_rows: Node, place: Any) -> Node:
    """Return elements of each row at positions ``[..., *rows]``, whose last axes are those of the rows."""
    place = astype(place, "int64")
    batch = sorted_rows.shape[:-1]
    leading = place.shape[: place.ndim - len(batch)]
    count = prod(leading)
    places = reshape(broadcast_to(place, (*leading, *batch)), (count, *batch))
    elements = take_along_axis(sorted_rows, moveaxis(places, 0, -1), -1)
    return reshape(moveaxis(elements, -1, 0), (*leading, *batch))


def left(sorted_rows: Node) -> Node:
    """Return the number of elements of each row that are not NaN."""
    return sum(logical_not(isnan(sorted_rows)), -1)


def with_axes(values: Node, q: Any, a: Node, axis: Axis) -> Node:
    """Return values with the reduced axes as axes of one element."""
    axes = axes_of(axis, a.ndim)
    return expand_dims(values, [q.ndim + i for i in axes]) if axes else values
