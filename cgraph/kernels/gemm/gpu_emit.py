"""Matrix products in blocks of threads: each block computes a tile of the result, or a part of the sums of long
ones.
"""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.gemm.gpu_signature import THREADS
from cgraph.kernels.gemm.gpu_tile import ACCESS, ProductTile, Side
from cgraph.kernels.llvm.build import INDEX
from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of


@block(THREADS, resident=2)
def product(k: GpuBuilder, dtype: str, lines: int, a_form: str, b_form: str, biased: bool) -> None:
    a, tile = k.args(), ProductTile(k, dtype, lines)
    batch, row, column, part = k.block_digits(a.row_tiles, a.column_tiles, a.parts)
    row, column = row * lines, column * lines
    left = matrix_side(tile, a_form, a.a + batch * a.a_batch + row * a.a_row, a.a_row, a.a_step, a.m - row)
    right = matrix_side(tile, b_form, a.b + batch * a.b_batch + column * a.b_column, a.b_column, a.b_step, a.n - column)
    low = part * a.each
    tile.multiply(left, right, low, k.smaller(low + a.each, a.k))
    store(k, a, tile, biased)


def matrix_side(tile: ProductTile, form: str, start: Ptr, line_step: Val, step: Val, count: Val) -> Side:
    """Return one side of a product, a matrix; `start` is the block's first line."""

    def along(depth: Val) -> Val:
        return depth if form == "k" else depth * step

    def at(line: Val, depth: Val) -> Callable[[Val], Ptr]:
        own = start + (line * line_step + along(depth))
        return lambda first: own + along(first)

    return Side(tile, form, at, count)


def store(k: GpuBuilder, a: SimpleNamespace, tile: ProductTile, biased: bool) -> None:
    """Store a thread's results, neighbouring ones in one access if they are contiguous."""
    batch, row, column, part = k.block_digits(a.row_tiles, a.column_tiles, a.parts, anew=True)
    row, column = row * tile.lines, column * tile.lines
    out = a.out + (part * a.o_part + batch * a.o_batch + row * a.o_row + column * a.o_column)
    bias = a.bias + (batch * a.bias_batch + row * a.bias_row + column * a.bias_column)
    places = k.wrap(k.b.ptrtoint(out.v, INDEX), "i8") | a.o_row * nbytes_of(tile.dtype)
    fits = (a.o_column == 1) & (places % ACCESS == 0) & (column + tile.lines <= a.n)
    finished, wide = activation_of(k, tile.dtype), tile.align // nbytes_of(tile.dtype)
    totals, rows, columns = tile.results()
    for sums, down in zip(totals, rows):
        with k.if_(down < a.m - row):
            here, beside = out + down * a.o_row, bias + down * a.bias_row

            def value(j: int, sums: list[Val] = sums, beside: Ptr = beside) -> Val:
                return finished(sums[j] + beside.load(columns[j] * a.bias_column) if biased else sums[j])

            with k.if_else(fits) as (whole, rest):
                with whole:
                    for j in range(0, tile.each, wide):
                        here.store(k.vector([value(j + n) for n in range(wide)]), columns[j], align=tile.align)
                with rest:
                    for j, across in enumerate(columns):
                        with k.if_(across < a.n - column):
                            here.store(value(j), across * a.o_column)


@block(THREADS)
def join(k: GpuBuilder, dtype: str, biased: bool) -> None:
    a, at = k.args(), k.task()
    with k.if_(at < a.size):
        rest, column = divmod_of(at, a.n)
        batch, row = divmod_of(rest, a.m)
        x = sum_parts(k, a, at, dtype)
        if biased:
            x = x + a.bias.load(batch * a.bias_batch + row * a.bias_row + column * a.bias_column)
        a.out.store(activation_of(k, dtype)(x), batch * a.o_batch + row * a.o_row + column * a.o_column)


def sum_parts(k: GpuBuilder, a: SimpleNamespace, at: Val, dtype: str) -> Val:
    """Add up the parts of a sum, `size` elements apart, in order."""
    total = k.slot(0, dtype)
    with k.loop(0, a.parts) as part:
        total.value = total.value + a.x.load(part * a.size + at)
    return total.value


def activation_of(k: GpuBuilder, dtype: str) -> Callable[[Val], Val]:
    """Return the activation of a result; integers stay unchanged."""
    return activation(k, dtype) if dtype[0] == "f" else lambda x: x
