"""Depthwise convolution of channel-blocked bytes by 3 x 3 filters, on processors that multiply halves of words.

Three rows of a block of four channels lie on the stack as planes of halves, one for each channel: a word is two
neighbouring pixels of a channel. Each row is unpacked once, into the place of the row that is no longer read. Rows do
not move; the filter's rows rotate. A row of a filter is three bytes, which unpack to the pairs (a, b) and (b, c). The
first of two neighbouring results is the sum of the first pixels times (a, b) and of the next one times c, the second
that of the second pixel times a and of the next ones times (b, c); with a stride of 2 all are as the first.
"""

from collections.abc import Sequence
from types import SimpleNamespace

from cgraph.kernels.conv8.halves_emit import bounded_byte, half_of, scale_of, scaled, start_of
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import apart, each_task, fold, hidden, repeat
from cgraph.kernels.llvm.halves import (
    add_crossed,
    add_products,
    bytes_as_halves,
    high_halves,
    load_pair,
    low_halves,
    store_pair,
)
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record

TAPS = 3  # rows and columns of a filter
CONSTANTS = 4  # words of a channel before its filter
ROWS = 2 * TAPS - 1  # of a filter on the stack: any three that follow one another are all
FILTER = CONSTANTS + 2 * ROWS  # words of a channel's constants and filter


class Tile(Record):
    """The params of `blocks`.

    Fields
        room: words of a row of a plane, two pixels each
        stride: columns from one result to the next, 1 or 2
        is_odd: the last result of a row has no neighbour
        fixed, clips, joins_places: as in `cgraph.kernels.conv8.halves_emit.Tile`
    """

    room: int
    stride: int
    is_odd: bool
    fixed: str
    clips: bool
    joins_places: bool

    @property
    def plane(self) -> int:
        """Words of the rows of one channel."""
        return TAPS * self.room


@final
def blocks(k: Builder, *params) -> None:
    """Emit the results. Task: a block of channels of an image."""
    p = Tile(*params)
    a = k.args()
    k.function.attributes.append("noinline")  # stacks of two kernels would add up
    planes, filters = (Ptr(k, k.stack("i4", 0, GROUP * n, align=8), "i4") for n in (p.plane, FILTER))
    down, zero = k.cast(a.down, "i4"), k.const(0, "i4")
    with each_task(k, a.blocks) as (image, block):
        unpack_filters(k, p, a, block * GROUP, filters)
        x = a.x + (image * a.x_image + block * a.x_plane)
        first_out = a.out + (image * a.o_image + block * a.o_plane)
        with repeat(k, a.rows, [x, k.const(TAPS, "i4"), zero, first_out]) as rows:
            x, fresh, slot, out = rows.values
            with repeat(k, fresh, [x, slot]) as s:
                x, slot = s.values
                unpack_row(k, p, a, x, planes + slot * p.room)
                s.next = [x + a.tap_row, k.select(slot == TAPS - 1, zero, slot + 1)]
            x, slot = s.values
            top = k.select(slot == 0, zero, k.const(TAPS, "i4") - slot)  # row of the filter at the first place
            with repeat(k, k.const(GROUP, "i8"), [planes, filters, out]) as s:
                channel_planes, filter_, channel_out = s.values
                put_channel(k, p, a, channel_planes, filter_, top, channel_out)
                s.next = [channel_planes + p.plane, filter_ + FILTER, channel_out + 1]
            rows.next = [x, down, slot, out + a.o_row]


def unpack_filters(k: Builder, p: Tile, a: SimpleNamespace, first: Val, to: Ptr) -> None:
    """Store four filters: ``[channels]`` bias, factor, places and half of `scaled`, then rows as two pairs, of which
    the first two follow again.
    """
    with k.loop(0, GROUP) as c:
        channel, at = first + c, to + c * FILTER
        (factor, places), w = scale_of(k, p, a, channel), a.w + channel * TAPS**2
        store_pair(k, at, start_of(k, p, a, channel), factor)
        store_pair(k, at + 2, places, half_of(k, places, k.cast(a.zero, "i4")))
        for row in range(TAPS):
            taps = [k.cast(w.load(TAPS * row + column), "i4") for column in range(TAPS)]
            pairs = [low_halves(k, x, y) for x, y in zip(taps, taps[1:])]
            for place in range(row, ROWS, TAPS):
                store_pair(k, at + (CONSTANTS + 2 * place), *pairs)


def unpack_row(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, to: Ptr) -> None:
    """Store a row of four channels as words of two pixels of a channel."""
    with fold(k, 0, a.width >> 1, [x, to]) as s:
        x, to = s.values
        unpack_pixels(k, p, [x, x + GROUP], to)
        s.next = [x + 2 * GROUP, to + 1]
    x, to = s.values
    with k.if_((a.width & 1) != 0):
        unpack_pixels(k, p, [x, x], to)


def unpack_pixels(k: Builder, p: Tile, pixels: Sequence[Ptr], to: Ptr) -> None:
    """Store two pixels of four channels."""
    words = [x.as_dtype("i4").load(align=1) for x in pixels]
    for odd in range(2):
        first, second = (bytes_as_halves(k, word, odd, False) for word in words)
        to.store(low_halves(k, first, second), odd * p.plane)
        to.store(high_halves(k, first, second), (odd + 2) * p.plane)


def put_channel(k: Builder, p: Tile, a: SimpleNamespace, rows: Ptr, filter_: Ptr, top: Val, out: Ptr) -> None:
    """Store a row of results of one channel; `top`: the row of the filter for the first of the rows."""
    numbers = SimpleNamespace()
    numbers.bias, numbers.factor = load_pair(k, filter_)
    numbers.places, numbers.half = load_pair(k, filter_ + 2)
    taps = filter_ + CONSTANTS + 2 * top
    with repeat(k, a.columns >> 1, [rows, out]) as s:
        rows, out = (apart(k, x) for x in s.values)
        for i, y in enumerate(results(k, p, a, rows, apart(k, taps), numbers, 2)):
            out.store(y, i * GROUP)
        s.next = [rows + p.stride, out + 2 * GROUP]
    if p.is_odd:
        rows, out = s.values
        out.store(results(k, p, a, rows, taps, numbers, 1)[0])


def results(
    k: Builder, p: Tile, a: SimpleNamespace, at: Ptr, taps: Ptr, numbers: SimpleNamespace, count: int
) -> list[Val]:
    """Return one result, or two neighbouring ones."""
    sums = [numbers.bias] * count
    for slot in range(TAPS):
        row = at + slot * p.room
        words = [*load_pair(k, row), *([row.load(2)] if p.stride * (count - 1) == 2 else [])]
        sums = add_row(k, p, sums, words, *load_pair(k, taps + 2 * slot))
    factor = hidden(k, numbers.factor)  # the instruction is of words, not of numbers that were widened before
    scale = factor, numbers.places, numbers.half, p.fixed == "once"
    return [k.cast(bounded_byte(k, p, a, scaled(k, y, *scale)), "u1") for y in sums]


def add_row(k: Builder, p: Tile, sums: Sequence[Val], words: Sequence[Val], first: Val, second: Val) -> list[Val]:
    """Return the sums of one result, or of two neighbouring ones, plus the products of one row of taps."""
    left = add_crossed(k, words[1], second, add_products(k, words[0], first, sums[0]), 0)
    if len(sums) == 1:
        return [left]
    if p.stride == 2:
        return [left, add_crossed(k, words[2], second, add_products(k, words[1], first, sums[1]), 0)]
    return [left, add_products(k, words[1], second, add_crossed(k, words[0], first, sums[1], 1))]
