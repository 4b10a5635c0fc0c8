"""Gaussian elimination with row exchanges, and Cholesky's factorisation, of small matrices on the stack."""

from types import SimpleNamespace

from cgraph.kernels.control import NOT_POSITIVE, SINGULAR
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val
from cgraph.kernels.matrices.signature import MOST


def solve(k: Builder, dtype: str, inverts: bool) -> None:
    """Eliminate below each pivot, then substitute backwards. Task: one matrix."""
    a = k.args()
    first, last = k.tasks()
    left = k.stack_ptr(dtype, MOST * MOST)
    with k.loop(first, last) as task:
        right = a.out + task * a.n * a.columns
        copy(k, left, a.a + task * a.n * a.n, a.n * a.n)
        if inverts:
            fill_identity(k, right, a.n)
        else:
            copy(k, right, a.b + task * a.n * a.columns, a.n * a.columns)
        with k.loop(0, a.n) as j:
            pivot, _ = bring_pivot(k, left, a.n, j, [(left, a.n), (right, a.columns)])
            with k.if_(pivot == 0, likely=False):
                a.stop.store(SINGULAR)
            eliminate(k, left, a.n, j, pivot, [(left, a.n, j + 1), (right, a.columns, k.const(0, "i8"))])
        substitute(k, left, right, a)


def determinant(k: Builder, dtype: str) -> None:
    """Multiply the pivots of elimination; each exchange of rows changes the sign. Task: one matrix."""
    a = k.args()
    first, last = k.tasks()
    left = k.stack_ptr(dtype, MOST * MOST)
    with k.loop(first, last) as task:
        copy(k, left, a.a + task * a.n * a.n, a.n * a.n)
        product = k.slot(1, dtype)
        with k.loop(0, a.n) as j:
            pivot, is_exchanged = bring_pivot(k, left, a.n, j, [(left, a.n)])
            product.value = product.value * k.select(is_exchanged, -pivot, pivot)
            with k.if_(pivot != 0):
                eliminate(k, left, a.n, j, pivot, [(left, a.n, j + 1)])
        a.out.store(product.value, task)


def cholesky(k: Builder, dtype: str) -> None:
    """Compute the columns of the factor from left to right. Task: one matrix."""
    a = k.args()
    with k.task_loop() as task:
        x, out = a.a + task * a.n * a.n, a.out + task * a.n * a.n
        with k.loop(0, a.n * a.n) as i:
            out.store(k.const(0, dtype), i)
        with k.loop(0, a.n) as j:
            square = rest_of(k, x, out, a.n, j, j)
            with k.if_(square <= 0, likely=False):  # not for NaN, as NumPy
                a.stop.store(NOT_POSITIVE)
            root = k.intrinsic("sqrt", square)
            out.store(root, j * a.n + j)
            with k.loop(j + 1, a.n) as i:
                out.store(rest_of(k, x, out, a.n, i, j) / root, i * a.n + j)


def rest_of(k: Builder, x: Ptr, factor: Ptr, n: Val, i: Val, j: Val) -> Val:
    """Return ``x[i, j] - sum over m < j of factor[i, m] * factor[j, m]``."""
    rest = k.slot(x.load(i * n + j))
    with k.loop(0, j) as m:
        rest.value = rest.value - factor.load(i * n + m) * factor.load(j * n + m)
    return rest.value


def copy(k: Builder, out: Ptr, x: Ptr, count: Val) -> None:
    with k.loop(0, count) as i:
        out.store(x.load(i), i)


def fill_identity(k: Builder, out: Ptr, n: Val) -> None:
    with k.loop(0, n) as i, k.loop(0, n) as j:
        out.store(k.select(i == j, k.const(1, out.dtype), k.const(0, out.dtype)), i * n + j)


def bring_pivot(k: Builder, x: Ptr, n: Val, j: Val, exchanged: list[tuple[Ptr, Val]]) -> tuple[Val, Val]:
    """Exchange row j with the one that has the largest element below, in several matrices with their columns.

    Return that element, and whether rows were exchanged.
    """
    row, largest = k.slot(j), k.slot(magnitude(k, x.load(j * n + j)))
    with k.loop(j + 1, n) as i:
        size = magnitude(k, x.load(i * n + j))
        with k.if_(size > largest.value):
            largest.value = size
            row.value = i
    for matrix, columns in exchanged:
        with k.loop(0, columns) as c:
            upper, lower = matrix.load(j * columns + c), matrix.load(row.value * columns + c)
            matrix.store(lower, j * columns + c)
            matrix.store(upper, row.value * columns + c)
    return x.load(j * n + j), row.value != j


def magnitude(k: Builder, x: Val) -> Val:
    return k.intrinsic("fabs", x)


def eliminate(k: Builder, x: Ptr, n: Val, j: Val, pivot: Val, matrices: list[tuple[Ptr, Val, Val]]) -> None:
    """Subtract multiples of row j from the rows below, in several matrices from a column of each on."""
    with k.loop(j + 1, n) as i:
        factor = x.load(i * n + j) / pivot
        for matrix, columns, start in matrices:
            with k.loop(start, columns) as c:
                matrix.store(matrix.load(i * columns + c) - factor * matrix.load(j * columns + c), i * columns + c)


def substitute(k: Builder, left: Ptr, right: Ptr, a: SimpleNamespace) -> None:
    """Solve the triangular system, from the last row to the first."""
    with k.loop(0, a.n) as back, k.loop(0, a.columns) as c:
        i = a.n - 1 - back
        rest: MutableValue = k.slot(right.load(i * a.columns + c))
        with k.loop(i + 1, a.n) as m:
            rest.value = rest.value - left.load(i * a.n + m) * right.load(m * a.columns + c)
        right.store(rest.value / left.load(i * a.n + i), i * a.columns + c)
