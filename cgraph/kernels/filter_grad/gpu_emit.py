"""The gradient of a convolution for its filters in blocks of threads: gradients of all filters by taps of all
channels.

The sums run over the pixels of one image after the other; tables have the pixels' offsets.
"""

from collections.abc import Callable

from cgraph.kernels.gemm.gpu_signature import THREADS
from cgraph.kernels.gemm.gpu_tile import ProductTile, Side
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val


@block(THREADS)
def tile(k: GpuBuilder, dtype: str, lines: int) -> None:
    a, t = k.args(), ProductTile(k, dtype, lines)
    part, row, column = k.block_digits(a.row_tiles, a.column_tiles)
    row, column = row * lines, column * lines
    first = part * a.images
    with k.loop(first, k.smaller(first + a.images, a.n)) as image:
        g, x = a.g + (image * a.g_image + row * a.g_plane), a.x + image * a.x_image
        gradients = Side(t, "k", pixels(g, lambda line: line * a.g_plane, a.g_pixels), a.k - row)
        images = Side(t, "k", pixels(x, lambda line: a.x_taps.load(column + line), a.x_pixels), a.size - column)
        t.multiply(gradients, images, k.const(0, "i8"), a.pixels)
        k.barrier()
    part, row, column = k.block_digits(a.row_tiles, a.column_tiles, anew=True)
    row, column, (totals, lines_down, lines_across) = row * lines, column * lines, t.results()
    out = a.out + part * a.o_part
    for j, across in enumerate(lines_across):
        with k.if_(column + across < a.size):
            for i, down in enumerate(lines_down):
                with k.if_(row + down < a.k):
                    out.store(totals[i][j], (column + across) * a.k + row + down)


def pixels(image: Ptr, start: Callable[[Val], Val], table: Ptr) -> Callable[[Val, Val], Callable[[Val], Ptr]]:
    """Return the pixels of an image's lines; `start`: elements to the first one."""

    def at(line: Val, pixel: Val) -> Callable[[Val], Ptr]:
        own, places = image + start(line), table + pixel
        return lambda first: own + table.k.cast(places.load(first), "i8")

    return at
