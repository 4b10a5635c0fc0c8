"""Calls of products of a matrix and a vector that are read in place: dot products of rows, or a sum of rows.

A long sum is computed in parts, which several threads share. Their number follows from its length alone, so the bits
depend neither on the number of threads nor on how the other side is divided.
"""

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.expression import Trace
from cgraph.kernels.gemm import gemv_signature
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, scratch_pointer
from cgraph.kernels.reduce.calls import reduce_calls
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
PART, MOST_PARTS = 1024, 16  # least terms of a part


def is_dot(x: Matrices) -> bool:
    return x.n == 1 and x.a.column == 1 and x.b.row == 1


def is_vector(x: Matrices) -> bool:
    """Return True for a product of a matrix and a vector that these kernels read in place."""
    return is_dot(x) or (x.m == 1 and x.b.column == 1)


def vector_calls(x: Matrices, activation: BoundedActivation, workspace: View | None, target: Target) -> list[Call]:
    """Return one call, or those of the parts of a long sum and of the sum of their results."""
    product_call = dot_call if is_dot(x) else row_call
    if parts_of(x) == 1 or activation != NONE:
        return [product_call(x, activation, target)]
    partials = contiguous(scratch_pointer(workspace, vector_nbytes(x)), (count_of(x), x.m * x.n), x.dtype)
    calls = [product_call(part, NONE, target) for part in parts(x, partials)]
    step = x.out.itemsize * (x.out.row if x.n == 1 else x.out.column)
    m = Trace()
    program = m.program(m.load(0, x.dtype))
    out = View(x.out.at, (x.m * x.n,), (step,), x.dtype)
    return calls + reduce_calls(target, "sum", program, out, partials, axes=(0,), whole=True)


def parts_of(x: Matrices) -> int:
    """Return the number of equal parts of a product's sums; 1 for short ones, several products, or with a bias."""
    return min(MOST_PARTS, x.k // PART) if x.k >= LONG and x.count == 1 and not x.bias else 1


def count_of(x: Matrices) -> int:
    """Return the number of partial results: one more if the equal parts leave terms."""
    return parts_of(x) + (x.k % parts_of(x) > 0)


def vector_nbytes(x: Matrices) -> int:
    """Return the bytes of the partial results."""
    return count_of(x) * x.m * x.n * x.out.itemsize if parts_of(x) > 1 else 0


def parts(x: Matrices, partials: View) -> list[Matrices]:
    """Return the products whose results are `partials`: the equal parts as one batch, and the terms that are left."""
    count, size = parts_of(x), x.m * x.n
    each = x.k // count
    a, b = (replace(y, batch=each * step) for y, step in ((x.a, x.a.column), (x.b, x.b.row)))
    out = Operand(partials.at, size, 1 if x.n == 1 else size, 1, x.dtype)
    equal = replace(x, count=count, k=each, a=a, b=b, out=out)
    if count == count_of(x):
        return [equal]
    used = each * count
    rest = replace(x, k=x.k - used, a=x.a.moved(0, 0, used), b=x.b.moved(0, used, 0), out=out.moved(count))
    return [equal, rest]


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
