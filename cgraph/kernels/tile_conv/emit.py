"""Convolutions of channel-blocked images on tile registers: of bfloat16 numbers or bytes, in blocks of 64 bytes.

    sums[pixel, channel] = sum over steps of x[pixel + offset of the step] . w[step, channel]

A pixel's block of channels is 64 bytes, one row of a tile, so a tile is 16 pixels that lie a constant step apart: of
one row, or of all rows of a padded image one after the other. Tables say where each pixel's result belongs.
"""

from functools import partial
from types import SimpleNamespace

from cgraph.kernels.conv8.emit import requantise, uses_ratios
from cgraph.kernels.isa.records import TILE_ROW
from cgraph.kernels.llvm import storage
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import to_bytes
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import banded_rows, change_if, divmod_of, first_lanes, masked_load, masked_store
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of
from cgraph.kernels.tile_conv.signature import CHANNELS, NUMBER
from cgraph.kernels.tile_products.emit import ROWS_AT_ONCE, LeftSides, load_sums, overlapped_groups, store_rounded
from cgraph.kernels.tile_products.signature import COLUMNS
from cgraph.record import Record

ROWS = 16  # entries of a tile in the tables of pixels


class NumberTile(Record):
    """The params of `of_numbers`.

    Fields
        group, height, ahead, result: as for `cgraph.kernels.tile_products.emit.Tile`
        residual: dtype of the residual; empty if there is none
    """

    group: int
    height: int
    ahead: int
    result: str
    residual: str


@final
def of_numbers(k: Builder, group: int, height: int, ahead: int, result: str, residual: str) -> None:
    """Emit ``activation(sums + bias + residual)`` in float32, and round the result to its dtype."""
    p, a = NumberTile(group, height, ahead, result, residual), k.args()
    overlapped_groups(k, p, a, "bf16", pixels_of(a, group), partial(finish_pixels, k, p, a))


def finish_pixels(k: Builder, p: NumberTile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the results of a group of tiles."""
    parts = range(0, CHANNELS, k.target.lanes)
    channels = [at.panel * CHANNELS + first for first in parts]
    bias = [a.bias.load(channel, k.target.lanes) for channel in channels]
    out = block_of(p.result, a.out + at.image * a.o_image, a.o_plane, at.panel)
    beside = None
    if p.residual:
        beside = block_of(p.residual, k.pointer(a.beside, p.residual) + at.image * a.b_image, a.b_plane, at.panel)
    with k.loop(0, p.group) as tile, k.loop(0, p.height) as q:
        entry = (at.group * p.group + tile) * ROWS + q
        number = k.cast(a.numbers.load(entry), "i8")
        with k.if_(number >= 0):
            at.row = tile
            sums = [load_sums(k, at, *divmod(first, COLUMNS), q, "f4") for first in parts]
            ys = [x + y for x, y in zip(sums, bias)]
            if beside:
                place = beside + k.cast(a.beside_numbers.load(entry), "i8")
                ys = add_residual(k, p, a, ys, channels, place)
            put_pixel(k, p, a, out + number, channels, ActivationEmitter(k, "f4", k.target.lanes).apply(ys))


def add_residual(
    k: Builder, p: NumberTile, a: SimpleNamespace, ys: list[Val], channels: list[Val], place: Ptr
) -> list[Val]:
    """Return the sums of a pixel plus its residual at `place`; vectors beyond the residual's channels stay."""
    totals = []
    for i, (y, channel) in enumerate(zip(ys, channels)):
        with change_if(k, channel < a.b_channels, [y]) as s:
            s.next = [y + vector_of(p.residual, place, a.b_plane, i).load(lanes=k.target.lanes)]
        totals += s.values
    return totals


def put_pixel(k: Builder, p: NumberTile, a: SimpleNamespace, place: Ptr, channels: list[Val], ys: list[Val]) -> None:
    """Store a panel's channels of a pixel at `place`, as many as the result has."""
    if p.result == NUMBER:
        store_rounded(k, place, ys)
        return
    for i, (y, channel) in enumerate(zip(ys, channels)):
        with k.if_(channel < a.channels):
            vector_of(p.result, place, a.o_plane, i).store(y)


def block_of(dtype: str, pixel: Ptr, plane: Val, panel: Val) -> Ptr:
    """Return the address of a panel's first channel of a pixel.

    Parameters
        pixel: the pixel in the first block of channels
    """
    return pixel + panel * plane * (1 if dtype == NUMBER else CHANNELS // pixel.k.target.lanes)


def vector_of(dtype: str, place: Ptr, plane: Val, i: int) -> Ptr:
    """Return the address of vector `i` of a panel's channels of a pixel, whose first one is at `place`."""
    return place + (i * place.k.target.lanes if dtype == NUMBER else i * plane)


class Tile(Record):
    """The params of `of_bytes`.

    Fields
        group, height, ahead: as for `NumberTile`
        result, fixed, joins: as for `cgraph.kernels.conv8.emit.Tile`
        lanes, beside_lanes: channels in a block of the result and of the residual
    """

    group: int
    height: int
    ahead: int
    result: str
    lanes: int
    beside_lanes: int
    fixed: str
    joins: str


@final
def of_bytes(k: Builder, *params) -> None:
    """Emit sums of bytes and their results, as `cgraph.kernels.conv8.emit.tile` does."""
    p, a = Tile(*params), k.args()
    overlapped_groups(k, p, a, "u1", pixels_of(a, p.group), partial(finish_tiles, k, p, a))


def finish_tiles(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the results of a group of tiles, some rows at a time."""
    with k.loop(0, p.group) as tile, k.loop(0, p.height, ROWS_AT_ONCE) as start:
        at.row, first = tile, (at.group * p.group + tile) * ROWS
        at.rows = [k.smaller(start + i, p.height - 1) for i in range(ROWS_AT_ONCE)]
        at.numbers = [k.cast(a.numbers.load(first + row), "i8") for row in at.rows]
        at.others = [k.cast(a.beside_numbers.load(first + row), "i8") for row in at.rows]
        finish_rows(k, p, a, at)


def finish_rows(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> None:
    """Emit the results of some rows of a tile; all of them are read before they are written."""
    lanes = k.target.lanes
    out, beside = a.out + at.image * a.o_image, k.pointer(a.residual, "u1") + at.image * a.b_image
    for part in range(0, CHANNELS, lanes):
        channel = at.panel * CHANNELS + part
        with k.if_(channel < a.channels):
            read = k.larger(k.smaller(channel, a.b_channels - lanes), 0)
            residual = partial(residual_at, vector_at(p.beside_lanes, beside, a.b_plane, read), at.others)
            bias = a.bias.load(channel, lanes)
            sums = [load_sums(k, at, *divmod(part, COLUMNS), row, "i4") + bias for row in at.rows]
            results = requantise(k, p, a, sums, residual, channel // lanes)
            put_rows(k, p, a, at.numbers, vector_at(p.lanes, out, a.o_plane, channel), results)


def pixels_of(a: SimpleNamespace, group: int) -> LeftSides:
    """Return the left sides of groups of tiles of pixels."""

    def first(at: SimpleNamespace) -> list[Ptr]:
        places = a.places + at.group * group
        return [a.x + (at.image * a.x_image + places.load(r)) for r in range(group)]

    return LeftSides(first, a.offsets.load)


def vector_at(lanes: int, at: Ptr, plane: Val, channel: Val) -> Ptr:
    """Return the address of a vector of channels of an image's first pixel, whose blocks have `lanes` channels."""
    block, lane = divmod_of(channel, lanes)
    return at + (block * plane + lane)


def residual_at(pixel: Ptr, numbers: list[Val], i: int) -> Ptr:
    """Return the address of the residual of a row; that of the first pixel for rows that are not stored."""
    return pixel + pixel.k.larger(numbers[i], 0)


def put_rows(k: Builder, p: Tile, a: SimpleNamespace, numbers: list[Val], out: Ptr, ys: list[Val]) -> None:
    """Store one vector of the results of some rows at their pixels; bytes are rounded together."""
    lanes = k.target.lanes
    if p.result == "u1":
        packed = to_bytes(k, ys, k.cast(a.zero, "i2"), k.cast(a.low, "u1"), k.cast(a.high, "u1"), uses_ratios(k, p))
        ys = [k.slice(packed, i * lanes, lanes) for i in range(len(ys))]
    for number, y in zip(numbers, ys):
        with k.if_(number >= 0):
            (out + number).store(y)


@final
def join_blocks(k: Builder, dtype: str, result: str) -> None:
    """Convert channel-blocked images to blocks of 64 bytes; missing blocks become 0.

    Task: one row of one block of the result, by bands.
    """
    a, lanes = k.args(), k.target.lanes
    parts = TILE_ROW // nbytes_of(result) // lanes
    with banded_rows(k, a.planes, a.rows, a.band) as (image, plane, row):
        out = a.out + (image * a.o_image + plane * a.o_plane + row * a.o_row)
        x = a.x + (image * a.x_image + row * a.x_row)
        blocks = [plane * parts + part for part in range(parts)]
        sources = [x + k.smaller(block, a.x_blocks - 1) * a.x_plane for block in blocks]
        with k.loop(0, a.columns) as column:
            for part, (block, source) in enumerate(zip(blocks, sources)):
                value = k.select(block < a.x_blocks, source.load(column * lanes, lanes), k.const(0, dtype, lanes))
                out.store(value, (column * parts + part) * lanes)


@final
def round_pixels(k: Builder, channels: int) -> None:
    """Round plain images of at most four channels to pixels of four bfloat16 numbers; missing channels become 0.

    Task: one row of an image, by bands.
    """
    a, lanes = k.args(), k.target.lanes
    with banded_rows(k, a.planes, a.rows, a.band) as (image, _, row):
        x = a.x + (image * a.x_image + row * a.x_row)
        out = a.out + (image * a.o_image + row * a.o_row)
        with k.loop(0, a.columns, lanes) as column:
            inside = first_lanes(k, a.columns - column, lanes)
            pixel = k.const(0, "i8", lanes)
            for channel in range(channels):
                values = masked_load(k, x + (channel * a.x_plane + column), inside)
                bits = k.cast(storage.narrow(k, values, NUMBER), "i8")
                pixel = pixel | bits << (16 * channel)
            masked_store(k, out + column, pixel, inside)


@final
def phase_pixels(k: Builder) -> None:
    """Gather the pixels of each phase of channel-blocked images: pixels of 64 bytes.

    Task: one row of a block of a phase, by bands.
    """
    a, lanes = k.args(), k.target.lanes
    with banded_rows(k, a.planes, a.rows, a.band) as (image, plane, row):
        phase, block = divmod_of(plane, a.blocks)
        top, left, rows, columns = (a.phases.load(phase * 4 + i) for i in range(4))
        x = a.x + (image * a.x_image + block * a.x_plane + top * a.x_row + row * a.x_down + left * TILE_ROW)
        out = a.out + (image * a.o_image + plane * a.o_plane + row * a.o_row)
        with k.if_(row < rows), k.loop(0, columns) as column:
            source, place = ((at + column * step).as_dtype("i4") for at, step in ((x, a.x_step), (out, TILE_ROW)))
            for word in range(0, TILE_ROW // 4, lanes):
                place.store(source.load(word, lanes), word)
