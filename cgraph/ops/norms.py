"""Norms of vectors and matrices."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, public
from cgraph.ops.compare import equal, not_equal, where
from cgraph.ops.elementary import root_of_squares
from cgraph.ops.factors import svdvals
from cgraph.ops.leaf import as_node
from cgraph.ops.power import power
from cgraph.ops.reduce import squared_size
from cgraph.ops.shape import distinct_axes, expand_dims, moveaxis, ones_like


@public
def norm(x: Any, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Node:
    """Return the norm of vectors along an axis, or of matrices over two axes, as ``np.linalg.norm``.

    Parameters
        ord: None for the root of the sum of squares; a number p, inf, -inf or 0 for vectors; "fro", "nuc", 1, -1, 2,
            -2, inf or -inf for matrices
    """
    x = as_node(x)
    x = x if x.dtype.kind in "fc" else x.astype("float64")
    if ord is None and axis is None:
        return root_of_squares(squared_size(x).sum(keepdims=keepdims))
    axis = tuple(range(x.ndim)) if axis is None else axis
    axes = distinct_axes(np.atleast_1d(axis).tolist(), x.ndim)
    if len(axes) not in (1, 2):
        raise ShapeError(f"{len(axes)} axes of {x.name} {x.spec} for a norm of order {ord}; pass one or two axes")
    if ord is None:
        return root_of_squares(squared_size(x).sum(axes, keepdims=keepdims))
    return vector_norm(x, ord, axes, keepdims) if len(axes) == 1 else matrix_norm(x, ord, axes, keepdims)


def vector_norm(x: Node, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Return the norm of order `ord` along one axis."""
    size = abs(x)
    if ord in (inf, -inf):
        return extreme(size, ord)(axes, keepdims=keepdims)
    if ord == 0:
        return not_equal(x, 0).astype(size.dtype).sum(axes, keepdims=keepdims)
    if ord == 1:
        return size.sum(axes, keepdims=keepdims)
    if ord == 2:
        return root_of_squares(squared_size(x).sum(axes, keepdims=keepdims))
    powers = power_of_size(size, ord, 0.0 if ord > 0 else inf)
    return power_of_size(powers.sum(axes, keepdims=keepdims), 1.0 / ord, 0.0 if ord > 0 else inf)


def power_of_size(size: Node, ord: float, at_zero: float) -> Node:
    """Return a power of numbers >= 0 with gradient 0 at 0, where 0 times an infinite gradient would be NaN."""
    zero = equal(size, 0)
    return where(zero, at_zero, power(where(zero, ones_like(size), size), ord))


def extreme(x: Node, ord: Any) -> Callable[..., Node]:
    """Return the `max` method of `x` for a positive order, else `min`."""
    return x.max if ord > 0 else x.min


def matrix_norm(x: Node, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Return the norm of order `ord` over two axes."""
    row, column = axes
    if ord == "fro":
        return norm(x, None, axes, keepdims=keepdims)
    if ord in (1, -1, inf, -inf):
        over, then = (row, column) if ord in (1, -1) else (column, row)
        sums = abs(x).sum(over, keepdims=True)
        value = extreme(sums, ord)(then, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        value = values.sum(-1) if ord == "nuc" else extreme(values, ord)(-1)
        value = expand_dims(value, tuple(sorted(axes)))
    else:
        raise ShapeError(f"matrix norm of order {ord!r} is unknown; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return value if keepdims else value.squeeze(tuple(sorted(axes)))
