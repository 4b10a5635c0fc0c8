"""Calls on batches of small matrices."""

from math import prod

from cgraph.kernels.kernel import STOP, Call, Pointer, View
from cgraph.kernels.matrices.signature import CHOLESKY, DETERMINANT, SOLVE

CHUNK_ELEMENTS = 256  # of a thread's share, at least


def solve_calls(out: View, a: View, b: View | None = None) -> list[Call]:
    """Return the calls of ``out = solve(a, b)``; without `b`, of the inverse. A zero pivot ends the run."""
    n, columns = out.shape[-2:]
    right = a if b is None else b
    params, args = (out.dtype, b is None), {"n": n, "columns": columns, "stop": Pointer(STOP)}
    return [SOLVE.call(params, *tasks(a), a=a.at, b=right.at, out=out.at, **args)]


def determinant_calls(out: View, a: View) -> list[Call]:
    """Return the calls of ``out = det(a)``."""
    return [DETERMINANT.call((out.dtype,), *tasks(a), a=a.at, out=out.at, n=a.shape[-1])]


def cholesky_calls(out: View, a: View) -> list[Call]:
    """Return the calls of ``out = cholesky(a)``. A pivot that is not positive ends the run."""
    return [CHOLESKY.call((out.dtype,), *tasks(a), a=a.at, out=out.at, n=a.shape[-1], stop=Pointer(STOP))]


def tasks(a: View) -> tuple[int, int]:
    """Return the number of matrices, and how many a thread takes at a time."""
    return prod(a.shape[:-2]), max(1, CHUNK_ELEMENTS // a.shape[-1] ** 2)
