"""Reductions with all of NumPy's keywords: initial value, mask, dtype."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import reduce as ops
from cgraph.ops.arithmetic import maximum, minimum, true_divide
from cgraph.ops.compare import where as choice
from cgraph.ops.elementary import root_of_squares
from cgraph.ops.family import broadcast, real_dtype
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import Axis, argmax, argmin, keepdims_shape, ptp
from cgraph.ops.scan import cumprod as running_product
from cgraph.ops.scan import cumsum as running_sum
from cgraph.ops.shape import axes_of, axis_of, broadcast_to, reshape

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

argmax, argmin, ptp = of(np.argmax)(argmax), of(np.argmin)(argmin), of(np.ptp)(ptp)
count_nonzero = of(np.count_nonzero)(ops.count_nonzero)


def mask_out(a: Any, where: Any, neutral: Any) -> Node:
    """Replace the elements that a mask leaves out by the neutral element."""
    a = as_node(a)
    if where is True or where is None:
        return a
    a, counts = broadcast(a, mask_of(where))
    return choice(counts, a, convert(neutral, a.dtype))


def mask_of(where: Any) -> Node:
    """Return a mask as a node. DTypeError unless it is of bool."""
    mask = as_node(where)
    if mask.dtype != bool:
        raise DTypeError(f"where= is {mask.spec}, not bool; use x != 0")
    return mask


def convert(number: Any, dtype: np.dtype) -> Any:
    """Return a number in the dtype of a reduction, as NumPy converts an initial value before it is combined."""
    return number.astype(dtype) if isinstance(number, Node) else np.asarray(number, dtype)


def element_count(a: Node, axis: Axis, where: Any) -> Any:
    """Return the number of elements reduced to one: an integer, or a node ``[..., 1 ...]`` where a mask decides."""
    if where is True or where is None:
        return ops.count(a, axis)
    return ops.sum(broadcast_to(mask_of(where), a.shape), axis, keepdims=True)


@of(np.sum)
def sum(
    a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Node:
    """Return the sum along axes, all by default; integers are summed in 64 bits unless `dtype` is passed."""
    total = ops.sum(mask_out(a, where, 0), axis, dtype, keepdims=keepdims)
    return total if initial is None else total + convert(initial, total.dtype)


@of(np.prod)
def prod(
    a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Node:
    """Return the product along axes, all by default; integers are multiplied in 64 bits unless `dtype` is passed."""
    product = ops.prod(mask_out(a, where, 1), axis, dtype, keepdims=keepdims)
    return product if initial is None else product * convert(initial, product.dtype)


@of(np.max, np.amax)
def max(a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Node:
    """Return the largest element along axes, all by default, and at least `initial`; NaN if one is NaN."""
    return extreme(ops.max, maximum, a, axis, keepdims, initial, where)


@of(np.min, np.amin)
def min(a: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True) -> Node:
    """Return the smallest along axes, all by default, and at most `initial`; NaN when one is."""
    return extreme(ops.min, minimum, a, axis, keepdims, initial, where)


amax, amin = max, min


def extreme(reduce: Any, of_two: Any, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Node:
    if initial is None:
        if where is not True and where is not None:
            raise ShapeError(f"{reduce.__name__} with where= needs its value where no element counts; use initial=")
        return reduce(a, axis, keepdims=keepdims)
    a = mask_out(a, where, initial)
    axes = axes_of(axis, a.ndim)
    if 0 not in [a.shape[i] for i in axes]:
        return of_two(reduce(a, axis, keepdims=keepdims), convert(initial, a.dtype))
    shape = keepdims_shape(a.shape, axes) if keepdims else tuple(n for i, n in enumerate(a.shape) if i not in axes)
    return broadcast_to(as_node(convert(initial, a.dtype)), shape)


@of(np.any)
def any(a: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Node:
    """Return True if any element along the axes is not 0."""
    return ops.any(mask_out(a, where, 0), axis, keepdims=keepdims)


@of(np.all)
def all(a: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Node:
    """Return True if all elements along the axes are not 0."""
    return ops.all(mask_out(a, where, 1), axis, keepdims=keepdims)


@of(np.mean)
def mean(a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True) -> Node:
    """Return the mean along axes, all by default; float64 for integers, NaN for no elements."""
    a = as_node(a)
    if (where is True or where is None) and (dtype is None or np.dtype(dtype).kind in "fc"):
        return ops.mean(a, axis, dtype, keepdims=keepdims)
    kind = np.dtype(dtype or (a.dtype if a.dtype.kind in "fc" else "float64"))
    total = sum(a, axis, kind, keepdims=True, where=where)
    means = true_divide(total, element_count(a, axis, where)).astype(kind)
    return means if keepdims else means.squeeze(axes_of(axis, a.ndim))


def freedom(ddof: float, correction: float | None) -> float:
    """Return the number by which a variance lowers the count of elements. ShapeError if both names have one."""
    if correction is not None and ddof:
        raise ShapeError(f"got ddof {ddof} and correction {correction}, two names of one number. Pass one of them")
    return ddof if correction is None else correction


@of(np.var)
def var(
    a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False, where: Any = True,
    mean: Any = None, correction: float | None = None,
) -> Node:  # fmt: skip
    """Return the mean squared distance from the mean along axes; divided by the count less `ddof`, or `correction`.

    `mean` is the mean with ``keepdims=True``, where it is known already.
    """
    ddof = freedom(ddof, correction)
    a = as_node(a)
    a = a.astype(dtype or (a.dtype if a.dtype.kind in "fc" else "float64"))
    if a.dtype.kind not in "fc":
        raise DTypeError(f"a variance is computed in floats, not in {a.dtype}; use np.var(x).astype(dtype)")
    centre = middle(a, axis, keepdims=True, where=where) if mean is None else mean
    kind = None if dtype is None else real_dtype(a.dtype)  # a mean of another dtype decides only without `dtype`
    total = sum(ops.squared_size(a - centre), axis, kind, keepdims=True, where=where)
    left = maximum(element_count(a, axis, where) - ddof, 0)
    variance = total / as_node(left).astype(total.dtype)
    return variance if keepdims else variance.squeeze(axes_of(axis, a.ndim))


middle = mean


@of(np.std)
def std(
    a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False, where: Any = True,
    mean: Any = None, correction: float | None = None,
) -> Node:  # fmt: skip
    """Return the square root of the variance."""
    return root_of_squares(var(a, axis, dtype, ddof, keepdims=keepdims, where=where, mean=mean, correction=correction))


@of(np.average)
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Return the weighted mean along axes; with `returned` also the sum of the weights, of the mean's shape."""
    a = as_node(a)
    if weights is None:
        means = mean(a, axis, keepdims=keepdims)
        return (
            (means, broadcast_to(as_node(np.asarray(ops.count(a, axis), means.dtype)), means.shape))
            if returned
            else means
        )
    weights = as_node(weights)
    kind = np.result_type(a.dtype, weights.dtype, *(["float64"] if a.dtype.kind in "biu" else []))
    if weights.shape != a.shape:
        weights = along_axes(weights, a, axis)
    a, weights = broadcast(a.astype(kind), weights.astype(kind))
    scale = sum(weights, axis, keepdims=keepdims)
    means = sum(a * weights, axis, keepdims=keepdims) / scale
    return (means, scale) if returned else means


def along_axes(weights: Node, a: Node, axis: Axis) -> Node:
    """Return weights that have only the lengths of the axes, placed along them."""
    if axis is None:
        raise ShapeError(f"weights {weights.spec} have another shape than {a.spec}. Pass axis=, along which they lie")
    axes = [axis_of(i, a.ndim) for i in (axis if isinstance(axis, Sequence) else (axis,))]
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ShapeError(
            f"weights {weights.spec} do not have the lengths of axes {axes} of {a.spec}; choose another axis="
        )
    order = np.argsort(axes).tolist()
    return reshape(weights.transpose(order), tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))


# -- running ----------------------------------------------------------------------------------------------------------


@of(np.cumsum)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """Return running sums along an axis, of all elements by default."""
    return running(running_sum, a, axis, dtype)


@of(np.cumprod)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """Return running products along an axis, of all elements by default."""
    return running(running_product, a, axis, dtype)


def running(scan: Any, a: Any, axis: int | None, dtype: Any) -> Node:
    return scan(a, axis) if dtype is None else scan(as_node(a).astype(dtype), axis).astype(dtype)


@of(np.cumulative_sum)
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """Return running sums along an axis; `include_initial` prepends a 0."""
    return cumulate(running_sum, 0, x, axis, dtype, include_initial)


@of(np.cumulative_prod)
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Node:
    """Return running products along an axis; `include_initial` prepends a 1."""
    return cumulate(running_product, 1, x, axis, dtype, include_initial)


def cumulate(scan: Any, first: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Node:
    x = as_node(x)
    if axis is None and x.ndim != 1:
        raise ShapeError(f"{x.name} {x.spec} has {x.ndim} axes. Pass axis=")
    axis = axis_of(axis or 0, x.ndim)
    values = running(scan, x, axis, dtype)
    if not include_initial:
        return values
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return concat([np.full(shape, first, values.dtype), values], axis)
