"""Matrix factorisations by LAPACK: QR, singular values, eigenvalues. They run as those of `cgraph.ops.linalg`."""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import NoGradientError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.kernels.lapack.calls import (
    MatrixJob,
    eig_job,
    eigh_job,
    qr_job,
    singular_values_job,
    svd_job,
    tall_svd_job,
)
from cgraph.ops.compare import equal, where
from cgraph.ops.complex import conj, real
from cgraph.ops.diagonal import diagonal, tril
from cgraph.ops.family import real_dtype
from cgraph.ops.linalg import (
    ByLapack,
    Solve,
    adjoint,
    check_matrices,
    conjugate,
    diagonal_matrices,
    lower_gradient,
    matrices,
)
from cgraph.ops.linear import matmul
from cgraph.ops.shape import expand_dims, items


class Qr(ByLapack):
    """Orthonormal columns q ``[..., m, k]`` and upper triangular r ``[..., k, n]`` with ``q @ r = x``.

    Fields
        complete: k is m, so q is square; otherwise k is min(m, n)
    """

    complete: bool = False

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x, square=False)
        *batch, m, n = x.shape
        k = m if self.complete else min(m, n)
        return Bundle((Spec((*batch, m, k), x.dtype), Spec((*batch, k, n), x.dtype)))

    def meaning(self, x):
        return tuple(np.linalg.qr(x, "complete" if self.complete else "reduced"))

    def job(self, *specs: Spec) -> MatrixJob:
        m, n = specs[0].shape[-2:]
        return qr_job(code_of(specs[0].dtype), specs[0].shape, m if self.complete else min(m, n))

    @conjugate
    def grad(self, node, g):
        """Source: Walter and Lehmann 2018, arXiv:1001.1654; for m >= n of full rank."""
        x = node.operands[0]
        if x.shape[-2] < x.shape[-1]:
            raise NoGradientError(
                f"qr at {node.where} of {x.spec} has more columns than rows, and no gradient; transpose the operand"
            )
        if self.complete and x.shape[-2] != x.shape[-1]:
            raise NoGradientError(
                f"qr at {node.where} of {x.spec} has no gradient with complete=True; pass complete=False"
            )
        q, r = items(node)
        to_q, to_r = g
        inner = matmul(r, adjoint(to_r)) - matmul(adjoint(to_q), q)
        both = tril(inner) + adjoint(tril(inner))
        symmetric = both - 0.5 * diagonal_matrices(diagonal(both, axis1=-2, axis2=-1))
        whole = to_q + matmul(q, symmetric)
        return (adjoint(apply(Solve(), r, adjoint(whole))),)


class Svd(ByLapack):
    """u, s, v with ``u @ diag(s) @ v = x``: orthonormal columns, descending singular values, orthonormal rows.

    Fields
        full: u and v are square; otherwise they have one column and row for each singular value
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

    def job(self, *specs: Spec) -> MatrixJob:
        return svd_job(code_of(specs[0].dtype), specs[0].shape, self.full)

    @conjugate
    def grad(self, node, g):
        """Return the gradient of the operand. Source: Townsend 2016, Differentiating the singular value
        decomposition.

        For complex matrices it is valid for functions that do not depend on the phases of the vectors, which LAPACK
        chooses.
        """
        x = node.operands[0]
        if self.full and x.shape[-1] != x.shape[-2]:
            raise NoGradientError(
                f"svd at {node.where} of {x.spec} has no gradient with full_matrices=True; pass full_matrices=False"
            )
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


class TallSvd(ByLapack):
    """s and v of `Svd` for matrices with more rows than columns, without computing u.

    With at least 11 rows to 6 columns LAPACK computes `Svd` from the same triangular factor, so the values are equal.
    """

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x, square=False)
        *batch, _, n = x.shape
        return Bundle((Spec((*batch, n), real_dtype(x.dtype)), Spec((*batch, n, n), x.dtype)))

    def meaning(self, x):
        return tuple(np.linalg.svd(x, full_matrices=False))[1:]

    def job(self, *specs: Spec) -> MatrixJob:
        return tall_svd_job(code_of(specs[0].dtype), specs[0].shape)


class SingularValues(ByLapack):
    """Only s of `Svd`, as NumPy computes it with ``compute_uv=False``."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x, square=False)
        return Spec((*x.shape[:-2], min(x.shape[-2:])), real_dtype(x.dtype))

    def meaning(self, x):
        return np.linalg.svd(x, compute_uv=False)

    def job(self, *specs: Spec) -> MatrixJob:
        return singular_values_job(code_of(specs[0].dtype), specs[0].shape)


def skew(u: Node, to_u: Node) -> Node:
    """Return ``u^H @ to_u`` minus its adjoint."""
    product = matmul(adjoint(u), to_u)
    return product - adjoint(product)


def outside(u: Node, to_u: Node) -> Node:
    """Return the part of `to_u` that is orthogonal to the columns of `u`."""
    return to_u - matmul(u, matmul(adjoint(u), to_u))


def reciprocal_or_zero(x: Node) -> Node:
    """Return 1 / x, and 0 where x is 0."""
    zero = equal(x, 0)
    return where(zero, 0, 1 / where(zero, 1, x))


class Eigh(ByLapack):
    """Ascending eigenvalues and eigenvectors (columns) of Hermitian matrices, reading only one triangle.

    The gradient is valid for functions that do not depend on the phases of complex vectors, which LAPACK chooses.

    Fields
        upper: read the upper triangle, else the lower
    """

    upper: bool = False

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        return Bundle((Spec(x.shape[:-1], real_dtype(x.dtype)), x))

    def meaning(self, x):
        return tuple(np.linalg.eigh(x, "U" if self.upper else "L"))

    def job(self, *specs: Spec) -> MatrixJob:
        return eigh_job(code_of(specs[0].dtype), specs[0].shape, self.upper)

    @conjugate
    def grad(self, node, g):
        w, v = items(node)
        to_w, to_v = g
        apart = reciprocal_or_zero(expand_dims(w, -2) - expand_dims(w, -1))
        inner = diagonal_matrices(to_w) + apart * matmul(adjoint(v), to_v)
        whole = matmul(v, matmul(inner, adjoint(v)))
        to_x = lower_gradient(0.5 * (whole + adjoint(whole)))
        return (adjoint(to_x) if self.upper else to_x,)


class Eig(ByLapack):
    """Eigenvalues and eigenvectors (columns) of square matrices, always complex."""

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        dtype = np.result_type(x.dtype, np.complex64)
        return Bundle((Spec(x.shape[:-1], dtype), Spec(x.shape, dtype)))

    def meaning(self, x):
        w, v = np.linalg.eig(x)
        dtype = np.result_type(x.dtype, np.complex64)
        return w.astype(dtype), v.astype(dtype)

    def job(self, *specs: Spec) -> MatrixJob:
        return eig_job(code_of(specs[0].dtype), specs[0].shape)

    @conjugate
    def grad(self, node, g):
        """Source: Boeddeker et al. 2017, arXiv:1701.00392. Valid for functions independent of the vectors' phases."""
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
    """Return orthonormal columns q and an upper triangular r with ``q @ r = x``.

    Parameters
        complete: q has m columns; otherwise min(m, n)
    """
    q, r = items(apply(Qr(complete), matrices(x)))
    return q, r


@public
def svd(x: Any, full_matrices: bool = True) -> tuple[Node, Node, Node]:
    """Return u, s, v with ``u @ diag(s) @ v = x``, as ``np.linalg.svd``. The gradient needs ``full_matrices=False``."""
    u, s, v = items(apply(Svd(bool(full_matrices)), matrices(x)))
    return u, s, v


@public
def svdvals(x: Any) -> Node:
    """Return the singular values of matrices, in descending order."""
    return svd(x, full_matrices=False)[1]


@public
def eigh(x: Any, upper: bool = False) -> tuple[Node, Node]:
    """Return ascending eigenvalues and eigenvectors (columns) of Hermitian matrices.

    Parameters
        upper: read the upper triangle only; otherwise the lower one
    """
    w, v = items(apply(Eigh(upper), matrices(x)))
    return w, v


@public
def eig(x: Any) -> tuple[Node, Node]:
    """Return eigenvalues and eigenvectors (columns) of square matrices; always complex, unlike NumPy's."""
    w, v = items(apply(Eig(), matrices(x)))
    return w, v
