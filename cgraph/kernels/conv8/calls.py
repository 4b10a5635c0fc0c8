"""Call builders of convolution of channel-blocked 8-bit images, and of products of 8-bit matrices."""

from functools import cached_property
from typing import Any

import numpy as np

from cgraph.kernels.conv.addresses import Grid, PixelSource
from cgraph.kernels.conv.calls import NEAR_BYTES, blocked_source, grid_of, tiling_of
from cgraph.kernels.conv8.across_signature import ROWS as ACROSS_ROWS
from cgraph.kernels.conv8.columns_signature import ROWS as COLUMN_ROWS
from cgraph.kernels.conv8.halves_signature import ROWS
from cgraph.kernels.conv8.signature import RATIOS, TILE
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.kernel import LINE, Pointer
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.timing import tile_ns
from cgraph.record import Record

MANY_TILES = 64  # with as many tiles, the first ones cannot prefetch all of the next panel without waiting
GROUP = 4  # channels whose products are added up in one lane
MIDDLE = 128
MOST_TAPS = 8  # of a row of a filter whose code is not a loop
ROOMS = (16, 72, 144)  # words of a pixel that the stack has room for: few sizes, so that layers share code


class ByteShape(ConvShape):
    """A convolution of bytes.

    Fields
        is_plain: an image has four adjacent channels, some of which may be unused, or one: first layers
        is_unpacked: images become halves of words before they are multiplied, pixels once for all filters
            (`cgraph.kernels.conv8.columns_emit`), rows of a depthwise convolution once
            (`cgraph.kernels.depthwise8.planes_emit`)
    """

    dtype: str = "u1"
    is_unpacked: bool = False

    @property
    def source_lanes(self) -> int:
        if self.by_taps:
            return 1
        return GROUP if self.is_plain else self.lanes

    @property
    def by_taps(self) -> bool:
        """True if a word is four neighbouring taps of an image of one channel."""
        is_single = self.is_plain and self.c == 1 and self.window.kernel[1] > 1
        return is_single and self.target.dot == "halves" and self.window.dilation[1] == 1

    @property
    def words(self) -> int:
        """Words of a pixel that all filters read."""
        return len(self.steps) * self.unroll // GROUP

    @property
    def has_columns(self) -> bool:
        """True if the pixels may be unpacked once for all filters: there are several of both."""
        fits = self.words <= ROOMS[-1] and self.groups == 1
        return fits and self.target.dot == "halves" and self.result[1] > 1 and self.k > GROUP

    @property
    def row_taps(self) -> tuple[int, int]:
        """The words of one row of the window, and the bytes from one to the next."""
        if self.by_taps:
            return -(-self.window.kernel[1] // GROUP), GROUP
        return self.window.kernel[1], self.window.dilation[1] * self.source_lanes

    @property
    def is_column(self) -> bool:
        """False: tiles take pixels of one row."""
        return False

    @property
    def by_rows(self) -> bool:
        """True if weights are packed for kernels of few registers, whose sums are those of one block."""
        return self.target.is_small

    @property
    def pairs(self) -> int:
        """Pairs of channels that are summed at once, for halves: both where one pixel of a row uses the weights."""
        return 2 if self.result[1] == 1 else 1

    @property
    def is_across(self) -> bool:
        """True if one instruction adds up the products of four steps."""
        return self.target.dot == "across"

    @property
    def middle(self) -> int:
        """The number that the kernel subtracts from bytes of images."""
        return MIDDLE if self.is_across and not is_depthwise8(self) else 0

    @property
    def panel_weights(self) -> int:
        """As in a ConvShape; zeros fill up the steps that are added up at once."""
        return super().panel_weights + (
            -len(self.steps) % GROUP * self.unroll * self.panel_channels if self.is_across else 0
        )

    @cached_property
    def vectors(self) -> int:  # type: ignore[override]
        """As in a ConvShape; few registers hold the sums of one block."""
        return 1 if self.by_rows else super().vectors

    @cached_property
    def unroll(self) -> int:  # type: ignore[override]
        """Input channels of one step: as many as the last block uses, in groups."""
        if self.is_plain:
            return GROUP
        rest = self.c % self.lanes if self.groups == 1 else 0
        return next(n for n in (GROUP, 2 * GROUP, 4 * GROUP) if n >= (rest or self.lanes))

    @cached_property
    def steps(self) -> tuple[tuple[int, int, int], ...]:  # type: ignore[override]
        """The steps of the reduction in order, as in a ConvShape; for plain images a step is a tap."""
        if not self.is_plain:
            return super().steps
        r, s = self.window.kernel
        return tuple((0, i, j) for i in range(r) for j in range(0, s, GROUP if self.by_taps else 1))


def is_depthwise8(shape: ByteShape) -> bool:
    """Return True for one filter without dilation per channel; others are grouped convolutions."""
    return is_depthwise(shape) and shape.window.dilation == (1, 1)


class Join(Record):
    """Conversion of a byte sum to another byte: ``((q - zero) * first + (r - r_zero) * beside) / last``.

    Fields
        first: scale of the first byte
        low, high: bounds of the first byte, minus its zero point
        beside, r_zero: scale and zero point of a residual; a scale of 0 if there is none
        last: the scale of the result
        ratios: a, b, c with ``fma(byte, a, fma(residual, b, c))`` of the same byte (`cgraph.kernels.conv8.join_ratios`)
    """

    first: float
    low: int
    high: int
    last: float
    beside: float = 0.0
    r_zero: int = 0
    ratios: tuple[float, ...] = ()


class Result(Record):
    """The conversion of int32 sums to results.

    Fields
        dtype: ``u1``, ``f4`` (times a scale) or ``i4`` (unchanged)
        zero, low, high: zero point and bounds of bytes
        join: conversion of the byte to another one, or None
        fixed: rounding of a sum times its scale to integers, ``once`` or ``twice`` (`cgraph.ops.fixed`), with factors
            and shifts as scales; empty for float scales
        bounded: a fixed result whose sums are below 2**30, with shifts from -20 to -2, so 32 bits suffice to round
        has_one_scale: all filters have one scale, which is stored once (`pack_scale`)
        joins_places: places by which products are shifted are the low bits of initial sums (`pack_start`)
    """

    dtype: str = "u1"
    zero: int = 0
    low: int = 0
    high: int = 255
    join: Join | None = None
    fixed: str = ""
    bounded: bool = False
    has_one_scale: bool = False
    joins_places: bool = False

    @property
    def joins(self) -> str:
        """The kernel's parameter: how it converts the byte to another one, by ``division`` or ``ratios``; or not."""
        if self.join is None:
            return ""
        return "ratios" if self.join.ratios else "division"


class MatrixRows(Record):
    """Pixels as rows of a matrix: its address, and the steps in elements from one image and from one row to the
    next.
    """

    at: Pointer
    image: int
    step: int


class ByteWeights(Record):
    """Packed weights with the conversion of their sums.

    Fields
        at: in the layout of `pack_conv8`
        bias: int32, up to the last panel's end; of unpacked pixels all numbers (`column_numbers`)
        scale: float32, up to the last panel's end; two rows of int32 for a `fixed` result (`pack_scale`)
    """

    at: Pointer
    bias: Pointer
    scale: Pointer


class Sides(Record):
    """Values that differ between images, which are the right sides of products of two computed matrices.

    Fields
        weights, starts: elements from those of one image to those of the next
        terms: int32 for each pixel of each image, added to its sums, or None
    """

    weights: int = 0
    starts: int = 0
    terms: Pointer | None = None


SHARED = Sides()


def conv8_calls(
    shape: ByteShape,
    out: BlockedView | MatrixRows,
    x: BlockedView,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None = None,
    sides: Sides = SHARED,
) -> KernelCalls:
    """Compute ``result(sums of x * weights + bias)``

    Operands
        x: channel-blocked images in a halo of their zero point at least ``shape.window.halo(h, w)`` wide
        residual: of the result's form; it may be `out` if `conv_overwrites_residual`
        sides: values that differ between images; terms are those of pixels in one row
    Raises
        ValueError: shapes disagree, or the halo is too narrow
    """
    source = blocked_source(shape, x)
    grid = grid_of(shape, source, None if isinstance(out, MatrixRows) else out, residual)
    if isinstance(out, MatrixRows) and grid.rows > 1:
        raise ValueError("rows of a matrix are made of pixels in one row")
    if source.n * grid.rows * grid.columns == 0:
        return KernelCalls()
    if shape.is_unpacked:
        return column_calls(shape, grid, source, out, weights, result)
    if shape.by_rows and sides is SHARED:
        return (across_calls if shape.is_across else halves_calls)(shape, grid, source, out, weights, result, residual)
    return vector_calls(shape, grid, source, out, weights, result, residual, sides)


def vector_calls(
    shape: ByteShape,
    grid: Grid,
    source: PixelSource,
    out: BlockedView | MatrixRows,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None,
    sides: Sides,
) -> KernelCalls:
    """Return the call of the kernel whose sums are in vectors."""
    t = tiling_of(shape, grid, source.n, shape.weights_nbytes)
    blocks = -(-t.tiles // t.block)
    tasks = source.n * blocks * t.block * shape.panels
    work = t.pixels * shape.vectors * len(shape.steps) * shape.unroll // GROUP
    chunk = chunk_of(tasks, tile_ns(shape.target, work))
    ahead = lines_ahead(shape, t.block) if shape.weights_nbytes >= NEAR_BYTES else 0
    places = out_args(out) if isinstance(out, BlockedView) else row_args(shape, out)
    form = result.dtype, result.fixed, result.joins, isinstance(out, MatrixRows), sides.terms is not None
    call = TILE.call(
        (t.pixels, shape.vectors, shape.unroll, source.step, *form, ahead), tasks, chunk,
        offsets=Pointer(source.offsets), steps=len(source.offsets), panel_offsets=Pointer(source.panel_offsets),
        x=source.at, x_image=source.image, x_row=source.row,
        w=weights.at, w_image=sides.weights, w_panel=shape.panel_weights,
        bias=weights.bias, b_image=sides.starts, terms=sides.terms, scale=weights.scale,
        shifts=shape.panels * shape.panel_channels, channels=shape.k, columns=grid.columns, across=t.across,
        tiles=t.tiles, block=t.block, panels=shape.panels, turns=blocks, by_block=0,
        **places, **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((call,), (source.offsets, source.panel_offsets))


def across_calls(
    shape: ByteShape,
    grid: Grid,
    source: PixelSource,
    out: BlockedView | MatrixRows,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None,
) -> KernelCalls:
    """Return the call of the kernel for processors that add up the products of two vectors of bytes."""
    is_rows = isinstance(out, MatrixRows)
    offsets = np.append(source.offsets, np.zeros(-len(source.offsets) % GROUP)).astype(np.int32)
    tasks = source.n * shape.panels * grid.rows
    call = ACROSS_ROWS.call(
        (result.dtype, result.fixed, result.bounded, clips(result), result.joins, is_rows),
        tasks, chunk_of(tasks, tile_ns(shape.target, grid.columns * len(offsets))),
        offsets=Pointer(offsets), turns=len(offsets) // GROUP, panel_offsets=Pointer(source.panel_offsets),
        x_step=source.step, w_panel=shape.panel_weights, bias=weights.bias, scale=weights.scale,
        shifts=shape.panels * shape.panel_channels,
        **scalar_args(shape, grid, source, weights, out), **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((call,), (offsets, source.panel_offsets))


def scalar_args(
    shape: ByteShape, grid: Grid, source: PixelSource, weights: ByteWeights, out: BlockedView | MatrixRows
) -> dict[str, Any]:
    """Return the arguments that the kernels for processors without vectors of bytes share."""
    places = row_args(shape, out) if isinstance(out, MatrixRows) else out_args(out)
    return places | {
        "x": source.at, "x_image": source.image, "x_row": source.row, "w": weights.at, "channels": shape.k,
        "panels": shape.panels, "rows": grid.rows, "columns": grid.columns,
    }  # fmt: skip


def clips(result: Result) -> bool:
    """Return True if results are limited to less than all bytes."""
    return (result.low, result.high) != (0, 255)


def halves_calls(
    shape: ByteShape,
    grid: Grid,
    source: PixelSource,
    out: BlockedView | MatrixRows,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None,
) -> KernelCalls:
    """Return the call of the kernel for processors that add up two products of 16 bits without vectors."""
    is_rows = isinstance(out, MatrixRows)
    taps, tap_step, moves = moves_of(shape, source)
    turns = turns_of(len(moves)) if taps == 1 else 1
    is_even, move_args = even_moves(moves)
    pixels = shape.pixels(grid.columns)
    form = result.dtype, result.fixed, result.bounded, clips(result), result.joins, is_rows
    scales = result.has_one_scale, result.joins_places
    tasks = source.n * shape.panels * grid.rows
    call = ROWS.call(
        (pixels, shape.pairs, taps, tap_step, turns, source.step, *form, *scales, is_even),
        tasks, chunk_of(tasks, tile_ns(shape.target, grid.columns * len(shape.steps))),
        **move_args, rounds=len(moves) // turns,
        panel_offsets=Pointer(source.panel_offsets) if shape.groups > 1 else None,
        w_panel=shape.panel_weights, bias=weights.bias, scale=weights.scale,
        shifts=1 if result.has_one_scale else shape.panels * shape.panel_channels,
        **scalar_args(shape, grid, source, weights, out), **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((call,), (moves, source.panel_offsets))


def column_calls(
    shape: ByteShape,
    grid: Grid,
    source: PixelSource,
    out: BlockedView | MatrixRows,
    weights: ByteWeights,
    result: Result,
) -> KernelCalls:
    """Return the call of the kernel that unpacks pixels once for all filters."""
    is_rows = isinstance(out, MatrixRows)
    taps, tap_step, moves = moves_of(shape, source)
    turns = turns_of(shape.words)
    is_even, move_args = even_moves(moves)
    room = next(n for n in ROOMS if n >= shape.words)
    height = 2 if grid.columns % 2 and grid.rows > 1 else 1  # two rows have no half pair of pixels
    strips = -(-grid.rows // height)
    tasks = source.n * strips
    call = COLUMN_ROWS.call(
        (room, taps, tap_step, turns, source.step, result.fixed, clips(result), is_rows, is_even),
        tasks, chunk_of(tasks, tile_ns(shape.target, height * grid.columns * shape.words * shape.panels)),
        **move_args, groups=len(moves), rounds=shape.words // turns,
        numbers=weights.bias, zero=result.zero, low=result.low, high=result.high, height=height, strips=strips,
        **scalar_args(shape, grid, source, weights, out),
    )  # fmt: skip
    return KernelCalls((call,), (moves,))


def moves_of(shape: ByteShape, source: PixelSource) -> tuple[int, int, np.ndarray]:
    """Return the words that are read together, the bytes from one to the next, and from one group to the next."""
    taps, step = shape.row_taps
    taps = taps if taps <= MOST_TAPS else 1
    return taps, step, np.diff(source.offsets[::taps], prepend=0).astype(np.int32)


def even_moves(moves: np.ndarray) -> tuple[bool, dict[str, Any]]:
    """Return True if all moves but the first, zero, are equal, and the arguments for them: a list, or one number."""
    is_even = moves[0] == 0 and len(set(moves[1:].tolist())) <= 1
    return is_even, {"moves": None if is_even else Pointer(moves), "move": int(moves[-1]) if is_even else 0}


def turns_of(words: int) -> int:
    """Return the words of one round of a loop."""
    return next(n for n in (4, 3, 5, 2, 1) if words % n == 0)


def lines_ahead(shape: ByteShape, tiles: int) -> int:
    """Return the cache lines of the next panel to prefetch in a step, so that all tiles together prefetch all of
    them.
    """
    lines = shape.unroll * shape.panel_channels // LINE
    return 0 if tiles >= MANY_TILES else -(-lines // tiles)


def out_args(out: BlockedView) -> dict[str, Any]:
    """Return the arguments for the addresses of blocked results."""
    return {"out": out.origin, "o_image": out.image, "o_plane": out.plane, "o_row": out.row, "o_step": out.lanes}


def row_args(shape: ByteShape, out: MatrixRows) -> dict[str, Any]:
    """Return the arguments for the addresses of results that are rows of a matrix."""
    return {"out": out.at, "o_image": out.image, "o_plane": shape.lanes, "o_row": 0, "o_step": out.step}


def join_args(result: Result) -> dict[str, Any]:
    """Return the arguments that convert sums to bytes."""
    join = result.join or Join(1.0, 0, 0, 1.0)
    bounds = {"first_low": float(join.low), "first_high": float(join.high)}
    inverse = float(np.float32(1) / np.float32(join.last))
    scales = {
        "first": join.first,
        "beside": join.beside,
        "r_zero": float(join.r_zero),
        "last": join.last,
        "inverse": inverse,
    } | dict(zip(RATIOS, join.ratios or (0.0,) * len(RATIOS)))
    return {"zero": result.zero, "low": result.low, "high": result.high, **bounds, **scales}


def residual_args(x: BlockedView | None) -> dict[str, Any]:
    """Return the arguments for the addresses of a residual."""
    if x is None:
        return {"residual": None, "r_image": 0, "r_plane": 0, "r_row": 0}
    return {"residual": x.origin, "r_image": x.image, "r_plane": x.plane, "r_row": x.row}
