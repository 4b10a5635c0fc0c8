"""Products of vectors and matrices."""

from typing import Any

import numpy as np

from cgraph.errors import NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import linear
from cgraph.ops.complex import conj
from cgraph.ops.einsum import einsum as by_letters
from cgraph.ops.family import broadcast, common_dtype
from cgraph.ops.join import stack
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import dot, inner, kron, matmul, outer, vdot
from cgraph.ops.shape import axis_of, expand_dims, moveaxis, reshape

__all__ = [
    "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot",
    "vecdot", "vecmat",
]  # fmt: skip

dot, inner, kron, vdot = of(np.dot)(dot), of(np.inner)(inner), of(np.kron)(kron), of(np.vdot)(vdot)
matmul, outer = of(np.matmul, np.linalg.matmul)(matmul), of(np.outer)(outer)


@of(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    """Return the sum of products over pairs of axes: `axes` of a with `axes` of b, or the last n with the first n."""
    return linear.tensordot(a, b, axes)


@of(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Node:
    """Return the sum of products along an axis, those of x1 conjugate; the other axes broadcast."""
    dtype = common_dtype(x1, x2)
    x, y = (as_node(v).astype(dtype) for v in (x1, x2))
    x, y = (moveaxis(v, axis_of(axis, v.ndim), -1) for v in (x, y))
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"{x.spec} and {y.spec} differ along axis {axis}; choose another axis=")
    x, y = broadcast(conj(x), y)
    products = matmul(expand_dims(x, -2), expand_dims(y, -1))
    return reshape(products, x.shape[:-1])


@of(np.matvec)
def matvec(x1: Any, x2: Any, /) -> Node:
    """Return matrices times vectors."""
    return matmul(matrices(x1), expand_dims(x2, -1)).squeeze(-1)


@of(np.vecmat)
def vecmat(x1: Any, x2: Any, /) -> Node:
    """Return vectors, conjugate, times matrices."""
    return matmul(expand_dims(conj(x1), -2), matrices(x2)).squeeze(-2)


def matrices(x: Any) -> Node:
    """Return the operand. ShapeError for a vector, which `matmul` would take for a matrix."""
    x = as_node(x)
    if x.ndim < 2:
        raise ShapeError(f"{x.name} {x.spec} has fewer than two axes; use np.vecdot for two vectors")
    return x


@of(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Node:
    """Return the cross product of vectors of three elements; of two, its third element."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    dtype = common_dtype(a, b)
    x, y = moveaxis(as_node(a).astype(dtype), axisa, -1), moveaxis(as_node(b).astype(dtype), axisb, -1)
    lengths = x.shape[-1], y.shape[-1]
    if not set(lengths) <= {2, 3}:
        raise ShapeError(f"vectors of 2 or 3 elements have a cross product, not {x.spec} and {y.spec}")
    if lengths == (2, 2):
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    zero = np.zeros((), dtype)
    (x0, x1, x2), (y0, y1, y2) = (
        [v[..., i] if i < v.shape[-1] else v[..., 0] * zero for i in range(3)] for v in (x, y)
    )
    parts = broadcast(x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0)
    return moveaxis(stack(parts, -1), -1, axisc)


@of(np.einsum)
def einsum(*operands: Any, optimize: Any = False, dtype: Any = None) -> Node:
    """Return sums of products, by letters or by lists of numbers that name the axes; always in the cheapest order."""
    subscripts, nodes = with_letters(operands)
    nodes = [as_node(x) for x in nodes]
    return by_letters(subscripts, *(nodes if dtype is None else [x.astype(dtype) for x in nodes]))


def with_letters(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Convert ``(x, [0, 1], y, [1, 2], [0, 2])`` to ``("ab,bc->ac", [x, y])``; letters stay."""
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    count = len(operands) // 2
    terms = [letters(operands[2 * i + 1]) for i in range(count)]
    result = "->" + letters(operands[-1]) if len(operands) % 2 else ""
    return ",".join(terms) + result, [operands[2 * i] for i in range(count)]


def letters(axes: Any) -> str:
    """Return letters in the order of numbers, so that sorting them sorts the numbers."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    if outside := [a for a in axes if a is not Ellipsis and not 0 <= a < len(alphabet)]:
        raise ShapeError(f"{outside[0]} does not name an axis. Use numbers from 0 to {len(alphabet) - 1}")
    return "".join("..." if a is Ellipsis else alphabet[a] for a in axes)


@of(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """Return the order of the products that NumPy takes for these shapes, and its description."""
    if einsum_call:
        raise NoMeaningError("einsum_call is NumPy's own; use np.einsum_path(subscripts, x, y)")
    subscripts, nodes = with_letters(operands)
    shapes = [np.broadcast_to(np.zeros(()), as_node(x).shape) for x in nodes]
    return np.einsum_path(subscripts, *shapes, optimize=optimize)
