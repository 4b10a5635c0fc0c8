"""Covariances, correlations and histograms."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.creation import check_count, linspace, zeros
from cgraph.numpy.reductions import average, sum
from cgraph.numpy.table import of
from cgraph.ops.compare import equal, where
from cgraph.ops.complex import complex, conj, imag, real
from cgraph.ops.diagonal import diagonal
from cgraph.ops.elementary import sqrt
from cgraph.ops.family import common_dtype, wide_node
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import matmul
from cgraph.ops.reduce import max, min
from cgraph.ops.shape import expand_dims, ravel, reshape
from cgraph.ops.sort import searchsorted, sort
from cgraph.ops.take import scatter_add

__all__ = ["corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges"]


@of(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Node:  # fmt: skip
    """Return the covariances of variables, which are rows, or columns if `rowvar` is False.

    `fweights` are integer counts of observations, `aweights` their weights.
    """
    x = wide_node(m)
    kind = np.dtype(dtype or np.result_type(x.dtype, *([] if y is None else [wide_node(y).dtype]), "float64"))
    x = variables(x, rowvar, kind)
    if y is not None:
        y = as_node(y)
        x = concat([x, variables(y, rowvar or (y.ndim == 2 and y.shape[0] == 1), kind)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    factors = [weights_of(w, x) for w in (fweights, aweights) if w is not None]
    weights = factors[0] if len(factors) == 1 else factors[0] * factors[1] if factors else None
    mean, total = average(x, axis=1, weights=weights, returned=True)
    total = total[0]
    if weights is None:
        left = total - ddof
    elif ddof == 0:
        left = total
    elif aweights is None:
        left = total - ddof
    else:
        left = total - ddof * sum(weights * as_node(aweights)) / total
    x = x - expand_dims(mean, 1)
    turned = (x if weights is None else x * weights.astype(kind)).T
    covariances = matmul(x, conj(turned)) / where(left > 0, left, 0.0).astype(kind)
    return covariances.squeeze()


def weights_of(weights: Any, x: Node) -> Node:
    """Return the weights of observations in float64. ShapeError unless there is one for each; constant ones may not be
    negative."""
    node = as_node(weights).astype("float64")
    if node.shape != x.shape[1:]:
        raise ShapeError(f"weights {node.spec} are not one for each of {x.shape[1]} observations. Pass as many")
    if not isinstance(weights, Node) and (np.asarray(weights) < 0).any():
        raise ShapeError(f"weights {weights!r:.60} are negative. Pass numbers of at least 0")
    return node


def variables(x: Node, rowvar: bool, kind: np.dtype) -> Node:
    """Return observations as ``[variables, observations]``."""
    if x.ndim > 2:
        raise ShapeError(f"{x.name} {x.spec} has {x.ndim} axes. Pass at most two: variables and observations")
    x = x.astype(kind)
    return expand_dims(x, 0) if x.ndim == 1 else x if rowvar else x.T


@of(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Node:
    """Return the correlations of variables, within [-1, 1]."""
    correlations = cov(x, y, rowvar, dtype=dtype)
    if correlations.ndim == 0:
        return correlations / correlations
    spread = sqrt(real(diagonal(correlations)))
    correlations = correlations / expand_dims(spread, 1) / expand_dims(spread, 0)
    if correlations.dtype.kind == "c":
        return complex(real(correlations).clip(-1, 1), imag(correlations).clip(-1, 1))
    return correlations.clip(-1, 1)


# -- histograms -------------------------------------------------------------------------------------------------------


@of(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Node:
    """Return the edges of the bins: equal bins between the smallest and the largest element or over a range, or the
    edges passed.
    """
    a = ravel(wide_node(a))
    if isinstance(bins, str):
        raise NoMeaningError(f"how many bins {bins!r} gives depends on values; use a number, as bins=10")
    if np.ndim(bins) > 0:
        if np.ndim(bins) > 1:
            raise ShapeError(f"edges of bins are one rising row, not {as_node(bins).spec}. Use np.ravel(bins)")
        if not isinstance(bins, Node) and (np.diff(bins) < 0).any():
            raise ShapeError(f"edges {bins!r:.60} of bins do not rise. Use np.sort(bins)")
        return as_node(bins)
    check_count(bins, "bins", 1)
    kind = np.result_type(a.dtype, *(range or ()))
    kind = kind if kind.kind == "f" else np.result_type(kind, float)
    if range is not None:
        if not -np.inf < range[0] <= range[1] < np.inf:
            raise ShapeError(f"range is {range}. Pass two finite numbers, the smaller one first")
        low, high = (as_node(float(r)) for r in range)
    elif a.size == 0:
        low, high = as_node(0.0), as_node(1.0)
    else:
        low, high = min(a).astype(kind), max(a).astype(kind)
    same = equal(low, high)
    low, high = where(same, low - 0.5, low), where(same, high + 0.5, high)
    return linspace(low.astype(kind), high.astype(kind), int(bins) + 1, dtype=kind)


@of(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Node, Node]:
    """Return the number of elements in each bin, or the sum of their weights; and the edges of the bins.

    An edge belongs to the bin above it, the last one to the last bin.
    """
    a = ravel(wide_node(a))
    edges = histogram_bin_edges(a, bins, range)
    n = edges.size - 1
    if weights is None:
        row, kind = sort(a), np.result_type(a.dtype, edges.dtype)
        row = row.astype(kind)
        below = concat([searchsorted(row, edges[:-1]), searchsorted(row, edges[-1:], "right")])
        count = below[1:] - below[:-1]
    else:
        weights = ravel(weights)
        count = scatter_add(zeros(n + 1, weights.dtype), bin_of(a, edges), weights)[:n]
    if density:
        return count / (edges[1:] - edges[:-1]).astype("float64") / sum(count), edges
    return count, edges


def bin_of(a: Node, edges: Node) -> Node:
    """Return the bin of each element; for elements outside, the number of bins."""
    n = edges.size - 1
    number = searchsorted(edges, a, "right") - 1
    number = where(equal(a, edges[-1]), n - 1, number)
    return where((a >= edges[0]) & (a <= edges[-1]), number, n).astype("int64")


@of(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Node, Node, Node]:
    """Return the number of points in each cell of a grid, or the sum of their weights; and the edges along both
    axes.
    """
    kind = common_dtype(x, y)
    x, y = as_node(x).astype(kind), as_node(y).astype(kind)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"points are two rows of one length, not {x.spec} and {y.spec}. Use np.ravel of both")
    is_row = isinstance(bins, Sequence) or np.ndim(bins) > 0
    if is_row and len(bins) == 1:
        raise ShapeError(f"bins are {bins!r:.60}. Pass one number, two numbers, or at least two edges")
    both = list(bins) if is_row and len(bins) == 2 else [bins, bins]
    ranges = (None, None) if range is None else range
    xedges, yedges = (grid_edges(v, b, r) for v, b, r in zip((x, y), both, ranges))
    m, n = xedges.size - 1, yedges.size - 1
    cell = bin_of(x, xedges) * (n + 1) + bin_of(y, yedges)
    weights = np.ones(x.shape) if weights is None else as_node(weights).astype("float64")
    count = scatter_add(zeros((m + 1) * (n + 1)), cell, weights)
    counts = reshape(count, (m + 1, n + 1))[:m, :n]
    if density:
        area = expand_dims(xedges[1:] - xedges[:-1], 1) * (yedges[1:] - yedges[:-1])
        counts = counts / area / sum(counts)
    return counts, xedges, yedges


def grid_edges(x: Node, bins: Any, range: Any) -> Node:
    """Return the edges along one axis of a grid: float64 in a range, as NumPy's are."""
    return histogram_bin_edges(x if range is None else x.astype("float64"), bins, range)
