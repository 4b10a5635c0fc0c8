"""Depthwise convolution on channel-blocked images: one filter for each channel; a vector is the channels of a block.

Usually bound by memory. Small filters and rows of up to seven taps are unrolled, so that a column of the image is
loaded once for all pixels that read it; others loop over their taps.
"""

from functools import partial
from types import SimpleNamespace

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import banded_rows, divmod_of, fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record


class Tile(Record):
    """The params of `small`.

    Fields
        r, s: rows and columns of a filter
        dilation: pixels from one tap to the next
        dtype, weights_dtype, pixels, stride, program: as of a `Line`
    """

    dtype: str
    weights_dtype: str
    pixels: int
    r: int
    s: int
    stride: int
    dilation: int
    program: Program


@final
def small(k: Builder, *params) -> None:
    """Emit filters of r x s taps. Task: one row of one block of an image, by bands; last tiles overlap their
    neighbours.
    """
    p = Tile(*params)

    def sums(a: SimpleNamespace, x: Ptr, weights: list[Val], bias: Val) -> list[Val]:
        totals = [bias] * p.pixels
        for i in range(p.r):
            totals = add_line(x + a.tap_row * i, weights[i * p.s : (i + 1) * p.s], totals, p.stride, p.dilation)
        return totals

    each_tile(k, Line(p.dtype, p.weights_dtype, p.pixels, p.stride, p.program), p.r * p.s, sums)


@final
def lines(
    k: Builder, dtype: str, weights_dtype: str, pixels: int, s: int, stride: int, dilation: int, program: Program
) -> None:
    """Emit filters of any number of rows of s taps, whose weights are loaded for each tile. Task: as in `small`."""
    lanes = k.target.lanes_of(weights_dtype)

    def sums(a: SimpleNamespace, x: Ptr, w: Ptr, bias: Val) -> list[Val]:
        with fold(k, 0, a.kernel_rows, [x, w, *([bias] * pixels)]) as rows:
            x, w, *totals = rows.values
            weights = [w.load(j * lanes, lanes) for j in range(s)]
            rows.next = [x + a.tap_row, w + s * lanes, *add_line(x, weights, totals, stride, dilation)]
        return rows.values[2:]

    each_tile(k, Line(dtype, weights_dtype, pixels, stride, program), 0, sums)


def add_line(x: Ptr, weights: list[Val], totals: list[Val], stride: int, dilation: int) -> list[Val]:
    """Return the sums of neighbouring pixels with one row of taps added; a column is loaded once for all of them."""
    totals, lanes, s, k = list(totals), weights[0].lanes, len(weights), x.k
    pixel = k.target.channels_of(x.dtype)
    for column in range((len(totals) - 1) * stride + (s - 1) * dilation + 1):
        uses = taps_of_column(column, len(totals), s, stride, dilation)
        value = x.load(column * pixel, lanes) if uses else None
        for q, j in uses:
            totals[q] = k.fma(value, weights[j], totals[q])
    return totals


def taps_of_column(column: int, pixels: int, s: int, stride: int, dilation: int) -> list[tuple[int, int]]:
    """Return the (pixel, tap) pairs that read this column of the image."""
    pairs = [(q, column - q * stride) for q in range(pixels)]
    return [(q, at // dilation) for q, at in pairs if at >= 0 and at % dilation == 0 and at // dilation < s]


@final
def taps(k: Builder, dtype: str, weights_dtype: str, pixels: int, stride: int, program: Program) -> None:
    """Emit filters of any size and dilation. Task: one row of one block of an image, by bands."""
    lanes, pixel = k.target.lanes_of(weights_dtype), k.target.channels_of(dtype)

    def sums(a: SimpleNamespace, x: Ptr, w: Ptr, bias: Val) -> list[Val]:
        with fold(k, 0, a.kernel_rows, [bias] * pixels) as rows:
            with fold(k, 0, a.kernel_columns, rows.values) as s:
                weight = w.load((rows.i * a.kernel_columns + s.i) * lanes, lanes)
                at = x + (rows.i * a.tap_row + s.i * a.tap_column)
                values = [at.load(q * stride * pixel, lanes) for q in range(pixels)]
                s.next = [k.fma(value, weight, total) for value, total in zip(values, s.values)]
            rows.next = s.values
        return rows.values

    each_tile(k, Line(dtype, weights_dtype, pixels, stride, program), 0, sums)


class Line(Record):
    """Neighbouring pixels of a row.

    Fields
        dtype: of the images, whose pixels may have the channels of several vectors
        weights_dtype: of the filters and of the sums
        pixels: of a tile
        stride: pixels from one window to the next
        program: applied before storing, () for an activation with bounds and slope
    """

    dtype: str
    weights_dtype: str
    pixels: int
    stride: int
    program: Program


def each_tile(k: Builder, p: Line, weights_in_registers: int, sums) -> None:
    """Emit a loop over the tiles of each task's row; `weights_in_registers` are loaded once for the row."""
    lanes, pixel, pixels = k.target.lanes_of(p.weights_dtype), k.target.channels_of(p.dtype), p.pixels
    a = k.args()
    activation = ActivationEmitter(k, p.weights_dtype, lanes, p.program)
    with banded_rows(k, a.blocks, a.rows, a.band) as (image, block, row):
        x = vector_of(a.x + (image * a.x_image + row * a.x_row), a.x_plane, block, lanes)
        out = vector_of(a.out + (image * a.o_image + row * a.o_row), a.o_plane, block, lanes)
        w = a.w + block * a.kernel_rows * a.kernel_columns * lanes
        weights = [w.load(i * lanes, lanes) for i in range(weights_in_registers)] if weights_in_registers else w
        bias = a.bias.load(block * lanes, lanes)
        with k.loop(0, a.columns, pixels) as start:
            column = k.smaller(start, a.columns - pixels)
            totals = sums(a, x + column * (p.stride * pixel), weights, bias)
            activation.store(totals, partial(put_pixel, out + column * pixel, pixel))


def vector_of(at: Ptr, plane: Val, block: Val, lanes: int) -> Ptr:
    """Return the address of a vector of channels, number `block`, of the pixel at `at`."""
    parts = at.k.target.channels_of(at.dtype) // lanes
    if parts == 1:
        return at + block * plane
    whole, part = divmod_of(block, parts)
    return at + (whole * plane + part * lanes)


def put_pixel(out: Ptr, pixel: int, q: int, y: Val) -> None:
    out.store(y, q * pixel)
