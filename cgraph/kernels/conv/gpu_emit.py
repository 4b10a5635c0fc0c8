"""Convolution in blocks of threads: an implicit matrix product, filters by pixels.

Pixels of all images are the columns of the result; a table has the offsets of a pixel's taps. Neighbouring threads read
neighbouring pixels, so images need not be channel-blocked.
"""

from collections.abc import Callable
from types import SimpleNamespace

from cgraph.kernels.gemm.gpu_emit import sum_parts
from cgraph.kernels.gemm.gpu_signature import THREADS
from cgraph.kernels.gemm.gpu_tile import ProductTile, Side
from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val


@block(THREADS, resident=2)
def tile(k: GpuBuilder, dtype: str, lines: int, biased: bool, added: bool, cut: bool) -> None:
    a, t = k.args(), ProductTile(k, dtype, lines)
    panel, pixel, channel, *part = k.block_digits(*tiles_of(a, cut))
    pixel, channel = pixel * lines, channel * lines
    first, last = (part[0] * a.each, k.smaller((part[0] + 1) * a.each, a.steps)) if cut else (k.const(0, "i8"), a.steps)
    w, x = a.w + (panel * a.w_panel + channel), a.x + a.panel_offsets.load(panel)

    def filters(line: Val, step: Val) -> Callable[[Val], Ptr]:
        own = w + (line + step * a.channels)
        return lambda first: own + first * a.channels

    def taps(line: Val, step: Val) -> Callable[[Val], Ptr]:
        image, row, column = k.digits(pixel + line, a.rows, a.columns)
        own, table = x + (image * a.x_image + row * a.x_row + column * a.x_step), a.offsets + step
        return lambda first: own + k.cast(table.load(first), "i8")

    left, right = Side(t, "lines", filters, a.channels - channel), Side(t, "lines", taps, a.pixels - pixel)
    t.multiply(left, right, first, last)
    store(k, a, t, biased, added, cut)


def tiles_of(a: SimpleNamespace, cut: bool) -> list[Val]:
    """Return the divisors of a block's number."""
    return [a.pixel_tiles, a.channel_tiles, *([a.parts] if cut else [])]


def store(k: GpuBuilder, a: SimpleNamespace, t: ProductTile, biased: bool, added: bool, cut: bool) -> None:
    """Store a thread's results, with bias, residual and activation."""
    panel, pixel, channel, *part = k.block_digits(*tiles_of(a, cut), anew=True)
    pixel, channel, activated = pixel * t.lines, channel * t.lines, activation(k, t.dtype)
    totals, rows, columns = t.results()
    for j, place in enumerate(columns):
        with k.if_(pixel + place < a.pixels):
            put = result_at(k, a, pixel + place, part[0] * a.o_part if cut else 0, biased, added)
            for i, line in enumerate(rows):
                with k.if_(channel + line < a.channels):
                    put(panel * a.channels + channel + line, totals[i][j], activated)


def result_at(
    k: GpuBuilder, a: SimpleNamespace, pixel: Val, moved: Val | int, biased: bool, added: bool
) -> Callable[[Val, Val, Callable[[Val], Val]], None]:
    """Return a function that finishes a channel's sum at a pixel and stores it, `moved` elements on: ``put(channel,
    sum, activated)``.
    """
    image, row, column = k.digits(pixel, a.rows, a.columns)
    out = a.out + (image * a.o_image + row * a.o_row + column * a.o_step + moved)
    beside = a.residual + (image * a.r_image + row * a.r_row + column * a.r_step) if added else None

    def put(channel: Val, y: Val, activated: Callable[[Val], Val]) -> None:
        y = y + a.bias.load(channel) if biased else y
        y = y + beside.load(channel * a.r_plane) if beside is not None else y
        out.store(activated(y), channel * a.o_plane)

    return put


@block(THREADS)
def join(k: GpuBuilder, dtype: str, biased: bool, added: bool) -> None:
    a, at = k.args(), k.task()
    with k.if_(at < a.size):
        channel, pixel = k.digits(at, a.pixels)
        put = result_at(k, a, pixel, 0, biased, added)
        put(channel, sum_parts(k, a, at, dtype), activation(k, dtype))
