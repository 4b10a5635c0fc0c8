"""Calls of products of matrices in blocks of threads."""

from math import prod

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.gemm.gpu_signature import DEPTH, JOIN, PRODUCT, THREADS
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.views.matrices import Matrices, Operand
from cgraph.record import Record
from cgraph.system.alignment import aligned

TILES = {4: (128, 64, 32), 8: (64, 32)}  # by itemsize: 8-byte sums of the largest tile would not fit into registers
BUSY = 128  # number of blocks that keeps a large GPU busy
LEAST_EACH = 256  # minimum products of a part of a sum


class Blocks(Record):
    """The division of a product into blocks; it depends only on the product's shape.

    Fields
        lines: rows and columns of a tile
        rows, columns: number of tiles down and across
        parts, each: number of parts of the sums, and products of each
    """

    lines: int
    rows: int
    columns: int
    parts: int
    each: int


def lines_of(dtype: str, count: int, m: int, n: int) -> int:
    """Return the largest tile that gives `BUSY` blocks and is more than half full, else the smallest."""
    *larger, least = TILES[int(dtype[1:])]
    fitting = (x for x in larger if min(m, n) > x // 2 and count * -(-m // x) * -(-n // x) >= BUSY)
    return next(fitting, least)


def blocks_of(dtype: str, count: int, m: int, n: int, k: int) -> Blocks:
    """Return the tiles of a product, with long sums cut into parts if there are few tiles."""
    lines = lines_of(dtype, count, m, n)
    rows, columns = -(-m // lines), -(-n // lines)
    parts = max(1, min(k // LEAST_EACH, BUSY // (count * rows * columns)))
    each = -(-k // (parts * DEPTH)) * DEPTH
    return Blocks(lines, rows, columns, -(-k // each), each)


def product_calls(
    x: Matrices, activation: BoundedActivation = NONE, adds: bool = False, workspace: View | None = None
) -> list[Call] | None:
    """Return calls of ``out = activation(a @ b + bias)``, ``k > 0``; with `adds` the product is added to `out`, in a
    bias's place.

    None for integers with a bias or an activation.
    """
    bias = x.out if adds else x.bias
    if x.dtype[0] != "f" and (bias is not None or activation != NONE):
        return None
    cut = blocks_of(x.dtype, x.count, x.m, x.n, x.k)
    if cut.parts == 1:
        return [product_call(x, cut, x.out, 0, bias, activation)]
    size = x.count * x.m * x.n
    parts = Operand(scratch_pointer(workspace, product_nbytes(x)), x.m * x.n, x.n, 1, x.out.dtype)
    join = JOIN.call(
        (x.dtype, bias is not None), -(-size // THREADS),
        m=x.m, n=x.n, size=size, parts=cut.parts, x=parts.at, **result(x.out, bias, activation),
    )  # fmt: skip
    return [product_call(x, cut, parts, size, None, NONE), join]


def product_nbytes(x: Matrices) -> int:
    """Return the bytes of workspace: the partial sums."""
    parts = blocks_of(x.dtype, x.count, x.m, x.n, x.k).parts
    return aligned(parts * prod((x.count, x.m, x.n)) * x.out.itemsize) if parts > 1 else 0


def product_call(
    x: Matrices, cut: Blocks, out: Operand, o_part: int, bias: Operand | None, activation: BoundedActivation
) -> Call:
    forms = ["k" if step == 1 else "lines" for step in (x.a.column, x.b.row)]
    return PRODUCT.call(
        (x.dtype, cut.lines, *forms, bias is not None), x.count * cut.rows * cut.columns * cut.parts,
        m=x.m, n=x.n, k=x.k, parts=cut.parts, each=cut.each, row_tiles=cut.rows, column_tiles=cut.columns,
        a=x.a.at, a_batch=x.a.batch, a_row=x.a.row, a_step=x.a.column,
        b=x.b.at, b_batch=x.b.batch, b_column=x.b.column, b_step=x.b.row,
        o_part=o_part, **result(out, bias, activation),
    )  # fmt: skip


def result(out: Operand, bias: Operand | None, activation: BoundedActivation) -> dict[str, int | float | Pointer]:
    """Return the arguments for the results' addresses and their epilogue; without a bias its place is not read."""
    b = bias or out
    return {
        "bias": b.at, "bias_batch": b.batch, "bias_row": b.row, "bias_column": b.column,
        "out": out.at, "o_batch": out.batch, "o_row": out.row, "o_column": out.column,
        **activation.args,
    }  # fmt: skip
