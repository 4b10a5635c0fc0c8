"""Polynomials by their coefficients, highest power first, as in NumPy's older functions.

The length of a result depends only on lengths: leading zeros stay, where NumPy drops some.
"""

from typing import Any

import numpy as np

from cgraph.errors import NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.creation import check_count, vander
from cgraph.numpy.linalg import lstsq
from cgraph.numpy.signals import convolve
from cgraph.numpy.table import of
from cgraph.ops.elementary import sqrt
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import pad
from cgraph.ops.reduce import sum
from cgraph.ops.shape import ravel, zeros_like

__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval"]


@of(np.polyval)
def polyval(p: Any, x: Any) -> Node:
    """Return the value at x, by Horner's rule."""
    coefficients = list(p) if isinstance(p, Node) or any(isinstance(c, Node) for c in p) else list(np.asarray(p))
    x = as_node(x)
    value = zeros_like(x)
    for c in coefficients:
        value = value * x + c
    return value


@of(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Node:
    """Return the sum."""
    x, y = of_one_length(a1, a2)
    return x + y


@of(np.polysub)
def polysub(a1: Any, a2: Any) -> Node:
    """Return the difference."""
    x, y = of_one_length(a1, a2)
    return x - y


def of_one_length(*xs: Any) -> list[Node]:
    """Return coefficients with zeros in front."""
    nodes = [row_of(x) for x in xs]
    n = max(x.size for x in nodes)
    return [pad(x, (n - x.size, 0)) for x in nodes]


def row_of(p: Any) -> Node:
    """Return coefficients along one axis. ShapeError if they have several, which NumPy reads as rows of rows."""
    p = as_node(p)
    if p.ndim > 1:
        raise ShapeError(f"a polynomial has one row of coefficients, not {p.spec}. Pass one row at a time")
    return ravel(p)


@of(np.polymul)
def polymul(a1: Any, a2: Any) -> Node:
    """Return the product."""
    return convolve(row_of(a1), row_of(a2))


@of(np.polyder)
def polyder(p: Any, m: int = 1) -> Node:
    """Return the m-th derivative."""
    p = row_of(p)
    for _ in range(check_count(m, "m")):
        p = p[:-1] * np.arange(p.size - 1, 0, -1)
    return p


@of(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Node:
    """Return the m-th antiderivative, with constants k, 0 by default."""
    p = row_of(p)
    constants = np.zeros(check_count(m, "m")) if k is None else np.broadcast_to(np.asarray(k), (m,))
    for i in range(m):
        p = concat([p / np.arange(p.size, 0, -1), constants[i : i + 1]])
    return p


@of(np.poly)
def poly(seq_of_zeros: Any) -> Node:
    """Return the polynomial with these zeros."""
    zeros = as_node(seq_of_zeros)
    if zeros.ndim != 1:
        raise NoMeaningError(f"the zeros of {zeros.spec} are its eigenvalues; use np.poly(np.linalg.eigvalsh(x))")
    zeros = zeros.astype(np.result_type(zeros.dtype, "float64" if zeros.dtype.kind not in "fc" else zeros.dtype))
    coefficients = as_node(np.ones(1, zeros.dtype))
    for i in range(zeros.size):
        coefficients = convolve(coefficients, concat([np.ones(1, zeros.dtype), -zeros[i : i + 1]]))
    return coefficients


@of(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Node:
    """Return the coefficients of the polynomial of a degree nearest to points, by least squares; `w` weighs them."""
    if full or cov:
        raise NoMeaningError("full= and cov= have no meaning for nodes; use np.linalg.lstsq of np.vander(x, deg + 1)")
    x, y = as_node(x) + 0.0, as_node(y) + 0.0
    x, y = (v if v.dtype.kind in kinds else v.astype("float64") for v, kinds in ((x, "f"), (y, "fc")))
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ShapeError(f"positions {x.spec} and values {y.spec} differ in number; give one value for each position")
    if not x.size:
        raise ShapeError(f"positions {x.spec} are empty. Pass at least {deg + 1}, more than the degree")
    left, right = vander(x, check_count(deg, "deg") + 1), y
    if w is not None:
        w = as_node(w)
        left, right = left * w[:, None], right * (w[:, None] if y.ndim == 2 else w)
    scale = sqrt(sum(left * left, 0))
    rcond = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    solution = lstsq(left / scale, right, rcond)[0]
    return (solution.T / scale).T
