"""Products of pixels, or rows, by panels of 32 channels on tile registers.

    sums[pixel, channel] = sum over steps of x[pixel, step] . w[step, channel]

A step is 64 bytes of a pixel: 64 bytes or 32 bfloat16 numbers. A table says where each step's bytes lie, others where
the pixels of a tile begin and where results go: matrices and convolutions of any filter are one loop. A task is a
group of one or two tiles of pixels times two tiles of channels. Each call of a kernel configures the registers and
releases them, so that no two kernels have to agree on them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from cgraph.kernels.conv8.emit import requantise
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import to_bytes
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import change_if, each_task, first_lanes, fold, masked_load, masked_store, prefetch
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.tile_products.registers import TileInstructions, tile_registers
from cgraph.kernels.tile_products.signature import ACROSS, BYTES, COLUMNS, TILE_NBYTES
from cgraph.record import Record

LEFT, RIGHT = 4, 6  # registers: sums are 0 to 3
PIXELS_AT_ONCE = 4  # as many vectors as become bytes together


class Tile(Record):
    """The params of `of_bytes`; products of numbers have some of them.

    Fields
        rows, pixels: tiles of pixels in a group, pixels of a tile
        lanes: channels in a block of the result
        ahead: cache lines of the next panel prefetched in each step, 0 if panels are cached
        result: dtype of the result
        is_rows: results are rows of a matrix, whose last panel may be partial
        fixed, joins, has_terms: as for `cgraph.kernels.conv8.emit.Tile`
    """

    rows: int
    pixels: int
    lanes: int
    ahead: int
    result: str
    is_rows: bool
    fixed: str = ""
    joins: bool = False
    has_terms: bool = False


@final
def of_bytes(k: Builder, *params) -> None:
    """Emit products of bytes, without signs on the left and with signs on the right, and their results."""
    p, a = Tile(*params), k.args()
    with each_group(k, p, a, "u1") as at:
        for vector in vectors(k, p, a, at):
            column = vector.channel
            bias = (a.bias + (at.image * a.b_image + column)).load(lanes=k.target.lanes)
            with each_pixel(k, p, a, at) as pixels:
                sums = [vector.load(q, "i4") + bias for q in pixels.indices]
                if p.has_terms:
                    terms = k.pointer(a.terms, "i4") + at.image * a.t_image
                    sums = [y + terms.load(number) for y, number in zip(sums, pixels.numbers)]
                beside = k.pointer(a.residual, "u1") + (at.image * a.r_image + block_of(p, column, a.r_plane))
                places = partial(place_beside, beside, pixels.beside, p.lanes)
                results = requantise(k, p, a, sums, places, column // k.target.lanes)
                put_bytes(k, p, a, pixels, vector, results)


def place_beside(beside: Ptr, numbers: list[Val], step: int, q: int) -> Ptr:
    return beside + numbers[q] * step


def put_bytes(k: Builder, p: Tile, a: SimpleNamespace, pixels: Any, vector: Any, ys: list[Val]) -> None:
    """Store the results of some pixels: bytes are rounded together."""
    lanes = k.target.lanes
    if p.result == "u1":
        packed = to_bytes(k, ys, k.cast(a.zero, "i2"), k.cast(a.low, "u1"), k.cast(a.high, "u1"))
        ys = [k.slice(packed, i * lanes, lanes) for i in range(len(ys))]
    for number, y in zip(pixels.numbers, ys):
        put_row(k, p, vector, vector.out + number * a.o_step, y)


def put_row(k: Builder, p: Any, vector: Any, place: Ptr, y: Val) -> None:
    """Store the channels of one pixel; of a row, those that the result has."""
    if p.is_rows:
        masked_store(k, place, y, vector.inside)
    else:
        place.store(y)


def put_one(k: Builder, p: Any, vector: Any, places: list[Ptr], i: int, y: Val) -> None:
    """Store the channels of pixel `i` of some pixels."""
    put_row(k, p, vector, places[i], y)


@final
def of_numbers(k: Builder, rows: int, pixels: int, lanes: int, ahead: int, result: str, is_rows: bool) -> None:
    """Emit products of bfloat16 numbers: ``activation(beside + bias + sums)`` in float32."""
    p, a = Tile(rows, pixels, lanes, ahead, result, is_rows), k.args()
    with each_group(k, p, a, "bf16") as at:
        for vector in vectors(k, p, a, at):
            column, lanes = vector.channel, k.target.lanes
            bias = (a.bias + column).load(lanes=lanes)
            beside = k.pointer(a.beside, p.result) + (at.image * a.beside_image + block_of(p, column, a.beside_plane))
            with each_pixel(k, p, a, at) as some:
                sums = [vector.load(q, "f4") + bias for q in some.indices]
                with change_if(k, a.beside != 0, sums) as s:
                    places = [beside + number * a.beside_step for number in some.beside]
                    s.next = [y + numbers_at(k, p, vector, place) for y, place in zip(sums, places)]
                outs = [vector.out + number * a.o_step for number in some.numbers]
                ActivationEmitter(k, "f4", lanes).store(s.values, partial(put_one, k, p, vector, outs))


def numbers_at(k: Builder, p: Any, vector: Any, place: Ptr) -> Val:
    """Return the channels that a result is added to."""
    return masked_load(k, place, vector.inside) if p.is_rows else place.load(lanes=k.target.lanes)


@contextmanager
def each_group(k: Builder, p: Tile, a: SimpleNamespace, kind: str) -> Iterator[SimpleNamespace]:
    """Yield each task's image, panel and group with the address of its sums, ``[tile][column][pixel][16]`` words."""
    registers, scratch = tile_registers(k), k.stack_ptr("u1", (LEFT + 1) * TILE_NBYTES)
    registers.configure(a.config)
    with each_task(k, a.blocks, a.panels, a.block) as (image, block, panel, t):
        group = block * a.block + t
        with k.if_(group < a.groups):
            at = SimpleNamespace(image=image, panel=panel, group=group, t=t, sums=scratch)
            multiply(k, p, a, kind, at, registers)
            for i in range(p.rows * ACROSS):
                registers.store(i, scratch + i * TILE_NBYTES, k.const(BYTES, "i8"))
            yield at
    registers.release()


def multiply(
    k: Builder, p: Tile, a: SimpleNamespace, kind: str, at: SimpleNamespace, registers: TileInstructions
) -> None:
    """Emit the sums of one group."""
    tiles = a.tiles + at.group * (2 * p.rows)
    xs = [a.x + (at.image * a.x_image + tiles.load(2 * r)) for r in range(p.rows)]
    w = a.w + (at.image * a.w_image + at.panel * a.w_panel)
    beyond = w + next_share(k, p, a, at.t)
    for i in range(p.rows * ACROSS):
        registers.zero(i)
    # vectors of 512 bits fall asleep when none is used for 0.9 microseconds; a tile store then waits for them
    with fold(k, 0, a.steps, [k.splat(k.cast(a.steps, "f4"), k.target.lanes)]) as s:
        offset, right = a.offsets.load(s.i), w + s.i * (ACROSS * TILE_NBYTES)
        for i in range(p.ahead):
            prefetch(k, beyond + (s.i * p.ahead + i) * LINE, locality=2)
        for r, x in enumerate(xs):
            registers.load(LEFT + r, x + offset, a.x_step)
        for c in range(ACROSS):
            registers.load(RIGHT + c, right + c * TILE_NBYTES, k.const(BYTES, "i8"))
            for r in range(p.rows):
                registers.dot(kind, r * ACROSS + c, LEFT + r, RIGHT + c)
        s.next = [s.values[0] + s.values[0]]
    (at.sums + LEFT * TILE_NBYTES).as_dtype("f4").store(s.values[0])


def next_share(k: Builder, p: Tile, a: SimpleNamespace, t: Val) -> Val:
    """Return the bytes to group `t`'s share of the next panel; 0 if nothing is prefetched or nothing is left."""
    share = t * a.steps * (p.ahead * LINE)
    return k.select(share < a.w_panel, a.w_panel + share, 0)


def vectors(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """Yield the vectors of channels of a panel: where sums of the current tile and results of the image lie."""
    lanes = k.target.lanes
    for first in range(0, ACROSS * COLUMNS, lanes):
        channel = at.panel * (ACROSS * COLUMNS) + first
        inside = first_lanes(k, a.channels - channel, lanes)
        column, lane = divmod(first, COLUMNS)
        out = a.out + (at.image * a.o_image + block_of(p, channel, a.o_plane))
        load = partial(load_sums, k, at, column, lane)
        yield SimpleNamespace(channel=channel, inside=inside, out=out, load=load)


def load_sums(k: Builder, at: SimpleNamespace, column: int, lane: int, q: Val, dtype: str) -> Val:
    """Return one vector of the sums of a pixel of the tile `at.row`."""
    sums = (at.sums + (at.row * ACROSS + column) * TILE_NBYTES).as_dtype(dtype)
    return sums.load(q * COLUMNS + lane, k.target.lanes)


def block_of(p: Tile, channel: Val, plane: Val) -> Val:
    """Return the place of a channel in blocks of `lanes` channels that are `plane` elements apart."""
    block = channel // p.lanes
    return block * plane + (channel - block * p.lanes)


@contextmanager
def each_pixel(k: Builder, p: Tile, a: SimpleNamespace, at: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """Yield the pixels of a group that it stores, four at a time; the last ones of a tile are repeated.

    Pixels that overlap the tile before are skipped, so that each result is written once.
    """
    with k.loop(0, p.rows) as row:
        at.row = row
        tile = at.group * p.rows + row
        with k.loop((a.tiles + tile * 2).load(1), p.pixels, PIXELS_AT_ONCE) as first:
            indices = [k.smaller(first + i, p.pixels - 1) for i in range(PIXELS_AT_ONCE)]
            numbers, beside = (
                [k.cast((table + tile * COLUMNS).load(q), "i8") for q in indices]
                for table in (a.numbers, a.beside_numbers)
            )
            yield SimpleNamespace(indices=indices, numbers=numbers, beside=beside)
