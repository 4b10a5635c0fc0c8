"""Products of matrices in blocks of threads: a tile of the result for each, and the sums of parts of long ones."""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Ptr, Val, nbytes_of
from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.flow import divided
from cgraph.kernels.llvm.gpu.tile import ACCESS, Side, Tile
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.signatures.gpu.gemm import THREADS


@block(THREADS, resident=2)
def product(k: GpuBuilder, dtype: str, lines: int, a_form: str, b_form: str, biased: bool) -> None:
    a, tile = k.args(), Tile(k, dtype, lines)
    batch, row, column, part = k.block_digits(a.row_tiles, a.column_tiles, a.parts)
    row, column = row * lines, column * lines
    left = strided(tile, a_form, a.a + batch * a.a_batch + row * a.a_row, a.a_row, a.a_step, a.m - row)
    right = strided(tile, b_form, a.b + batch * a.b_batch + column * a.b_column, a.b_column, a.b_step, a.n - column)
    low = part * a.each
    totals = tile.multiply(left, right, low, k.smaller(low + a.each, a.k))
    out = a.out + part * a.o_part + batch * a.o_batch + row * a.o_row + column * a.o_column
    bias = a.bias + batch * a.bias_batch + row * a.bias_row + column * a.bias_column if biased else None
    store(tile, totals, a, out, bias, a.m - row, a.n - column)


def strided(tile: Tile, form: str, start: Ptr, line_step: Val, step: Val, count: Val) -> Side:
    """A matrix: `start` is the block's first line."""

    def along(depth: Val) -> Val:
        return depth if form == "k" else depth * step

    def at(line: Val, depth: Val) -> Callable[[Val], Ptr]:
        own = start + (line * line_step + along(depth))
        return lambda first: own + along(first)

    return Side(tile, form, at, count)


def store(
    tile: Tile, totals: list[list[Val]], a: SimpleNamespace, out: Ptr, bias: Ptr | None, rows: Val, columns: Val
) -> None:
    """A thread's results, in neighbouring ones where memory has them side by side; `rows` and `columns` are there."""
    k, wide = tile.k, tile.align // nbytes_of(tile.dtype)
    address = k.wrap(k.b.ptrtoint(out.v, k.const(0, "i8").v.type), "i8")
    row_nbytes, activated = a.o_row * nbytes_of(tile.dtype), activation(k, tile.dtype)
    fits = (a.o_column == 1) & ((address | row_nbytes) % ACCESS == 0) & (columns >= tile.lines)
    for i, sums in enumerate(totals):
        row = tile.line(tile.row, i)
        with k.if_(row < rows):
            places = [tile.line(tile.column, j) for j in range(tile.each)]

            def value(j: int, row: Val = row, sums: list[Val] = sums, places: list[Val] = places) -> Val:
                x = sums[j]
                if bias is not None:
                    x = x + (bias + row * a.bias_row + places[j] * a.bias_column).load()
                return activated(x)

            with k.if_else(fits) as (whole, rest):
                with whole:
                    for j in range(0, tile.each, wide):
                        vector = k.vector([value(j + n) for n in range(wide)])
                        (out + row * a.o_row + places[j]).store(vector, align=tile.align)
                with rest:
                    for j, place in enumerate(places):
                        with k.if_(place < columns):
                            (out + row * a.o_row + place * a.o_column).store(value(j))


@block(THREADS)
def join(k: GpuBuilder, dtype: str, biased: bool) -> None:
    a, at = k.args(), k.task()
    with k.if_(at < a.size):
        total = k.slot(0.0, dtype)
        with k.loop(0, a.parts) as part:
            total.value = total.value + a.x.load(part * a.size + at)
        rest, column = divided(at, a.n)
        batch, row = divided(rest, a.m)
        x = total.value
        if biased:
            x = x + a.bias.load(batch * a.bias_batch + row * a.bias_row + column * a.bias_column)
        a.out.store(activation(k, dtype)(x), batch * a.o_batch + row * a.o_row + column * a.o_column)
