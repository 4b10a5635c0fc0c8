"""Factors of matrices by LAPACK: orthonormal columns, singular values, eigenvalues. As in `cgraph.ops.linalg`."""

from typing import Any

import numpy as np

from cgraph.errors import NoGradientError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.compare import equal, where
from cgraph.ops.complex import conj, real
from cgraph.ops.diagonal import diagonal, tril
from cgraph.ops.family import real_dtype
from cgraph.ops.host import OnHost
from cgraph.ops.linalg import Solve, adjoint, check_matrices, conjugate, diagonal_matrices, lower_gradient, matrices
from cgraph.ops.linear import matmul
from cgraph.ops.shape import expand_dims, items


class Qr(OnHost):
    """Orthonormal columns q ``[..., m, k]`` and upper triangular r ``[..., k, n]`` of ``q @ r = x``.

    Fields
        complete: k is m, so that q is square; else k is min(m, n)
    """

    complete: bool = False

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x, square=False)
        *batch, m, n = x.shape
        k = m if self.complete else min(m, n)
        return Bundle((Spec((*batch, m, k), x.dtype), Spec((*batch, k, n), x.dtype)))

    def meaning(self, x):
        return tuple(np.linalg.qr(x, "complete" if self.complete else "reduced"))

    @conjugate
    def grad(self, node, g):
        """Source: Walter and Lehmann 2018, arXiv:1001.1654; for m >= n of full rank."""
        x = node.operands[0]
        if x.shape[-2] < x.shape[-1]:
            raise NoGradientError(f"qr at {node.where} has no gradient for more columns than rows, {x.spec}")
        if self.complete and x.shape[-2] != x.shape[-1]:
            raise NoGradientError(f"qr at {node.where} has a gradient with complete=False only")
        q, r = items(node)
        to_q, to_r = g
        inner = matmul(r, adjoint(to_r)) - matmul(adjoint(to_q), q)
        both = tril(inner) + adjoint(tril(inner))
        symmetric = both - 0.5 * diagonal_matrices(diagonal(both, axis1=-2, axis2=-1))
        whole = to_q + matmul(q, symmetric)
        return (adjoint(apply(Solve(), r, adjoint(whole))),)


class Svd(OnHost):
    """u, s, v of ``u @ diag(s) @ v = x``: orthonormal columns, falling singular values, orthonormal rows.

    Fields
        full: u and v are square; else they have as many columns and rows as there are singular values
    """

    full: bool

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x, square=False)
        *batch, m, n = x.shape
        k = min(m, n)
        left, right = ((m, m), (n, n)) if self.full else ((m, k), (k, n))
        shapes = ((*batch, *left), (*batch, k), (*batch, *right))
        dtypes = x.dtype, real_dtype(x.dtype), x.dtype
        return Bundle(tuple(Spec(shape, dtype) for shape, dtype in zip(shapes, dtypes)))

    def meaning(self, x):
        return tuple(np.linalg.svd(x, full_matrices=self.full))

    @conjugate
    def grad(self, node, g):
        """Source: Townsend 2016, Differentiating the singular value decomposition.

        Of complex matrices right for what does not depend on the phases of the vectors, which are LAPACK's choice.
        """
        x = node.operands[0]
        if self.full and x.shape[-1] != x.shape[-2]:
            raise NoGradientError(f"svd at {node.where} has a gradient with full_matrices=False only")
        u, s, vh = items(node)
        to_u, to_s, to_vh = g
        v, to_v = adjoint(vh), adjoint(to_vh)
        row, column = expand_dims(s, -2), expand_dims(s, -1)
        apart = reciprocal_or_zero(row * row - column * column)
        left = apart * skew(u, to_u) * row
        right = column * (apart * skew(v, to_v))
        phases = diagonal_matrices(diagonal(skew(u, to_u), axis1=-2, axis2=-1) / (2.0 * s))
        to_x = matmul(u, matmul(left + right + diagonal_matrices(to_s) + phases, vh))
        to_x = to_x + matmul(outside(u, to_u) / row, vh)
        return (to_x + matmul(u, adjoint(outside(v, to_v) / row)),)


def skew(u: Node, to_u: Node) -> Node:
    product = matmul(adjoint(u), to_u)
    return product - adjoint(product)


def outside(u: Node, to_u: Node) -> Node:
    """The part of `to_u` that no column of `u` reaches."""
    return to_u - matmul(u, matmul(adjoint(u), to_u))


def reciprocal_or_zero(x: Node) -> Node:
    zero = equal(x, 0)
    return where(zero, 0, 1 / where(zero, 1, x))


class Eigh(OnHost):
    """Rising eigenvalues and eigenvectors (columns) of Hermitian matrices, of which one triangle is read, the lower one
    unless `upper`.

    The gradient is right for what does not depend on the phases of complex vectors, which are LAPACK's choice.
    """

    upper: bool = False

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        return Bundle((Spec(x.shape[:-1], real_dtype(x.dtype)), x))

    def meaning(self, x):
        return tuple(np.linalg.eigh(x, "U" if self.upper else "L"))

    @conjugate
    def grad(self, node, g):
        w, v = items(node)
        to_w, to_v = g
        apart = reciprocal_or_zero(expand_dims(w, -2) - expand_dims(w, -1))
        inner = diagonal_matrices(to_w) + apart * matmul(adjoint(v), to_v)
        whole = matmul(v, matmul(inner, adjoint(v)))
        to_x = lower_gradient(0.5 * (whole + adjoint(whole)))
        return (adjoint(to_x) if self.upper else to_x,)


class Eig(OnHost):
    """Eigenvalues and eigenvectors (columns) of square matrices, complex ones always."""

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        dtype = np.result_type(x.dtype, np.complex64)
        return Bundle((Spec(x.shape[:-1], dtype), Spec(x.shape, dtype)))

    def meaning(self, x):
        w, v = np.linalg.eig(x)
        dtype = np.result_type(x.dtype, np.complex64)
        return w.astype(dtype), v.astype(dtype)

    @conjugate
    def grad(self, node, g):
        """Source: Boeddeker et al. 2017, arXiv:1701.00392; right for what does not depend on the vectors' phases."""
        w, v = items(node)
        to_w, to_v = g
        apart = conj(expand_dims(w, -2) - expand_dims(w, -1))
        inner = matmul(adjoint(v), to_v)
        length = diagonal_matrices(real(diagonal(inner, axis1=-2, axis2=-1)))
        inner = (inner - matmul(matmul(adjoint(v), v), length)) * reciprocal_or_zero(apart)
        to_x = apply(Solve(), adjoint(v), matmul(inner + diagonal_matrices(to_w), adjoint(v)))
        return (to_x if node.operands[0].dtype.kind == "c" else real(to_x),)


# -- public functions -------------------------------------------------------------------------------------------------


@public
def qr(x: Any, complete: bool = False) -> tuple[Node, Node]:
    """Orthonormal columns q and upper triangular r of ``q @ r = x``; q has min(m, n) columns, or m if complete."""
    q, r = items(apply(Qr(complete), matrices(x)))
    return q, r


@public
def svd(x: Any, full_matrices: bool = True) -> tuple[Node, Node, Node]:
    """u, s, v of ``u @ diag(s) @ v = x``, as ``np.linalg.svd``; a gradient with ``full_matrices=False`` only."""
    u, s, v = items(apply(Svd(bool(full_matrices)), matrices(x)))
    return u, s, v


@public
def svdvals(x: Any) -> Node:
    """The singular values of matrices, falling."""
    return svd(x, full_matrices=False)[1]


@public
def eigh(x: Any, upper: bool = False) -> tuple[Node, Node]:
    """Rising eigenvalues and eigenvectors (columns) of Hermitian matrices, of which the lower triangle is read, or the
    upper one."""
    w, v = items(apply(Eigh(upper), matrices(x)))
    return w, v


@public
def eig(x: Any) -> tuple[Node, Node]:
    """Eigenvalues and eigenvectors (columns) of square matrices; complex, also where NumPy finds real ones alone."""
    w, v = items(apply(Eig(), matrices(x)))
    return w, v
