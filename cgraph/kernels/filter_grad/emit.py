"""The gradient of a convolution for its filters: sums over pixels, in registers for a tile of filter elements.

A vector is the result's gradient at one pixel, for neighbouring filters; it is multiplied by the pixels that the tile's
taps read there, one scalar for each tap and channel.
"""

from itertools import product
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pairs.emit import add_pairs
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.record import Record


class Tile(Record):
    """The params of `tile`.

    Fields
        dtype: of all values
        rows, taps, channels, vectors: filter rows, taps of a row, channels and blocks of filters of a tile
        x_step, tap_step: elements between the reads of a tap for neighbouring pixels, and between those of neighbouring
            taps
        is_plain: channels are planes, else adjacent
        pairs: images and gradients are pairs of bfloat16 numbers: those of two pixels that the same tap reads
    """

    dtype: str
    rows: int
    taps: int
    channels: int
    vectors: int
    x_step: int
    tap_step: int
    is_plain: bool
    pairs: bool = False


@final
def tile(k: Builder, *params) -> None:
    """Compute ``out[part, c, r, s] = sum over n, p, q of x[n, p, q + s, c] * g[n, p, q]``, vectors of filters.

    Task: one tile for the images of one part; the order of tasks is part, filters, channels, filter row, taps.
    """
    p = Tile(*params)
    a = k.args()
    lanes = k.target.lanes_of(p.dtype)
    with k.task_loop() as task:
        rest, tap = divmod_of(task, a.tap_tiles)
        rest, row = divmod_of(rest, a.row_tiles)
        rest, channel = divmod_of(rest, a.channel_tiles)
        part, block = divmod_of(rest, a.filter_tiles)
        x = a.x + (a.x_tiles.load(channel) + row * p.rows * a.tap_row + tap * (p.taps * p.tap_step))
        sums = sums_of(k, p, a, x, a.g + block * p.vectors * a.g_plane, part)
        at = channel * p.channels * a.o_channel + row * p.rows * a.o_row + tap * p.taps * a.o_tap
        out = a.out + (part * a.o_part + at + block * (p.vectors * lanes))
        for (r, c, s, v), total in zip(sum_indices(p), sums):
            (out + (a.o_channel * c + a.o_row * r + a.o_tap * s)).store(total, v * lanes)


def sum_indices(p: Tile) -> list[tuple[int, int, int, int]]:
    """(row, channel, tap, vector) of each sum."""
    return list(product(range(p.rows), range(p.channels), range(p.taps), range(p.vectors)))


def sums_of(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, g: Ptr, part: Val) -> list[Val]:
    """Return the sums of one tile over the pixels of a part's images, in order."""
    lanes = k.target.lanes_of(p.dtype)
    start = part * a.images
    zeros = [k.const(0, p.dtype, lanes)] * len(sum_indices(p))
    with fold(k, start, k.smaller(start + a.images, a.n), zeros) as images:
        with fold(k, 0, a.g_rows, images.values) as rows:
            source = x + (images.i * a.x_image + rows.i * a.x_row)
            gradient = g + (images.i * a.g_image + rows.i * a.g_row)
            with fold(k, 0, a.g_columns, rows.values) as s:
                s.next = multiply(k, p, a, source + s.i * p.x_step, gradient + s.i * lanes, s.values)
            rows.next = s.values
        images.next = rows.values
    return images.values


def multiply(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, g: Ptr, sums: list[Val]) -> list[Val]:
    """Return the sums with one more pixel."""
    lanes = k.target.lanes_of(p.dtype)
    if p.pairs:
        x, g = x.as_dtype(PAIRS), g.as_dtype(PAIRS)
    vectors = [(g + a.g_plane * v).load(0, lanes) for v in range(p.vectors)]
    products: list[Val] = []
    for r, c in product(range(p.rows), range(p.channels)):
        at = x + (a.tap_row * r + a.x_channel * c) if p.is_plain else x + a.tap_row * r + c
        for s in range(p.taps):
            pixel, some = at.load(s * p.tap_step), sums[len(products) : len(products) + p.vectors]
            if p.pairs:
                products += add_pairs(k, some, [pixel], vectors)
            else:
                spread = k.splat(pixel, lanes)
                products += [k.fma(spread, v, total) for v, total in zip(vectors, some)]
    return products
