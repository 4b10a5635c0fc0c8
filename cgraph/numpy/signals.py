"""Sequences: differences, gradients, integrals, convolution, phases, padding."""

from math import pi
from typing import Any

import numpy as np

from cgraph.errors import ArgumentError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.creation import check_count, linspace
from cgraph.numpy.quantiles import median
from cgraph.numpy.reductions import cumsum, max, mean, min, sum
from cgraph.numpy.table import of
from cgraph.ops.arithmetic import remainder, rint
from cgraph.ops.compare import equal, not_equal, where
from cgraph.ops.complex import conj
from cgraph.ops.conv import conv1d
from cgraph.ops.family import common_dtype, real_dtype, wide_node
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import matmul
from cgraph.ops.pad import pad as pad_evenly
from cgraph.ops.pad import pairs
from cgraph.ops.shape import axes_of, axis_of, broadcast_to, moveaxis, ravel, reshape
from cgraph.ops.slicing import flip
from cgraph.ops.sliding import sliding
from cgraph.ops.take import take

SHORT, PARTS = 256, 8  # triangles of products of `convolve`: rows that are not divided, and the number of their parts

__all__ = ["convolve", "correlate", "diff", "ediff1d", "gradient", "pad", "trapezoid", "unwrap"]


def along(axis: int, part: slice) -> tuple[slice, ...]:
    """Return the index of a part of one axis."""
    return (*[slice(None)] * axis, part)


@of(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Node:
    """Return the differences of neighbouring elements along an axis, applied n times."""
    a = as_node(a)
    axis = axis_of(axis, a.ndim)
    ends = [v if v is None else beside(as_node(v), a, axis) for v in (prepend, append)]
    parts = [v for v in (ends[0], a, ends[1]) if v is not None]
    a = concat(parts, axis) if len(parts) > 1 else a
    for _ in range(check_count(n, "n")):
        late, early = a[along(axis, slice(1, None))], a[along(axis, slice(None, -1))]
        a = not_equal(late, early) if a.dtype.kind == "b" else late - early
    return a


def beside(v: Node, a: Node, axis: int) -> Node:
    """Return a number as one more element along an axis; other values unchanged."""
    return v if v.ndim else broadcast_to(v, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


@of(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Node:
    """Return the differences of neighbours among all elements, with others before and after."""
    differences = diff(ravel(ary))
    ends = [None if v is None else ravel(as_node(v).astype(differences.dtype)) for v in (to_begin, to_end)]
    return concat([v for v in (ends[0], differences, ends[1]) if v is not None])


@of(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return slopes along axes by central differences, to one side at the ends; a tuple for several axes.

    Parameters
        varargs: the distance of neighbours, or their places, for all axes or for each
        edge_order: 1 or 2, of the differences at the ends
    """
    f = as_node(f)
    f = f if f.dtype.kind in "fc" else f.astype("float64")
    axes = list(axes_of(None, f.ndim)) if axis is None else [axis_of(a, f.ndim) for a in np.atleast_1d(axis).tolist()]
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes) or edge_order not in (1, 2):
        raise ShapeError(
            f"got {len(varargs)} distances for {len(axes)} axes and edge_order {edge_order}. Pass one distance for all "
            "axes or one for each, and edge_order=1 or 2"
        )
    slopes = tuple(slope(f, a, h, edge_order) for a, h in zip(axes, spacings))
    return slopes[0] if len(slopes) == 1 else slopes


def slope(f: Node, axis: int, spacing: Any, edge_order: int) -> Node:
    """Return slopes along one axis."""
    y = moveaxis(f, axis, 0)
    n, h = y.shape[0], as_node(spacing, real_dtype(f.dtype))
    if n < edge_order + 1:
        raise ShapeError(
            f"axis {axis} of {f.spec} has fewer than the {edge_order + 1} elements that edge_order {edge_order} needs. "
            "Lower edge_order= or omit the axis"
        )
    if h.ndim == 0:
        steps = broadcast_to(h, (n - 1,))
    elif h.shape == (n,):
        steps = diff(h if h.dtype.kind == "f" else h.astype("float64"))
    else:
        raise ShapeError(f"positions {h.spec} along an axis of {n}; give one for each element")
    steps = reshape(steps, (n - 1, *[1] * (y.ndim - 1)))
    left, right = steps[:-1], steps[1:]
    rise = (y[1:] - y[:-1]) / steps
    inner = (rise[:-1] * right + rise[1:] * left) / (left + right)
    if h.ndim == 0:
        inner = (y[2:] - y[:-2]) / (2.0 * h)
    first, last = rise[:1], rise[-1:]
    if edge_order == 2:
        first = quadratic(y[:3], steps[:2])
        last = -quadratic(flip(y[-3:], 0), flip(steps[-2:], 0))
    return moveaxis(concat([first, inner, last], 0).astype(f.dtype), 0, axis)


def quadratic(y: Node, steps: Node) -> Node:
    """Return the slope at the first of three points, of the parabola through them."""
    a, b = steps[:1], steps[1:]
    return -(2.0 * a + b) / (a * (a + b)) * y[:1] + (a + b) / (a * b) * y[1:2] - a / (b * (a + b)) * y[2:]


@of(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Node:
    """Return the area below straight lines between points, `dx` apart or at places `x`.

    Sums of two neighbouring integers wrap around, as in NumPy.
    """
    y = as_node(y)
    axis = axis_of(axis, y.ndim)
    if x is not None:
        x = as_node(x)
        step = diff(x, axis=axis if x.ndim > 1 else 0)
        dx = reshape(step, [-1 if i == axis else 1 for i in range(y.ndim)]) if x.ndim == 1 else step
    return sum(dx * (y[along(axis, slice(1, None))] + y[along(axis, slice(None, -1))]) / 2.0, axis)


@of(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Node:
    """Return sums of products of one row with the other one reversed, at every shift: all, the middle, or whole
    overlaps."""
    a, v = as_node(a), as_node(v)
    return sliding_products(v, a, mode) if v.size > a.size else sliding_products(a, v, mode)


@of(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Node:
    """Return sums of products of one row with the other one, conjugate, at every shift: all, the middle, or whole
    overlaps."""
    a, v = as_node(a), conj(v)
    if not (a.ndim and v.ndim):
        raise ShapeError(f"two rows are correlated, not {a.spec} and {v.spec}. Use a * np.conj(v)")
    sums = sliding_products(v, flip(a), mode) if v.size > a.size else sliding_products(a, flip(v), mode)
    return flip(sums) if v.size > a.size else sums


def sliding_products(a: Node, v: Node, mode: str) -> Node:
    """Return products of the longer row `a` with the shorter one reversed, at every shift."""
    if a.ndim > 1 or v.ndim > 1 or not v.size:
        raise ShapeError(f"two rows with elements are convolved, not {a.spec} and {v.spec}")
    n = v.size
    around = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}
    if mode not in around:
        raise ShapeError(f"mode is {mode!r}. Use 'full', 'same' or 'valid'")
    before, behind = around[mode]
    dtype = common_dtype(a, v)
    a, v = ravel(a.astype(dtype)), ravel(v.astype(dtype))
    if dtype.kind not in "fc":
        return matmul(sliding(pad_evenly(a, (before, behind)), n), flip(v))
    whole = whole_overlaps(a, v)
    if mode == "valid" or n == 1:
        return whole
    first = first_overlaps(a[: n - 1], v[: n - 1], n // PARTS)
    last = flip(first_overlaps(flip(a)[: n - 1], flip(v)[: n - 1], n // PARTS))
    return concat([first[n - 1 - before :], whole, last[:behind]])


def whole_overlaps(a: Node, v: Node) -> Node:
    """Return products of the longer row `a` with the shorter one reversed, where all of it overlaps."""
    if a.dtype.kind == "f":
        return ravel(conv1d(a[None, None], flip(v)[None, None]))
    return matmul(sliding(a, v.size), flip(v))


def first_overlaps(a: Node, v: Node, least: int) -> Node:
    """Return sum k of ``a[j] * v[k - j]`` over j from 0 to k, for two rows of one length.

    No element is multiplied with padding, since infinity times 0 is not a number. Rows of more than `least` elements
    are halved: the triangle of products is two smaller ones and a square.
    """
    n = v.size
    if n > least and n > SHORT:
        half = n // 2
        early, late = first_overlaps(a[:half], v[:half], least), first_overlaps(a[half:], v[: n - half], least)
        return concat([early, late + whole_overlaps(v[1:], a[:half])])
    is_inside = np.arange(2 * n - 1) >= n - 1
    factors = where(sliding(is_inside, n), flip(v), np.zeros((), v.dtype))
    return sum(sliding(pad_evenly(a, (n - 1, 0)), n) * factors, 1)


@of(np.unwrap)
def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * pi) -> Node:
    """Add multiples of the period so that neighbours differ by at most half of it."""
    p = wide_node(p)
    axis = axis_of(axis, p.ndim)
    kind = np.result_type(p.dtype, period)
    step = diff(p, axis=axis)
    whole = kind.kind in "iu"
    high, odd = (period // 2, period % 2) if whole else (period / 2, False)
    low = -high
    near = remainder(step - low, period) + low
    if not odd:
        near = where(equal(near, low) & (step > 0), high, near)
    added = where(abs(step) < (high if discont is None else max_of(discont, high)), 0, near - step).astype(kind)
    first = p[along(axis, slice(None, 1))].astype(kind)
    return concat([first, p[along(axis, slice(1, None))] + cumsum(added, axis)], axis).astype(kind)


def max_of(x: float, y: float) -> float:
    return x if x > y else y


# -- padding ----------------------------------------------------------------------------------------------------------

STATISTICS = {"maximum": max, "minimum": min, "mean": mean, "median": median}
OF_POSITIONS = ("edge", "reflect", "symmetric", "wrap")
MODES: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "empty": (),
    **dict.fromkeys(OF_POSITIONS, ()),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "linear_ramp": ("end_values",),
    **dict.fromkeys(STATISTICS, ("stat_length",)),
}
"""The modes of `pad`, and the options that each one has."""


@of(np.pad)
def pad(
    array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = None, end_values: Any = None,
    stat_length: Any = None, reflect_type: str | None = None,
) -> Node:  # fmt: skip
    """Pad the operand.

    Parameters
        pad_width: elements before and after: one number, a pair, or a pair for each axis
        mode: constant, empty (zeros), edge, reflect, symmetric, wrap, linear_ramp, maximum, minimum, mean, median
        constant_values, end_values: the constant, and the ends of ramps; in the form of `pad_width`; 0 by default
        stat_length: number of elements from the edge that a statistic uses, in the form of `pad_width`; all by default
    """
    x = as_node(array)
    options = {"constant_values": constant_values, "end_values": end_values, "stat_length": stat_length}
    check_mode(mode, options | {"reflect_type": reflect_type})
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - x.ndim, (0, 0))) for i in range(x.ndim)]
        pad_width = [w if np.ndim(w) else (w, w) for w in pad_width]
    widths = pairs(pad_width, x)
    if reflect_type == "odd":
        raise NoMeaningError(
            f"there is no reflect_type {reflect_type!r} for nodes; use 2 * edge - np.pad(x, n, mode='reflect')"
        )
    if mode in OF_POSITIONS:
        for axis, (before, behind) in enumerate(widths):
            if before or behind:
                x = take(x, np.pad(np.arange(x.shape[axis]), (before, behind), mode=mode), axis)  # type: ignore[call-overload]
        return x
    for axis, (before, behind) in enumerate(widths):
        x = concat(
            [
                v
                for v in sides(x, axis, before, behind, mode, constant_values, end_values, stat_length)
                if v is not None
            ],
            axis,
        )
    return x


def check_mode(mode: str, options: dict[str, Any]) -> None:
    """Raise NoMeaningError for an unknown mode, and ArgumentError for an option that a mode does not have."""
    if mode not in MODES:
        raise NoMeaningError(f"there is no mode {mode!r} for nodes; use np.pad(x, n, mode=...) of {', '.join(MODES)}")
    idle = [name for name, value in options.items() if value is not None and name not in MODES[mode]]
    if idle:
        raise ArgumentError(f"{idle[0]}= changes nothing in mode {mode!r}. Leave it out")


def sides(x: Node, axis: int, before: int, behind: int, mode: str, constant: Any, ends: Any, length: Any) -> list[Any]:
    """Return the padding before the operand along an axis, the operand, and the padding after it; None for none."""

    def side(n: int, which: int) -> Node | None:
        if not n:
            return None
        if mode in ("constant", "empty"):
            value: Any = np.asarray(pair_of(constant, axis, which, x) if mode == "constant" else 0).astype(x.dtype)
        elif mode == "linear_ramp":
            return ramp(x, axis, n, pair_of(ends, axis, which, x), which)
        else:
            value = statistic(x, axis, mode, length, which)
        return broadcast_to(as_node(value), (*x.shape[:axis], n, *x.shape[axis + 1 :]))

    return [side(before, 0), x, side(behind, 1)]


def pair_of(values: Any, axis: int, which: int, x: Node) -> Any:
    """Return the number for one side of an axis; 0 if there are none."""
    return np.broadcast_to(np.asarray(0 if values is None else values), (x.ndim, 2))[axis, which].item()


def ramp(x: Node, axis: int, n: int, end: Any, which: int) -> Node:
    """Return n elements on a straight line from the end value to the edge, which is not among them."""
    edge = moveaxis(x, axis, 0)[0 if which == 0 else -1]
    values = linspace(end, edge, n, endpoint=False, dtype=x.dtype, axis=axis)
    return values if which == 0 else flip(values, axis)


def statistic(x: Node, axis: int, mode: str, length: Any, which: int) -> Node:
    """Return a statistic of the elements nearest to an edge. ShapeError if there are none."""
    if not x.shape[axis]:
        raise ShapeError(f"axis {axis} of {x.spec} has no elements whose {mode} could be taken. Use mode='constant'")
    if length is not None:
        pair = np.broadcast_to(np.asarray(length), (x.ndim, 2))[axis]
        check_count(pair[which], "stat_length", 1)
        n = x.shape[axis]
        k = int(pair[which]) if pair[which] < n else n
        x = x[along(axis, slice(0, k) if which == 0 else slice(n - k, n))]
    value = STATISTICS[mode](x, axis, keepdims=True)
    return (rint(value) if x.dtype.kind in "iu" and value.dtype.kind == "f" else value).astype(x.dtype)
