"""Depthwise convolution of channel-blocked bytes on processors with few registers that multiply halves of words.

A word is a pixel of four channels. Channels 0 and 2 are summed first, as numbers of 16 bits, then channels 1 and 3: so
the sums of several pixels and the factors of a row of the filter are in registers, and each word serves all taps that
read it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.conv8.emit import finish
from cgraph.kernels.conv8.halves_emit import put_channel, scale_of, start_of, vector_of
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import each_task, fold
from cgraph.kernels.llvm.halves import add_product, bytes_as_halves
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record


class Tile(Record):
    """The params of `rows`.

    Fields
        pixels: neighbouring pixels whose sums are in registers
        s: columns of a filter
        stride: pixels from one result to the next
        result, fixed, bounded, clips, joins, is_rows, joins_places: as in `cgraph.kernels.conv8.halves_emit.Tile`
    """

    pixels: int
    s: int
    stride: int
    result: str
    fixed: str
    bounded: bool
    clips: bool
    joins: str
    is_rows: bool
    joins_places: bool


@final
def rows(k: Builder, *params) -> None:
    """Emit the results. Task: one row of one block of an image; a last tile overlaps its neighbour."""
    p = Tile(*params)
    a = k.args()
    with each_tile(k, p, a) as at:
        one_tile(k, p, a, at)


@contextmanager
def each_tile(k: Builder, p: Tile, a: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """Yield block, inputs, filter, residual and results of each tile."""
    with each_task(k, a.blocks, a.rows) as (image, block, row):
        x = a.x + (image * a.x_image + block * a.x_plane + row * a.x_row)
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        residual = k.pointer(a.residual, "u1") + (image * a.r_image + block * a.r_plane + row * a.r_row)
        w = a.w + block * a.taps * (p.s * GROUP)
        with k.loop(0, a.columns, p.pixels) as start:
            column = k.smaller(start, a.columns - p.pixels)
            yield SimpleNamespace(
                block=block,
                x=x + column * (p.stride * GROUP),
                w=w,
                residual=residual + column * GROUP,
                out=out + column * a.o_step,
            )


def one_tile(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Store the results of neighbouring pixels of one block."""
    block, out = at.block, at.out
    starts = [start_of(k, p, a, block * GROUP + c) for c in range(GROUP)]
    sums: dict[int, list[Val]] = {}
    for odd in range(2):
        channels = (odd, odd + 2)
        totals = reduce_rows(k, p, a, at.x, at.w, [starts[c] for c in channels] * p.pixels, odd)
        for i, c in enumerate(channels):
            sums[c] = totals[i::2]
            if p.bounded:
                put_channel(k, p, a, sums[c], scale_of(k, p, a, block * GROUP + c), out + c)
    if not p.bounded:
        vectors = [vector_of(k, [sums[c][q] for c in range(GROUP)]) for q in range(p.pixels)]
        finish(k, p, a, vectors, at.residual, out, block)


def reduce_rows(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, w: Ptr, sums: list[Val], odd: int) -> list[Val]:
    """Return the sums ``[pixels][2]`` of channels 0 and 2, or 1 and 3."""
    with fold(k, 0, a.taps, [x, w, *sums]) as rows:
        x, w, *sums = rows.values
        factors = [bytes_as_halves(k, (w + j * GROUP).as_dtype("i4").load(align=1), odd, True) for j in range(p.s)]
        for at in range((p.pixels - 1) * p.stride + p.s):
            two = bytes_as_halves(k, (x + at * GROUP).as_dtype("i4").load(align=1), odd, False)
            for q in range(p.pixels):
                j = at - q * p.stride
                if 0 <= j < p.s:
                    for high in range(2):
                        sums[2 * q + high] = add_product(k, two, factors[j], sums[2 * q + high], high)
        rows.next = [x + a.tap_row, w + p.s * GROUP, *sums]
    return rows.values[2:]
