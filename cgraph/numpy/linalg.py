"""``np.linalg``: matrices are the last two axes, leading ones a batch. Named results have NumPy's names."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import ArgumentError, NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy import products
from cgraph.numpy.products import cross as any_cross
from cgraph.numpy.products import matmul, tensordot, vecdot
from cgraph.numpy.results import EighResult, EigResult, QRResult, SlogdetResult, SVDResult
from cgraph.numpy.shapes import matrix_transpose
from cgraph.numpy.table import of
from cgraph.ops import diagonal as diagonals
from cgraph.ops import factors, norms
from cgraph.ops import linalg as ops
from cgraph.ops.arithmetic import sign
from cgraph.ops.compare import isnan, where
from cgraph.ops.family import common_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import any as any_along
from cgraph.ops.reduce import max, squared_size
from cgraph.ops.reduce import sum as total
from cgraph.ops.shape import expand_dims, moveaxis, reshape, transpose
from cgraph.ops.slicing import flip
from cgraph.ops.sort import argsort
from cgraph.ops.take import take_along_axis

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

inv, det, solve = of(np.linalg.inv)(ops.inv), of(np.linalg.det)(ops.det), of(np.linalg.solve)(ops.solve)
svdvals, norm = of(np.linalg.svdvals)(factors.svdvals), of(np.linalg.norm)(norms.norm)


@of(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Node:
    """Return the cross product of vectors of three elements."""
    x, y = as_node(x1), as_node(x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ShapeError(f"cross needs vectors of 3 elements, got {x.spec} and {y.spec}. Use np.cross for vectors of 2")
    return any_cross(x, y, axis=axis)


@of(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Node:
    """Return a diagonal of the last two axes."""
    return diagonals.diagonal(x, offset, -2, -1)


@of(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Node:
    """Return the sum of a diagonal of the last two axes."""
    return total(diagonal(x, offset=offset), -1, dtype)


# -- factors ----------------------------------------------------------------------------------------------------------


def is_upper(UPLO: str) -> bool:
    """Return True if `UPLO` names the upper triangle."""
    if UPLO.upper() not in ("L", "U"):
        raise ShapeError(f"UPLO is {UPLO!r}. Use 'L' or 'U'")
    return UPLO.upper() == "U"


@of(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Node:
    """Return the lower triangular factors of positive definite matrices; the upper ones read the upper triangle."""
    return ops.adjoint(ops.cholesky(ops.adjoint(as_node(a)))) if upper else ops.cholesky(a)


@of(np.linalg.eig)
def eig(a: Any) -> EigResult:
    """Return eigenvalues and eigenvectors (columns) of square matrices; complex even if all eigenvalues are real."""
    return EigResult(*factors.eig(a))


@of(np.linalg.eigvals)
def eigvals(a: Any) -> Node:
    """Return eigenvalues of square matrices; complex even if all are real."""
    return factors.eig(a)[0]


@of(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Return ascending eigenvalues and eigenvectors (columns) of symmetric matrices, reading one triangle."""
    return EighResult(*factors.eigh(a, is_upper(UPLO)))


@of(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Node:
    """Return ascending eigenvalues of symmetric matrices, reading one triangle."""
    return factors.eigh(a, is_upper(UPLO))[0]


@of(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return orthonormal columns and upper triangular rows; `mode` reduced, complete (square Q) or r."""
    if mode not in ("reduced", "complete", "r"):
        raise NoMeaningError(f"there is no mode {mode!r} for nodes; use np.linalg.qr(x, mode='reduced')")
    q, r = factors.qr(a, complete=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@of(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return U, descending singular values S and Vh; without `compute_uv` only S; `hermitian` matrices by eigh."""
    if not hermitian:
        return SVDResult(*factors.svd(a, full_matrices)) if compute_uv else svdvals(a)
    w, v = factors.eigh(a)
    order = flip(argsort(abs(w)), -1)
    s = take_along_axis(abs(w), order, -1)
    if not compute_uv:
        return s
    u = take_along_axis(v, expand_dims(order, -2), -1)
    side = sign(take_along_axis(w, order, -1))
    side = where(side == 0, 1, side)
    return SVDResult(u, s, ops.adjoint(u * expand_dims(side, -2)))


@of(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """Return the sign of the determinants of matrices, and the logarithm of their magnitude."""
    return SlogdetResult(*ops.slogdet(a))


# -- solutions --------------------------------------------------------------------------------------------------------


UNSAID: Any = np._NoValue  # type: ignore[attr-defined]


def longest(x: Node) -> int:
    """Return the longer side of matrices."""
    return x.shape[-1] if x.shape[-1] > x.shape[-2] else x.shape[-2]


def eps_of(x: Node) -> float:
    return float(np.finfo(x.dtype if x.dtype.kind in "fc" else "float64").eps)


def check_one_of(one: str, value: Any, other: str, other_value: Any) -> None:
    """Raise ArgumentError if two options that exclude each other have values."""
    if value is not None and other_value is not None:
        raise ArgumentError(f"{one}= and {other}= are two names of one tolerance. Pass one of them")


@of(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = UNSAID) -> Node:
    """Return the pseudo-inverse; singular values up to a share of the largest count as 0.

    The share is `rcond` or `rtol`, 1e-15 by default; with ``rtol=None`` that of rounding in matrices of this size.
    """
    a = as_node(a)
    check_one_of("rcond", rcond, "rtol", None if rtol is UNSAID else rtol)
    share = 1e-15 if rtol is UNSAID else eps_of(a) * longest(a) if rtol is None else rtol
    share = share if rcond is None else rcond
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    large = s > expand_dims(share, -1) * s[..., :1] if isinstance(share, Node | np.ndarray) else s > share * s[..., :1]
    inverse = where(large, 1 / where(large, s, 1), 0)
    return matmul(ops.adjoint(vh), expand_dims(inverse, -1) * ops.adjoint(u))


@of(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Node, Node, Node, Node]:
    """Return the least-squares solution of ``a @ x = b``, the squared residuals, the rank and the singular values.

    The residuals are those of a matrix of full rank. NumPy returns none for other matrices; here their number must not
    depend on values. The gradient of the solution goes through the singular values.
    """
    a, b = ops.matrices(a), ops.matrices(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"a matrix and as many right sides are solved, not {a.spec} and {b.spec}; "
            "give a and b the same number of rows"
        )
    kind = common_dtype(a, b)
    a, b = a.astype(kind), b.astype(kind)
    m, n = a.shape
    columns = b if b.ndim == 2 else expand_dims(b, 1)
    u, s, vh = factors.svd(a, full_matrices=False)
    share = (
        eps_of(a) * (m if m > n else n) if rcond is None else rcond if 0 < rcond < 1 else eps_of(a)
    )  # as LAPACK does
    large = s > share * s[:1]
    inverse = where(large, 1 / where(large, s, 1), 0)
    x = matmul(ops.adjoint(vh), expand_dims(inverse, 1) * matmul(ops.adjoint(u), columns))
    rest = columns - matmul(a, x)
    residuals = total(squared_size(rest), 0) if m > n else np.zeros(0, s.dtype)
    solution = x if b.ndim == 2 else x.squeeze(1)
    return solution, as_node(residuals), total(large, dtype="int32"), s


@of(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Node:
    """Return the number of singular values above a tolerance."""
    A = as_node(A)
    check_one_of("tol", tol, "rtol", rtol)
    if A.ndim < 2:
        return max(A != 0).astype("int64")
    s = svd(A, compute_uv=False, hermitian=hermitian)
    if tol is None:
        share = eps_of(A) * longest(A) if rtol is None else rtol
        tol = s[..., :1] * (share if np.ndim(share) == 0 else expand_dims(share, -1))
    return total(s > (tol if np.ndim(tol) == 0 or isinstance(tol, Node) else expand_dims(tol, -1)), -1)


@of(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Node:
    """Return the condition number, infinite for a singular matrix. A choice inside the graph is `cgraph.cond`."""
    x = as_node(x)
    if p is None or p in (2, -2):
        s = svdvals(x)
        number = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        is_singular = slogdet(x)[0] == 0
        inverse = inv(where(expand_dims(is_singular, (-2, -1)), np.eye(x.shape[-1], dtype=x.dtype), x))
        number = where(is_singular, np.inf, norms.norm(x, p, (-2, -1)) * norms.norm(inverse, p, (-2, -1)))
    return where(isnan(number) & ~any_along(isnan(x), (-2, -1)), np.inf, number)


@of(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Node:
    """Return the x of ``tensordot(a, x, x.ndim) = b``."""
    a, b = as_node(a), as_node(b)
    if axes is not None:
        a = transpose(a, [*(i for i in range(a.ndim) if i not in axes), *axes])
    rest = a.shape[b.ndim :]
    if not prod(a.shape[: b.ndim]) == prod(rest) == b.size:
        raise ShapeError(
            f"{a.spec} is not a square matrix for the right side {b.spec}; use axes= to choose the axes of the solution"
        )
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, -1)), rest)


@of(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Node:
    """Return the inverse for ``tensordot(ainv, b, ind)``."""
    a = as_node(a)
    first, rest = a.shape[:ind], a.shape[ind:]
    if ind <= 0 or prod(first) != prod(rest):
        raise ShapeError(f"{a.spec} is not a square matrix with {ind} axes of rows; use another ind=")
    return reshape(inv(reshape(a, (prod(first), prod(rest)))), (*rest, *first))


@of(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Node:
    """Return an integer power of a square matrix, by repeated squaring; for a negative power that of the inverse."""
    a = as_node(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{a.name} {a.spec} is not a square matrix; its last two axes must have one length")
    if n == 0:
        return as_node(np.zeros(a.shape, a.dtype) + np.eye(a.shape[-1], dtype=a.dtype))
    square, left = (inv(a), -n) if n < 0 else (a, n)
    product = None
    while left:
        if left % 2:
            product = square if product is None else matmul(product, square)
        left //= 2
        square = matmul(square, square) if left else square
    return product  # type: ignore[return-value]


@of(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any]) -> Node:
    """Return the product of several matrices, vectors at the ends allowed, in the order of fewest multiplications.

    Source: Cormen et al., Introduction to Algorithms, matrix-chain order. Time O(n^3) for n matrices.
    """
    nodes = [as_node(x) for x in arrays]
    if len(nodes) < 2:
        raise ShapeError(f"multi_dot needs at least two operands, got {len(nodes)}. Pass a list of arrays")
    shapes = [
        (1, *x.shape) if i == 0 and x.ndim == 1 else (*x.shape, 1) if x.ndim == 1 else x.shape
        for i, x in enumerate(nodes)
    ]
    if any(len(s) != 2 for s in shapes):
        raise ShapeError(f"multi_dot needs matrices, got {', '.join(str(x.spec) for x in nodes)}. Use np.matmul")
    sides = [shapes[0][0], *(s[1] for s in shapes)]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(nodes))}
    for span in range(1, len(nodes)):
        for i in range(len(nodes) - span):
            j = i + span
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sides[i] * sides[k + 1] * sides[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Node:
        k = best[i, j][1]
        return nodes[i] if i == j else matmul(product(i, k), product(k + 1, j))

    return product(0, len(nodes) - 1)


@of(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Node:
    """Return the products of all pairs of elements of two rows."""
    x, y = as_node(x1), as_node(x2)
    if (x.ndim, y.ndim) != (1, 1):
        raise ShapeError(f"{x.spec} and {y.spec} are not two rows; use np.outer, which takes all elements in order")
    return products.outer(x, y)


# -- norms ------------------------------------------------------------------------------------------------------------


@of(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Node:
    """Return the norm of matrices."""
    return norms.norm(x, ord, (-2, -1), keepdims=keepdims)


@of(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Node:
    """Return the norm of vectors along axes, all of them as one vector by default."""
    x = as_node(x)
    axes = list(range(x.ndim)) if axis is None else np.atleast_1d(axis).tolist()
    rest = tuple(n for i, n in enumerate(x.shape) if i not in [a % x.ndim for a in axes])
    flat = reshape(moveaxis(x, axes, range(len(axes))), (-1, *rest)) if x.size else reshape(x, (0, *rest))
    length = norms.norm(flat, ord, 0)
    return expand_dims(length, [a % x.ndim for a in axes]) if keepdims and axes else length
