"""Linear algebra by LAPACK: inverses, solutions, Cholesky factors, determinants. Leading axes are a batch.

Inverses, solutions, Cholesky factors and determinants of real matrices of up to 8 rows have kernels of their own. Other
matrices have kernels that call SciPy's LAPACK with one BLAS thread, so results have the same bits for any number of
threads. Empty ones, those of a GPU and all without SciPy's LAPACK are a Python call into NumPy. A singular or
indefinite matrix ends the run with NumPy's LinAlgError.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.lapack.calls import MatrixJob, cholesky_job, determinant_job, is_for_lapack, solve_job
from cgraph.kernels.matrices.calls import cholesky_calls, determinant_calls, solve_calls
from cgraph.kernels.matrices.signature import MOST
from cgraph.kernels.target import Target
from cgraph.ops.complex import complex, conj, imag
from cgraph.ops.diagonal import diagonal, tril
from cgraph.ops.family import common_dtype, real_dtype
from cgraph.ops.host import OnHost
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import leading_shape, matmul
from cgraph.ops.shape import broadcast_to, expand_dims, items, reshape, swapaxes


def check_matrices(x: Spec, square: bool = True) -> None:
    """Check that the operand is float or complex matrices. DTypeError or ShapeError otherwise."""
    if x.dtype.kind not in "fc":
        raise DTypeError(f"matrices of {x.dtype} are not supported; convert with astype to a float or complex dtype")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        matrices = "square matrices [..., n, n]" if square else "matrices [..., m, n]"
        raise ShapeError(f"shape {list(x.shape)} is not that of {matrices}; reshape the operand")


def matrix_transpose(x: Node) -> Node:
    """Transpose matrices."""
    return swapaxes(x, -1, -2)


def adjoint(x: Node) -> Node:
    """Return the conjugate transpose of matrices."""
    return conj(matrix_transpose(x))


def conjugate(grad: Callable) -> Callable:
    """Adapt a gradient formula with conjugate inner products, as most sources state it, to this library's convention.

    Such formulas have adjoint matrices where the convention of `cgraph.ops.complex` has transposes.
    """

    @wraps(grad)
    def adapted(op: Any, node: Node, g: Any) -> tuple[Node | None, ...]:
        seed = tuple(map(conj, g)) if isinstance(g, tuple) else conj(g)
        return tuple(None if x is None else conj(x) for x in grad(op, node, seed))

    return adapted


class ByLapack(OnHost):
    """Base of ops with kernels that call LAPACK."""

    def job(self, *specs: Spec) -> MatrixJob:
        """Return the computation."""
        raise NotImplementedError(f"{self.name} does not define job")

    def work(self, target: Target, *specs: Spec) -> Work:
        if not is_for_lapack(target, code_of(specs[0].dtype), *(x.shape for x in specs)):
            return super().work(target, *specs)
        job = self.job(*specs)

        def calls(out: Any, *xs: View, workspace: View | None = None) -> list[Call]:
            return job.calls((*(out if isinstance(out, tuple) else (out,)), *xs), workspace)

        return Work(calls, job.nbytes)


class SmallMatrices(ByLapack):
    """Base of ops with kernels for small real matrices; LAPACK computes the others."""

    def is_small(self, x: Spec) -> bool:
        """Return True if there is a kernel for matrices of this spec."""
        return x.dtype.kind == "f" and 0 < x.shape[-1] <= MOST and x.size > 0

    def small_calls(self, out: View, *xs: View) -> list[Call]:
        """Return the kernel calls."""
        raise NotImplementedError(f"{self.name} does not define small_calls")

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.small_calls) if self.is_small(specs[0]) else super().work(target, *specs)


class Inv(SmallMatrices):
    """The inverse of matrices."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return x

    def meaning(self, x):
        return np.linalg.inv(x)

    def small_calls(self, out: View, *xs: View) -> list[Call]:
        return solve_calls(out, *xs)

    def job(self, *specs: Spec) -> MatrixJob:
        return solve_job(code_of(specs[0].dtype), specs[0].shape)

    def grad(self, node, g):
        return (-matmul(matrix_transpose(node), matmul(g, matrix_transpose(node))),)


class Solve(SmallMatrices):
    """The solution x of ``a @ x = b``.

    Operands
        a: ``[..., n, n]``
        b: ``[..., n, k]``
    """

    def infer(self, a: Spec, b: Spec) -> Spec:
        check_matrices(a)
        check_matrices(b, square=False)
        if a.dtype != b.dtype or a.shape[:-1] != b.shape[:-1]:
            raise ShapeError(
                f"a {a} and b {b} differ in rows, leading axes or dtype; pass a [..., n, n] and b [..., n, k]"
            )
        return b

    def meaning(self, a, b):
        return np.linalg.solve(a, b)

    def small_calls(self, out: View, *xs: View) -> list[Call]:
        return solve_calls(out, *xs)

    def job(self, *specs: Spec) -> MatrixJob:
        return solve_job(code_of(specs[0].dtype), specs[0].shape, specs[1].shape[-1])

    def grad(self, node, g):
        to_b = apply(self, matrix_transpose(node.operands[0]), g)
        return -matmul(to_b, matrix_transpose(node)), to_b


class Cholesky(SmallMatrices):
    """The lower triangular l with ``l @ l.T = x``, for positive definite x; only the lower triangle of x is read."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return x

    def meaning(self, x):
        return np.linalg.cholesky(x)

    def small_calls(self, out: View, *xs: View) -> list[Call]:
        return cholesky_calls(out, *xs)

    def job(self, *specs: Spec) -> MatrixJob:
        return cholesky_job(code_of(specs[0].dtype), specs[0].shape)

    @conjugate
    def grad(self, node, g):
        inner = tril(matmul(adjoint(node), g))
        inner = inner - 0.5 * diagonal_matrices(diagonal(inner, axis1=-2, axis2=-1))
        inverse = apply(Inv(), node)
        return (lower_gradient(matmul(adjoint(inverse), matmul(inner, inverse))),)


def lower_gradient(g: Node) -> Node:
    """Return the gradient of a symmetric matrix of which only the lower triangle is read."""
    both = g + adjoint(g)
    return tril(both) - 0.5 * diagonal_matrices(diagonal(both, axis1=-2, axis2=-1))


def diagonal_matrices(x: Node) -> Node:
    """Return matrices with vectors on their diagonals."""
    unit = np.eye(x.shape[-1], dtype=x.dtype)
    return expand_dims(x, -1) * unit


class Det(SmallMatrices):
    """The determinant of matrices."""

    def infer(self, x: Spec) -> Spec:
        check_matrices(x)
        return Spec(x.shape[:-2], x.dtype)

    def meaning(self, x):
        return np.linalg.det(x)

    def small_calls(self, out: View, *xs: View) -> list[Call]:
        return determinant_calls(out, *xs)

    def job(self, *specs: Spec) -> MatrixJob:
        return determinant_job(code_of(specs[0].dtype), specs[0].shape, parted=False)

    def grad(self, node, g):
        inverse = matrix_transpose(apply(Inv(), node.operands[0]))
        return (reshape(g * node, (*node.shape, 1, 1)) * inverse,)


class Slogdet(ByLapack):
    """The sign of the determinant of matrices, and the logarithm of its absolute value."""

    def infer(self, x: Spec) -> Bundle:
        check_matrices(x)
        return Bundle((Spec(x.shape[:-2], x.dtype), Spec(x.shape[:-2], real_dtype(x.dtype))))

    def meaning(self, x):
        return tuple(np.linalg.slogdet(x))

    def job(self, *specs: Spec) -> MatrixJob:
        return determinant_job(code_of(specs[0].dtype), specs[0].shape, parted=True)

    def grad(self, node, g):
        inverse = matrix_transpose(apply(Inv(), node.operands[0]))
        to_log = g[1]
        if inverse.dtype.kind == "c":
            to_log = complex(to_log, imag(g[0] * items(node)[0]))
        return (reshape(to_log, (*to_log.shape, 1, 1)) * inverse,)


# -- public functions -------------------------------------------------------------------------------------------------


def matrices(x: Any) -> Node:
    """Convert the operand to a float or complex dtype."""
    x = as_node(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


@public
def inv(x: Any) -> Node:
    """Return the inverse of matrices ``[..., n, n]``."""
    return apply(Inv(), matrices(x))


@public
def solve(a: Any, b: Any) -> Node:
    """Return the solution x of ``a @ x = b``; `b` is one vector ``[n]`` or matrices ``[..., n, k]``."""
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
    """Return the lower triangular Cholesky factor of positive definite matrices, reading their lower triangle."""
    return apply(Cholesky(), matrices(x))


@public
def det(x: Any) -> Node:
    """Return the determinant of matrices."""
    return apply(Det(), matrices(x))


@public
def slogdet(x: Any) -> tuple[Node, Node]:
    """Return the sign of the determinant of matrices, and the logarithm of its absolute value."""
    sign, log = items(apply(Slogdet(), matrices(x)))
    return sign, log


@public
def logdet(x: Any) -> Node:
    """Return the logarithm of the absolute value of the determinant of matrices."""
    return slogdet(x)[1]
