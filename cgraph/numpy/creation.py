"""New values: constants with NumPy's dtypes, like others, or evenly spaced between nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node
from cgraph.ir.spec import shape_of
from cgraph.numpy.table import of
from cgraph.ops.arithmetic import floor, sign
from cgraph.ops.compare import equal, where
from cgraph.ops.diagonal import diag, tril, triu
from cgraph.ops.elementary import log10
from cgraph.ops.family import unify, wide_node
from cgraph.ops.join import stack
from cgraph.ops.leaf import Const, as_node
from cgraph.ops.power import power
from cgraph.ops.shape import arange as evenly
from cgraph.ops.shape import broadcast_to, expand_dims, moveaxis, ravel, reshape
from cgraph.ops.slicing import set_slice

__all__ = [
    "arange", "array", "asanyarray", "ascontiguousarray", "asarray", "asfortranarray", "copy", "diag", "diagflat",
    "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity", "linspace", "logspace", "meshgrid",
    "ones", "ones_like", "tri", "tril", "triu", "vander", "zeros", "zeros_like",
]  # fmt: skip

diag, tril, triu = of(np.diag)(diag), of(np.tril)(tril), of(np.triu)(triu)


@of(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Node:
    """Return one value everywhere, which may be a node that broadcasts."""
    value = as_node(fill_value)
    return broadcast_to(value if dtype is None else value.astype(dtype), shape_of(shape))


@of(np.zeros)
def zeros(shape: Any, dtype: Any = float) -> Node:
    """Return zeros, float64 by default as NumPy's."""
    return full(shape, 0, dtype or float)


@of(np.empty)
def empty(shape: Any, dtype: Any = float) -> Node:
    """Return zeros: a node always has a defined value."""
    return full(shape, 0, dtype or float)


@of(np.ones)
def ones(shape: Any, dtype: Any = float) -> Node:
    """Return ones, float64 by default as NumPy's."""
    return full(shape, 1, dtype or float)


@of(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Node:
    """Return an array filled with one value, with the operand's shape and dtype by default."""
    a = as_node(a)
    return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)


@of(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Node:
    """Return zeros with the operand's shape and dtype by default."""
    return full_like(a, 0, dtype, shape=shape)


@of(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, *, shape: Any = None) -> Node:
    """Return zeros: a node always has a defined value."""
    return full_like(prototype, 0, dtype, shape=shape)


@of(np.ones_like)
def ones_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Node:
    """Return ones with the operand's shape and dtype by default."""
    return full_like(a, 1, dtype, shape=shape)


@of(np.array)
def array(object: Any, dtype: Any = None, *, ndmin: int = 0) -> Node:
    """Return a node: a constant of plain values. Lists and tuples with nodes are stacked."""
    node = stacked(object)
    node = node if dtype is None else node.astype(dtype)
    return expand_dims(node, list(range(ndmin - node.ndim))) if node.ndim < ndmin else node


def stacked(value: Any) -> Node:
    """Return nested lists of nodes and values as one node, in the dtype that NumPy gives them."""
    if not (isinstance(value, tuple | list) and has_node(value)):
        return as_node(value)
    parts = [stacked(x) for x in value]
    if len({x.shape for x in parts}) > 1:
        raise ShapeError(
            f"parts of one array have one shape, not {', '.join(str(x.spec) for x in parts)}; use np.concatenate"
        )
    return stack([x.astype(np.result_type(*[x.dtype for x in parts])) for x in parts])


def has_node(value: Any) -> bool:
    """Return True for a node, and for tuples and lists with one."""
    if isinstance(value, tuple | list):
        return any(map(has_node, value))
    return isinstance(value, Node)


@of(np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)
def asarray(a: Any, dtype: Any = None) -> Node:
    """Return a node: itself, or a constant of plain values."""
    return array(a, dtype)


asanyarray = ascontiguousarray = asfortranarray = asarray


@of(np.copy)
def copy(a: Any) -> Node:
    """Return the node itself: nodes do not change."""
    return as_node(a)


@of(np.arange)
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Node:
    """Return evenly spaced numbers as a constant."""
    return evenly(start, stop, 1 if step is None else step, dtype)


@of(np.eye)
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Node:
    """Return ones on the k-th diagonal, float64 by default as NumPy's."""
    return Const(np.eye(N, M, k, dtype))


@of(np.identity)
def identity(n: int, dtype: Any = None) -> Node:
    """Return ones on the main diagonal of a square matrix."""
    return eye(n, dtype=dtype or float)


@of(np.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Node:
    """Return ones on and below the k-th diagonal."""
    return Const(np.tri(N, M, k, dtype))  # type: ignore[call-overload]


@of(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Node:
    """Return all elements on the k-th diagonal of a square matrix of zeros."""
    return diag(ravel(v), k)


@of(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Node:
    """Return powers of the elements, one column each, falling by default."""
    x = as_node(x)
    if x.ndim != 1:
        raise ShapeError(f"{x.name} {x.spec} has {x.ndim} axes; the powers are of a vector; use np.ravel(x)")
    n = x.size if N is None else check_count(N, "N")
    x = x.astype(np.promote_types(x.dtype, int))
    exponents = np.arange(n) if increasing else np.arange(n)[::-1]
    return power(expand_dims(x, 1), exponents.astype(x.dtype))


@of(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Node, ...]:
    """Return one array of coordinates for each axis of a grid; `sparse` ones have one element along the other axes."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"indexing is {indexing!r}. Use 'xy' or 'ij'")
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axes[:2] = 1, 0
    flat = [ravel(x) for x in xi]
    shape = [0] * len(xi)
    for a, x in zip(axes, flat):
        shape[a] = x.size
    laid = (reshape(x, [-1 if i == a else 1 for i in range(len(xi))]) for a, x in zip(axes, flat))
    return tuple(x if sparse else broadcast_to(x, shape) for x in laid)


# -- evenly spaced ----------------------------------------------------------------------------------------------------


def check_count(n: int, name: str, least: int = 0) -> int:
    """Return a count. ShapeError if it is smaller than `least`."""
    if n < least:
        raise ShapeError(f"{name} is {n}. Pass at least {least}")
    return n


@of(np.linspace)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`, nodes of any shape; with `retstep` the step, too."""
    kind = np.result_type(
        *(x if isinstance(x, int | float | complex) else wide_node(x).dtype for x in (start, stop)), float(num)
    )
    start, stop = (x.astype(kind) for x in unify(start, stop, dtype=kind))
    parts = check_count(num, "num") - 1 if endpoint else check_count(num, "num")
    step = (stop - start) / parts if parts > 0 else (stop - start) * np.nan
    places = np.arange(num, dtype=kind).reshape(-1, *[1] * start.ndim)
    values = start + (places * step if parts > 0 else places * (stop - start))
    if endpoint and num > 1:
        values = set_slice(values, -1, stop)
    if dtype is not None:
        values = floor(values) if np.dtype(dtype).kind in "iu" else values
        values = values.astype(dtype)
    values = moveaxis(values, 0, axis)
    return (values, step) if retstep else values


@of(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Node:
    """Return `base` to the power of evenly spaced numbers."""
    start, stop, base = (
        unify(start, stop, base) if isinstance(base, Node | Sequence | np.ndarray) else (start, stop, base)
    )
    values = power(base, linspace(start, stop, num, endpoint))
    return moveaxis(values if dtype is None else values.astype(dtype), 0, axis)


@of(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Node:
    """Return `num` numbers from `start` to `stop` with equal quotients, in float64. Both ends have one sign."""
    kind = np.dtype("float64")
    start, stop = unify(start, stop, dtype=kind)
    side = where(equal(sign(start), sign(stop)), sign(start), np.asarray(np.nan, kind))
    values = logspace(log10(start * side), log10(stop * side), num, endpoint) * side
    if num > 0:
        values = set_slice(values, 0, start)
    if endpoint and num > 1:
        values = set_slice(values, -1, stop)
    return moveaxis(values if dtype is None else values.astype(dtype), 0, axis)
