"""Convolution of channel-blocked bytes on processors with few registers, whose instructions add up two products of 16
bits.

Sums of one or two pixels and of the four channels of a block are numbers, not vectors. Bytes 0 and 2 of a word become
two numbers of 16 bits in one instruction, and bytes 1 and 3 in another: a word of weights has two channels of two
inputs, so few numbers are in registers at once. A turn of the reduction reads neighbouring taps; a table has the
distance to the next turn. Rounding is in 32 bits where sums are bounded: see `rounded`.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from cgraph.kernels.conv8.emit import finish
from cgraph.kernels.conv8.signature import PLACE_BITS, places_of
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import change_if, each_task, fold, hidden
from cgraph.kernels.llvm.halves import add_products, bytes_as_halves, saturated_byte, upper_product
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record

WORD = 4  # bytes


class Tile(Record):
    """The params of `rows`.

    Fields
        pixels: neighbouring pixels whose sums are in registers
        pairs: pairs of channels whose sums are in registers, 1 or 2
        taps, tap_step: taps of a turn, and the bytes from one to the next
        turns: turns of one round of the loop
        x_step: bytes from one pixel of the tile to the next
        result, fixed, joins, is_rows: as in `cgraph.kernels.conv8.emit.Tile`
        bounded: sums and shifts are those of a `Result` that is bounded
        clips: bounds of the result are not those of a byte
        has_one_scale: all channels have one factor and one shift
        joins_places: the low bits of initial sums are the places
        is_even: turns are equally far from each other
    """

    pixels: int
    pairs: int
    taps: int
    tap_step: int
    turns: int
    x_step: int
    result: str
    fixed: str
    bounded: bool
    clips: bool
    joins: str
    is_rows: bool
    has_one_scale: bool
    joins_places: bool
    is_even: bool

    @property
    def channels(self) -> int:
        """Channels whose sums are in registers."""
        return 2 * self.pairs


@final
def rows(k: Builder, *params) -> None:
    """Emit the results. Task: one row of one block of channels of an image; a last tile overlaps its neighbour."""
    p = Tile(*params)
    a = k.args()
    with each_task(k, a.panels, a.rows) as (image, block, row):
        x = a.x + (image * a.x_image + row * a.x_row)
        with change_if(k, a.panel_offsets != 0, [x]) as s:
            s.next = [x + k.pointer(a.panel_offsets, "i8").load(block)]
        (x,) = s.values
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        residual = k.pointer(a.residual, "u1") + (image * a.r_image + block * a.r_plane + row * a.r_row)
        w = a.w + block * a.w_panel
        with k.loop(0, a.columns, p.pixels) as start:
            column = k.smaller(start, a.columns - p.pixels)
            sums: list[Val] = []  # [channels][pixels]
            for first in range(0, GROUP, p.channels):
                channels = [block * GROUP + (first + c) for c in range(p.channels)]
                starts = [start_of(k, p, a, c) for c in channels for _ in range(p.pixels)]
                part = w + (a.w_panel >> 1) * (first // 2)
                sums += reduce_turns(k, p, a, x + column * p.x_step, part, starts)
            put(k, p, a, sums, residual + column * GROUP, out + column * a.o_step, block)


def reduce_turns(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, w: Ptr, sums: Sequence[Val]) -> list[Val]:
    """Return some sums of one tile, ``[channels][pixels]``."""
    lists = [] if p.is_even else [k.pointer(a.moves, "i4")]
    with fold(k, 0, a.rounds, [x, w, *sums, *lists]) as s:
        x, w, *sums = s.values[: 2 + len(sums)]
        moves = s.values[2 + len(sums) :]
        for turn in range(p.turns):
            x = x + moves[0].load(turn) if moves else x
            for tap in range(p.taps):
                sums = add_word(k, p, sums, x + tap * p.tap_step, w.as_dtype("i4"))
                w = w + p.channels * WORD
            x = x + a.move if p.is_even else x
        s.next = [x, w, *sums, *(m + p.turns for m in moves)]
    return s.values[2 : 2 + len(sums)]


def add_word(k: Builder, p: Tile, sums: Sequence[Val], x: Ptr, weights: Ptr) -> list[Val]:
    """Return the sums with the products of four inputs of each pixel."""
    totals = list(sums)
    for odd in range(2):
        inputs = [
            bytes_as_halves(k, (x + q * p.x_step).as_dtype("i4").load(align=1), odd, False) for q in range(p.pixels)
        ]
        for c in range(p.channels):
            factor = bytes_as_halves(k, weights.load(odd * p.pairs + c // 2), c % 2, True)
            for q, two in enumerate(inputs):
                at = c * p.pixels + q
                totals[at] = add_products(k, two, factor, totals[at])
    return totals


def vector_of(k: Builder, numbers: Sequence[Val]) -> Val:
    y = k.const(0, numbers[0].dtype, len(numbers))
    for lane, x in enumerate(numbers):
        y = k.with_lane(y, lane, x)
    return y


def put(k: Builder, p: Any, a: SimpleNamespace, sums: Sequence[Val], residual: Ptr, out: Ptr, block: Val) -> None:
    """Store the results of sums ``[channels][pixels]``; rows of a matrix have no channels beyond the last."""
    if not p.bounded:
        vectors = [vector_of(k, sums[q :: p.pixels]) for q in range(p.pixels)]
        finish(k, p, a, vectors, residual, out, block)
        return
    for c in range(GROUP):
        channel = block * GROUP + c
        inside = k.count(channel) < k.count(a.channels) if p.is_rows else k.const(1, "b1")
        with k.if_(inside):
            scale = scale_of(k, p, a, k.const(0, "i8") if p.has_one_scale else channel)
            put_channel(k, p, a, sums[c * p.pixels : (c + 1) * p.pixels], scale, out + c)


def start_of(k: Builder, p: Any, a: SimpleNamespace, channel: Val) -> Val:
    """Return the initial sum of a channel."""
    start = a.bias.load(channel)
    return start >> PLACE_BITS if p.joins_places else start


def scale_of(k: Builder, p: Any, a: SimpleNamespace, channel: Val) -> tuple[Val, Val]:
    """Return the factor and the places of a channel of a bounded result."""
    factors = a.scale.as_dtype("i4")
    if p.joins_places:
        return factors.load(channel), a.bias.load(channel) & (1 << PLACE_BITS) - 1
    shift = k.cast((factors + a.shifts).as_dtype("i1").load(channel), "i4")
    return factors.load(channel), places_of(shift, p.fixed == "once")


def put_channel(k: Builder, p: Any, a: SimpleNamespace, sums: Sequence[Val], scale: tuple[Val, Val], out: Ptr) -> None:
    """Store the bytes of one channel of neighbouring pixels."""
    step, once = a.o_step if p.is_rows else GROUP, p.fixed == "once"
    factor, places = scale
    half = half_of(k, places, k.cast(a.zero, "i4"))
    for q, x in enumerate(sums):
        y = bounded_byte(k, p, a, scaled(k, x, factor, places, half, once))
        out.store(k.cast(y, "u1"), step * q)


def bounded_byte(k: Builder, p: Any, a: SimpleNamespace, x: Val) -> Val:
    """Return an int32 between the bounds of the result, those of a byte if `p` does not clip."""
    if not p.clips:
        return saturated_byte(k, x)
    return k.smaller(k.larger(x, k.cast(a.low, "i4")), k.cast(a.high, "i4"))


def scaled(k: Builder, x: Val, factor: Val, places: Val, half: Val, once: bool, bits: int = 0) -> Val:
    """Return `fixed_product` plus a zero point, for a bounded `Result`: ``abs(x) < 2**30``, ``-20 <= shift <= -2``.

    Then the upper word of a product is enough. Once: halves of the last place kept lie above it. Twice: the first
    product is that of ``2 * x``, rounded; then halves go away from zero, so a negative number is less by one before.

    Parameters
        x: the sum, times ``2**bits``
        places, half: see `places_of` and `half_of`
    """
    if once:
        y = upper_product(k, x >> bits if bits else x, factor)
    else:
        y = upper_product(k, x >> bits - 1 if bits else x << 1, factor, 1 << 31)
        y = hidden(k, y)  # one multiplication serves both
        y = y + (y >> 31)
    return (y + half) >> places


def half_of(k: Builder, places: Val, zero: Val) -> Val:
    """Return the number that `scaled` adds before it shifts: half of the last place, and a zero point."""
    return ((zero << 1) + 1 << places) >> 1
