"""Linear algebra through LAPACK: inverses, solutions, Cholesky's factors, determinants. Leading axes are a batch.

Each op runs as one Python call into NumPy, whose BLAS has one thread meanwhile, so that any number of threads gives the
same bits. A singular or indefinite matrix ends the run with NumPy's LinAlgError.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.complex import complex, conj, imag
from cgraph.ops.diagonal import diagonal, tril
from cgraph.ops.family import common_dtype, real_dtype
from cgraph.ops.host import OnHost
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import leading_shape, matmul
from cgraph.ops.shape import broadcast_to, expand_dims, items, reshape, swapaxes


def check_matrices(x: Spec, square: bool = True) -> None:
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{x.dtype} is no float")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(f"the operand must be {'square ' if square else ''}matrices, not {list(x.shape)}")


def matrix_transpose(x: Node) -> Node:
    """Matrices transposed."""
    return swapaxes(x, -1, -2)


def adjoint(x: Node) -> Node:
    """Matrices transposed, and conjugate."""
    return conj(matrix_transpose(x))


def conjugate(grad: Callable) -> Callable:
    """The gradient of an op whose formula has the inner product with a conjugate, as most sources have: adjoint
    matrices where it has transposes. This library's gradients have none (`cgraph.ops.complex`)."""

    @wraps(grad)
    def turned_round(op: Any, node: Node, g: Any) -> tuple[Node | None, ...]:
        seed = tuple(map(conj, g)) if isinstance(g, tuple) else conj(g)
        return tuple(None if x is None else conj(x) for x in grad(op, node, seed))

    return turned_round


class Inv(OnHost):
    """The inverses of matrices."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return x

    def meaning(self, x):
        return np.linalg.inv(x)

    def grad(self, node, g):
        return (-matmul(matrix_transpose(node), matmul(g, matrix_transpose(node))),)


class Solve(OnHost):
    """The x of ``a @ x = b``.

    Operands
        a: ``[..., n, n]``
        b: ``[..., n, k]``
    """

    def infer(self, a: Spec, b: Spec) -> Spec:
        check_matrices(a)
        check_matrices(b, square=False)
        if a.dtype != b.dtype or a.shape[:-1] != b.shape[:-1]:
            raise ShapeError("the right side must have as many rows as the matrix, and the same leading axes and dtype")
        return b

    def meaning(self, a, b):
        return np.linalg.solve(a, b)

    def grad(self, node, g):
        to_b = apply(self, matrix_transpose(node.operands[0]), g)
        return -matmul(to_b, matrix_transpose(node)), to_b


class Cholesky(OnHost):
    """The lower triangular l of ``l @ l.T = x``, for positive definite x, of which the lower triangle is read."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return x

    def meaning(self, x):
        return np.linalg.cholesky(x)

    @conjugate
    def grad(self, node, g):
        inner = tril(matmul(adjoint(node), g))
        inner = inner - 0.5 * diagonal_matrices(diagonal(inner, axis1=-2, axis2=-1))
        inverse = apply(Inv(), node)
        return (lower_gradient(matmul(adjoint(inverse), matmul(inner, inverse))),)


def lower_gradient(g: Node) -> Node:
    """The gradient of a symmetric matrix of which only the lower triangle is read."""
    both = g + adjoint(g)
    return tril(both) - 0.5 * diagonal_matrices(diagonal(both, axis1=-2, axis2=-1))


def diagonal_matrices(x: Node) -> Node:
    """Vectors on the diagonals of matrices."""
    unit = np.eye(x.shape[-1], dtype=x.dtype)
    return expand_dims(x, -1) * unit


class Det(OnHost):
    """The determinants of matrices."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return Spec(x.shape[:-2], x.dtype)

    def meaning(self, x):
        return np.linalg.det(x)

    def grad(self, node, g):
        inverse = matrix_transpose(apply(Inv(), node.operands[0]))
        return (reshape(g * node, (*node.shape, 1, 1)) * inverse,)


class Slogdet(OnHost):
    """The sign of the determinants of matrices, and the logarithm of their magnitude."""

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        return Bundle((Spec(x.shape[:-2], x.dtype), Spec(x.shape[:-2], real_dtype(x.dtype))))

    def meaning(self, x):
        return tuple(np.linalg.slogdet(x))

    def grad(self, node, g):
        inverse = matrix_transpose(apply(Inv(), node.operands[0]))
        to_log = g[1]
        if inverse.dtype.kind == "c":
            to_log = complex(to_log, imag(g[0] * items(node)[0]))
        return (reshape(to_log, (*to_log.shape, 1, 1)) * inverse,)


# -- public functions -------------------------------------------------------------------------------------------------


def matrices(x: Any) -> Node:
    """The operand in a float or complex dtype."""
    x = as_node(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


@public
def inv(x: Any) -> Node:
    """The inverses of matrices ``[..., n, n]``."""
    return apply(Inv(), matrices(x))


@public
def solve(a: Any, b: Any) -> Node:
    """The x of ``a @ x = b``; `b` is one vector ``[n]`` or matrices ``[..., n, k]``."""
    dtype = common_dtype(a, b)
    dtype = dtype if dtype.kind in "fc" else np.dtype("float64")
    a, b = (as_node(v, dtype).astype(dtype) for v in (a, b))
    if b.ndim == 1:
        return solve(a, expand_dims(b, 1)).squeeze(-1)
    batch = leading_shape(a, b)
    a, b = (broadcast_to(v, (*batch, *v.shape[-2:])) for v in (a, b))
    return apply(Solve(), a, b)


@public
def cholesky(x: Any) -> Node:
    """The lower triangular factors of positive definite matrices, of which the lower triangle is read."""
    return apply(Cholesky(), matrices(x))


@public
def det(x: Any) -> Node:
    """The determinants of matrices."""
    return apply(Det(), matrices(x))


@public
def slogdet(x: Any) -> tuple[Node, Node]:
    """The sign of the determinants of matrices, and the logarithm of their magnitude."""
    sign, log = items(apply(Slogdet(), matrices(x)))
    return sign, log


@public
def logdet(x: Any) -> Node:
    """The logarithm of the magnitude of the determinants of matrices."""
    return slogdet(x)[1]
