"""Convolution in blocks of threads: an implicit product of matrices, filters by pixels.

Pixels of all images are the columns of the result; a table says where the taps of a pixel lie. Neighbouring threads
read neighbouring pixels, so images need not lie with their channels side by side.
"""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.gpu.tile import Side, Tile
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.signatures.gpu.gemm import THREADS


@block(THREADS, resident=2)
def tile(k: GpuBuilder, dtype: str, lines: int, biased: bool, added: bool) -> None:
    a, t = k.args(), Tile(k, dtype, lines)
    panel, pixel, channel = k.block_digits(a.pixel_tiles, a.channel_tiles)
    pixel, channel = pixel * lines, channel * lines
    w, x = a.w + (panel * a.w_panel + channel), a.x + a.panel_offsets.load(panel)

    def filters(line: Val, step: Val) -> Callable[[Val], Ptr]:
        own = w + (line + step * a.channels)
        return lambda first: own + first * a.channels

    def taps(line: Val, step: Val) -> Callable[[Val], Ptr]:
        image, row, column = k.digits(pixel + line, a.rows, a.columns)
        own, table = x + (image * a.x_image + row * a.x_row + column * a.x_step), a.offsets + step
        return lambda first: own + k.cast(table.load(first), "i8")

    left, right = Side(t, "lines", filters, a.channels - channel), Side(t, "lines", taps, a.pixels - pixel)
    t.multiply(left, right, k.const(0, "i8"), a.steps)
    store(k, a, t, biased, added)


def store(k: GpuBuilder, a: SimpleNamespace, t: Tile, biased: bool, added: bool) -> None:
    """A thread's results, with bias, residual and activation."""
    panel, pixel, channel = k.block_digits(a.pixel_tiles, a.channel_tiles, anew=True)
    pixel, channel, activated = pixel * t.lines, channel * t.lines, activation(k, t.dtype)
    totals, rows, columns = t.results()
    for j, place in enumerate(columns):
        with k.if_(pixel + place < a.pixels):
            image, row, column = k.digits(pixel + place, a.rows, a.columns)
            out = a.out + (image * a.o_image + row * a.o_row + column * a.o_step)
            beside = a.residual + (image * a.r_image + row * a.r_row + column * a.r_step) if added else None
            for i, line in enumerate(rows):
                with k.if_(channel + line < a.channels):
                    at = panel * a.channels + channel + line
                    y = totals[i][j] + a.bias.load(at) if biased else totals[i][j]
                    y = y + beside.load(at * a.r_plane) if beside is not None else y
                    out.store(activated(y), at * a.o_plane)
