"""Calls of products of a matrix and a vector that are read in place: dot products of rows, or a sum of rows.

A long sum is computed in parts, which several threads share. Their number depends only on its length, so the bits
depend neither on the number of threads nor on how the other side is divided.
"""

import numpy as np

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.gemm import gemv_signature
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.target import Target
from cgraph.kernels.views.gemm_tile import evenly
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.matrices import Matrices, Operand
from cgraph.record import replace

DOT_ROWS = 4
BYTE_NS = 0.025  # about the time of reading a byte from memory, which is what few rows wait for
ROW_UNROLL = 8  # rows of b read at a time
ROW_WIDTH = 512  # columns of a task, twice that when there are many
LONG = 8192  # terms from which on a sum has parts
PART, MOST_PARTS = 1024, 16  # least terms of a part, and most parts


def is_dot(x: Matrices) -> bool:
    return x.n == 1 and x.a.column == 1 and x.b.row == 1


def is_vector(x: Matrices) -> bool:
    """Return True for a product of a matrix and a vector that these kernels read in place."""
    return is_dot(x) or (x.m == 1 and x.b.column == 1)


def vector_calls(x: Matrices, activation: BoundedActivation, workspace: View | None, target: Target) -> list[Call]:
    """Return one call, or those of the parts of a long sum and of the sum of their results."""
    product_call = dot_call if is_dot(x) else row_call
    if parts_of(x.k) == 1:
        return [product_call(x, activation, target)]
    *parts, joined = long_sum(x, scratch_pointer(workspace, vector_nbytes(x)))
    return [*(product_call(part, NONE, target) for part in parts), product_call(joined, activation, target)]


def vector_nbytes(x: Matrices) -> int:
    """Return the bytes of the results of all parts."""
    return 0 if parts_of(x.k) == 1 else x.count * x.m * x.n * results_of(x.k) * x.out.itemsize


def parts_of(k: int) -> int:
    """Return the number of equal parts of a sum of `k` products."""
    return min(MOST_PARTS, k // PART) if k >= LONG else 1


def results_of(k: int) -> int:
    """Return the number of results that are added: one more than equal parts if these leave terms."""
    return parts_of(k) + (k % parts_of(k) > 0)


def long_sum(x: Matrices, at: Pointer) -> list[Matrices]:
    """Return the products of the parts, with results at `at`, and the product of these with ones.

    The results of a column lie next to each other, those of a row below each other, as the same kernel reads them.
    """
    parts, results, size = parts_of(x.k), results_of(x.k), x.m * x.n
    part, row = (1, results) if is_dot(x) else (size, size)  # elements to the next part, and to the next row
    sums = Operand(at, size * results, row, 1, x.dtype)
    each, used = x.k // parts, x.k - x.k % parts
    equal = replace(x, k=each, out=sums, bias=None)
    if x.count > parts:
        products = [moved(equal, i * each, i * part) for i in range(parts)]
    else:
        products = [as_batch(equal, i, parts, part) for i in range(x.count)]
    if used < x.k:
        products.append(moved(replace(equal, k=x.k - used), used, parts * part))
    ones = Operand(Pointer(np.ones(results, x.dtype)), 0, 1, 1, x.dtype)
    a, b = (sums, ones) if is_dot(x) else (ones, sums)
    return [*products, replace(x, k=results, a=a, b=b)]


def as_batch(x: Matrices, i: int, parts: int, part: int) -> Matrices:
    """Return the parts of product `i`, each of `x.k` terms, with results `part` elements apart."""
    steps = (x.k * x.a.column, x.k * x.b.row, part)
    a, b, out = (replace(y.moved(i), batch=step) for y, step in zip((x.a, x.b, x.out), steps))
    return replace(x, count=parts, a=a, b=b, out=out)


def moved(x: Matrices, k: int, elements: int) -> Matrices:
    """Return the products of the terms from `k` on, whose results begin some elements later."""
    out = replace(x.out, at=x.out.at + elements * x.out.itemsize)
    return replace(x, a=x.a.moved(0, 0, k), b=x.b.moved(0, k), out=out)


def bias_args(bias: Operand | None) -> dict[str, int | Pointer | None]:
    return {
        "bias": bias.at if bias else None,
        "bias_batch": bias.batch if bias else 0,
        "bias_row": bias.row if bias else 0,
    }


def dot_call(x: Matrices, activation: BoundedActivation, target: Target) -> Call:
    panels = -(-x.m // DOT_ROWS)
    tasks = x.count * panels
    nanoseconds = DOT_ROWS * x.k * x.a.itemsize * BYTE_NS
    return gemv_signature.DOT.call(
        (x.dtype, DOT_ROWS), tasks, chunk_of(tasks, nanoseconds),
        m=x.m, k=x.k, a=x.a.at, a_batch=x.a.batch, a_row=x.a.row, b=x.b.at, b_batch=x.b.batch,
        **bias_args(x.bias), out=x.out.at, o_batch=x.out.batch, o_row=x.out.row, row_panels=panels,
        **activation.args,
    )  # fmt: skip


def row_call(x: Matrices, activation: BoundedActivation, target: Target) -> Call:
    width = evenly(x.n, ROW_WIDTH if x.n < 8 * ROW_WIDTH else 2 * ROW_WIDTH, target.lanes_of(x.dtype))
    panels = -(-x.n // width)
    tasks = x.count * panels
    nanoseconds = width * x.k * x.b.itemsize * BYTE_NS
    return gemv_signature.ROW.call(
        (x.dtype, ROW_UNROLL), tasks, chunk_of(tasks, nanoseconds),
        n=x.n, k=x.k, a=x.a.at, a_batch=x.a.batch, a_step=x.a.column, b=x.b.at, b_batch=x.b.batch, b_step=x.b.row,
        bias=x.bias.at if x.bias else None, bias_batch=x.bias.batch if x.bias else 0,
        out=x.out.at, o_batch=x.out.batch, width=width, panels=panels, **activation.args,
    )  # fmt: skip
