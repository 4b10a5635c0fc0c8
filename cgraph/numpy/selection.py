"""Selection of elements: by index, by condition, by sorted order."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import ArgumentError, DTypeError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.creation import stacked
from cgraph.numpy.table import of
from cgraph.ops import compare
from cgraph.ops import sort as sorting
from cgraph.ops import take as takes
from cgraph.ops.arithmetic import between, maximum, minimum, remainder
from cgraph.ops.compare import equal, invert, isnan, logical_not
from cgraph.ops.family import broadcast, common_dtype
from cgraph.ops.index import flat_position
from cgraph.ops.join import concat
from cgraph.ops.leaf import ConstOp, as_node
from cgraph.ops.reduce import any as any_true
from cgraph.ops.shape import axis_of, broadcast_to, expand_dims, ravel, reshape
from cgraph.ops.take import positions, take_along_axis

__all__ = [
    "argpartition", "argsort", "choose", "clip", "compress", "digitize", "extract", "interp", "isin", "lexsort",
    "partition", "piecewise", "ravel_multi_index", "searchsorted", "select", "sort", "sort_complex", "take",
    "take_along_axis",
    "unravel_index", "where",
]  # fmt: skip

take_along_axis = of(np.take_along_axis)(take_along_axis)
MOST_COMPARED = 64  # members of a set, beyond which it is sorted and searched
UNKNOWN_SHAPE = "the shape of the result depends on values: use "


@of(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Node:
    """Return x where the condition holds, otherwise y."""
    if x is None or y is None:
        raise NoMeaningError(UNKNOWN_SHAPE + "cg.nonzero(x, size=...), or np.where(condition, x, y)")
    return compare.where(condition, x, y)


@of(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Node:
    """Limit elements to two bounds, either of which may be None."""
    if not (a_min is None and a_max is None) and not (min is None and max is None):
        raise ArgumentError("a_min and a_max are other names of min and max. Pass one pair of them")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return between(a, low, high, 1.0)


@of(np.take)
def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Node:
    """Return elements at positions along an axis, or of all elements; `mode` raises, wraps or clips other positions."""
    a = as_node(a)
    n = a.size if axis is None else a.shape[axis_of(axis, a.ndim)]
    return takes.take(a, inside(indices, n, mode), axis)


def inside(indices: Any, n: int, mode: str) -> Any:
    """Return indices mapped into an axis of n elements, by the mode."""
    if mode == "raise":
        return indices
    if mode not in ("wrap", "clip"):
        raise ShapeError(f"mode is {mode!r}. Use 'raise', 'wrap' or 'clip'")
    indices = positions(indices)
    return remainder(indices, n) if mode == "wrap" else minimum(maximum(indices, 0), n - 1)


def constant_condition(condition: Any, use: str) -> np.ndarray:
    """Return a condition as an array. NoMeaningError for a node that is not constant: the result's shape depends on
    it."""
    if isinstance(condition, Node) and isinstance(condition.op, ConstOp):
        return condition.op.array
    if isinstance(condition, Node):
        raise NoMeaningError(UNKNOWN_SHAPE + use)
    return np.asarray(condition)


@of(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None) -> Node:
    """Return the elements along an axis for which a constant condition holds."""
    use = "np.where(condition, x, 0), or cg.take(x, cg.nonzero(condition, size=...)[0][0])"
    return takes.take(a, np.flatnonzero(constant_condition(condition, use)), axis)


@of(np.extract)
def extract(condition: Any, arr: Any) -> Node:
    """Return the elements for which a constant condition holds, along one axis."""
    use = "np.where(condition, x, 0), or cg.take(x, cg.nonzero(condition, size=...)[0][0])"
    return takes.take(ravel(arr), np.flatnonzero(constant_condition(condition, use)), 0)


@of(np.choose)
def choose(a: Any, choices: Any, *, mode: str = "raise") -> Node:
    """Return, at each index, the element of the operand that `a` selects."""
    options = list(choices)
    dtype = common_dtype(*options)
    which, *nodes = broadcast(positions(a), *(as_node(x, dtype).astype(dtype) for x in options))
    which = as_node(inside(which, len(nodes), mode))
    together = concat([expand_dims(x, 0) for x in nodes], 0)
    if mode == "raise":  # NumPy counts no position from the end here
        which = compare.where(which < 0, len(nodes), which)
    return reshape(take_along_axis(together, expand_dims(which, 0), 0), which.shape)


@of(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Node:
    """Return the choice of the first condition that holds, else the default."""
    if len(condlist) != len(choicelist):
        raise ShapeError(
            f"{len(condlist)} conditions for {len(choicelist)} choices; give one choice for each condition"
        )
    dtype = common_dtype(*choicelist, default)
    conditions = broadcast(*map(as_node, condlist))
    if not_bool := [c for c in conditions if c.dtype != bool]:
        raise DTypeError(f"a condition is {not_bool[0].spec}, not bool; use x != 0")
    values, *_ = broadcast(as_node(default, dtype).astype(dtype), *conditions)
    for condition, choice in reversed(list(zip(conditions, choicelist))):
        values = compare.where(condition, as_node(choice, dtype).astype(dtype), values)
    return values


@of(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Node:
    """Return the value of the last condition that holds: a number, or a function, called with the whole node."""
    x = as_node(x)
    conditions = [as_node(c).astype(bool) for c in conditions_of(condlist, x.ndim)]
    if len(funclist) == len(conditions) + 1:
        others = conditions[0]
        for c in conditions[1:]:
            others = others | c
        conditions.append(invert(others))
    if len(funclist) != len(conditions):
        raise ShapeError(
            f"{len(funclist)} functions for {len(conditions)} conditions; give as many, or one more as the default"
        )
    values = broadcast_to(as_node(np.zeros((), x.dtype)), x.shape)
    for condition, f in zip(conditions, funclist):
        value = f(x, *args, **kw) if isinstance(f, Callable) else f  # type: ignore[arg-type]
        values = compare.where(condition, as_node(value, x.dtype).astype(x.dtype), values)
    return values


def conditions_of(condlist: Any, ndim: int) -> Sequence[Any]:
    """Return the conditions on an operand of `ndim` axes: one may stand alone, or as a list of its elements."""
    if isinstance(condlist, list | tuple):
        return [stacked(condlist)] if ndim and condlist and not any(map(np.ndim, condlist)) else condlist
    return [condlist] if np.ndim(condlist) in (0, ndim) else condlist


# -- sorted order -----------------------------------------------------------------------------------------------------


def check_kind(kind: Any, stable: bool | None) -> None:
    """Raise ArgumentError if an order has both of the options that name its kind."""
    if kind is not None and stable is not None:
        raise ArgumentError("kind= and stable= both name the kind of an order. Pass one of them")


@of(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None) -> Node:
    """Return elements in sorted order along an axis; always stable, NaN last."""
    check_kind(kind, stable)
    return sorting.sort(a, axis)


@of(np.sort_complex)
def sort_complex(a: Any) -> Node:
    """Return elements in sorted order along the last axis, as complex numbers."""
    a = as_node(a)
    small = a.dtype in map(np.dtype, ("int8", "int16", "uint8", "uint16"))
    whole = a if a.dtype.kind == "c" else a.astype("complex64" if small else "complex128")
    return sorting.sort(whole)


@of(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None) -> Node:
    """Return the indices that sort an axis; always stable, NaN last."""
    check_kind(kind, stable)
    return sorting.argsort(a, axis)


@of(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect") -> Node:
    """Sort along an axis, which is more than NumPy promises."""
    return sorting.sort(check_kth(a, kth, axis), axis)


@of(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect") -> Node:
    """Return the indices that sort an axis, which is more than NumPy promises."""
    return sorting.argsort(check_kth(a, kth, axis), axis)


def check_kth(a: Any, kth: Any, axis: int | None) -> Node:
    """Return the operand. ShapeError if it has no element at a place of the sorted order that `kth` names."""
    a = as_node(a)
    n = a.size if axis is None else a.shape[axis_of(axis, a.ndim)]
    places = [] if isinstance(kth, Node) else np.ravel(kth).tolist()
    if n and (outside := [k for k in places if not -n <= k < n]):
        raise ShapeError(f"kth is {outside[0]}, but {a.spec} has {n} elements to sort. Pass a number below {n}")
    return a


@of(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Node:
    """Return the indices that sort by several keys, the last key first: stable sorts, one after another."""
    rows = [as_node(k) for k in keys]
    order = sorting.argsort(rows[0], axis)
    for key in rows[1:]:
        order = take_along_axis(order, sorting.argsort(take_along_axis(key, order, axis), axis), axis)
    return order


@of(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Node:
    """Return the indices at which values would be inserted into a row that is ascending, or sorted by `sorter`."""
    return sorting.searchsorted(a if sorter is None else takes.take(a, sorter, 0), v, side)


@of(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Node:
    """Return the interval of each element between constant bins, ascending or descending, or an ascending node of
    bins.
    """
    if isinstance(bins, Node):
        return sorting.digitize(x, bins, right)
    bins = np.asarray(bins)
    if np.all(np.diff(bins) >= 0):
        return sorting.digitize(x, bins, right)
    if np.any(np.diff(bins) > 0):
        raise ShapeError(f"the bins {bins[:4]!s:.60}… neither rise nor fall. Pass np.sort(bins)")
    return len(bins) - sorting.searchsorted(bins[::-1], x, "left" if right else "right")


@of(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Node:
    """Return True for members of a set. Small constant sets are compared one by one, others are sorted and searched."""
    dtype = common_dtype(element, test_elements)
    x, members = as_node(element, dtype).astype(dtype), ravel(as_node(test_elements, dtype).astype(dtype))
    if members.size <= MOST_COMPARED:
        is_member = any_true(equal(expand_dims(x, -1), members), -1)
    else:
        row = sorting.sort(members)
        at = minimum(sorting.searchsorted(row, x), members.size - 1)
        is_member = equal(takes.take(row, at, 0), x)
    return logical_not(is_member) if invert else is_member


@of(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Node:
    """Return linear interpolations between the points (xp, fp), xp ascending; outside them the first and last value by
    default.

    With a period, all x are mapped into one period, and the interpolation is periodic.
    """
    x, xp, fp = (as_node(v).astype("float64") for v in (x, xp, fp))
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(f"xp and fp are {xp.spec} and {fp.spec}. Pass two rows of one length")
    if period is not None:
        if not period:
            raise ShapeError(f"period is {period}. Pass another number, or None for values that do not repeat")
        period = abs(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = sorting.argsort(xp)
        xp, fp = (takes.take(v, order, 0) for v in (xp, fp))
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
    last = xp.size - 1
    at = minimum(maximum(sorting.searchsorted(xp, x, "right") - 1, 0), max(last - 1, 0))
    x0, y0 = takes.take(xp, at, 0), takes.take(fp, at, 0)
    x1, y1 = (takes.take(v, minimum(at + 1, last), 0) for v in (xp, fp))
    width = x1 - x0
    flat = equal(width, 0)
    slope = (y1 - y0) / compare.where(flat, 1.0, width)
    y = y0 + slope * (x - x0)
    y = compare.where(isnan(y), y1 + slope * (x - x1), y)  # from the other point, where one is infinite
    y = compare.where(isnan(y) & equal(y0, y1), y0, y)
    y = compare.where(flat | equal(x, x0), y0, y)
    y = compare.where(equal(x, x1), y1, y)
    y = compare.where(x < xp[0], fp[0] if left is None or period else left, y)
    y = compare.where(x > xp[-1], fp[-1] if right is None or period else right, y)
    return compare.where(isnan(x), x, y) if last else y  # NumPy returns a single point's value for NaN, too


# -- one position for several -----------------------------------------------------------------------------------------


def lengths_of(shape: Any) -> tuple[int, ...]:
    """Return the lengths of axes. ShapeError if one is negative."""
    lengths = tuple(np.atleast_1d(shape).tolist())
    if min(lengths, default=0) < 0:
        raise ShapeError(f"a shape has no negative lengths, not {lengths}. Pass at least 0 for each axis")
    return lengths


def check_order(order: str) -> None:
    """Raise ArgumentError unless the last axis counts fastest, or the first."""
    if order not in ("C", "F"):
        raise ArgumentError(f"order is {order!r}. Use 'C' or 'F'")


@of(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Node, ...]:
    """Return one position along each axis, from positions among all elements."""
    lengths = lengths_of(shape)
    check_order(order)
    left, parts = positions(indices).astype("int64"), []
    for n in lengths[::-1] if order == "C" else lengths:
        parts.append(left % n)
        left = left // n
    return tuple(parts[::-1] if order == "C" else parts)


@of(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Node:
    """Return indices among all elements, from one along each axis; indices outside an axis are errors when they are
    used.
    """
    lengths = lengths_of(dims)
    check_order(order)
    modes = (mode,) * len(lengths) if isinstance(mode, str) else tuple(mode)
    if not len(multi_index) == len(lengths) == len(modes):
        raise ShapeError(
            f"{len(multi_index)} positions and {len(modes)} modes for {len(lengths)} axes. Pass one for each axis"
        )
    parts = [positions(inside(i, n, m)).astype("int64") for i, n, m in zip(multi_index, lengths, modes)]
    if order == "F":
        parts, lengths = parts[::-1], lengths[::-1]
    parts = broadcast(*parts)
    return flat_position(list(parts), lengths, parts[0].shape)
