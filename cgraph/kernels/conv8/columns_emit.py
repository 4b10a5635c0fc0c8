"""Convolution of channel-blocked bytes whose pixels are unpacked once for all channels of the result, on processors
that multiply halves of words.

The words of two neighbouring pixels become halves on the stack. Weights stay bytes, and only every other one is
unpacked: a word of four weights is also read as two numbers of 16 bits. For bytes u, v of a pixel and their weights a,
b, a half of the word is ``256 * -a + b``, and the halves of the pixel are ``-1 - u`` and ``256 * (v - 128) + u``:

    (-1 - u) * (256 * -a + b) + (256 * (v - 128) + u) * b == 256 * (a * u + b * v) + 256 * a - 32769 * b

So sums are 256 times those of the convolution, and initial sums make up for the rest, which no pixel changes. Sums
wrap, but their ends are below 2**31: the convolution's are below 2**23, and no ``a`` is -128. The low eight bits of a
sum are those of its initial one, less what the weights change: there it has the places by which it is shifted at last.
"""

from collections.abc import Sequence
from types import SimpleNamespace

from cgraph.kernels.conv8.columns_signature import NUMBERS
from cgraph.kernels.conv8.halves_emit import bounded_byte, half_of, scaled
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import apart, each_task, repeat
from cgraph.kernels.llvm.halves import add_products, bytes_as_halves, load_pair, store_pair
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record

PIXELS = 2  # whose sums are in registers
PAIR = 2  # channels whose sums are in registers
BITS = 8  # sums are those of the convolution times two to this power
PLACES = 127  # the low bits of a sum, below those that a result reads
HALVES = 2  # words into which a word of a pixel is unpacked
LOW_BYTES, SIGN = 0x00FF00FF, -0x7FFF8000  # 0x80008000: bytes 1 and 3 less 128


class Tile(Record):
    """The params of `rows`.

    Fields
        room: most words of a pixel
        taps, tap_step: taps that are unpacked together, and the bytes from one to the next
        turns: words of one round of the loop
        x_step: bytes from one pixel to the next
        fixed, clips, is_rows, is_even: as in `cgraph.kernels.conv8.halves_emit.Tile`
    """

    room: int
    taps: int
    tap_step: int
    turns: int
    x_step: int
    fixed: str
    clips: bool
    is_rows: bool
    is_even: bool


@final
def rows(k: Builder, *params) -> None:
    """Emit the results. Task: a strip of one or two rows of an image; its last tile may overlap the one before."""
    p = Tile(*params)
    a = k.args()
    k.function.attributes.append("noinline")  # stacks of two kernels would add up
    halves = Ptr(k, k.stack("i4", 0, p.room * PIXELS * HALVES, align=8), "i4")
    with each_task(k, a.strips) as (image, strip):
        row = strip * a.height
        x = a.x + (image * a.x_image + row * a.x_row)
        out = a.out + (image * a.o_image + row * a.o_row)
        pixels = k.smaller(a.height, a.rows - row) * a.columns
        with k.loop(0, pixels, PIXELS) as start:
            first = k.smaller(start, pixels - PIXELS)
            places = [place_of(k, a, first + q) for q in range(PIXELS)]
            unpack_pixels(k, p, a, [x + (row * a.x_row + column * p.x_step) for row, column in places], halves)
            put_pairs(k, p, a, halves, [out + (row * a.o_row + column * a.o_step) for row, column in places])


def place_of(k: Builder, a: SimpleNamespace, pixel: Val) -> tuple[Val, Val]:
    """Return row and column of a pixel of a strip."""
    below = pixel >= a.columns
    return k.cast(below, "i8"), pixel - k.select(below, a.columns, 0)


def unpack_pixels(k: Builder, p: Tile, a: SimpleNamespace, pixels: Sequence[Ptr], halves: Ptr) -> None:
    """Store pixels as halves, ``[words][2][pixels]``."""
    moves = [] if p.is_even else [k.pointer(a.moves, "i4")]
    with repeat(k, a.groups, [*pixels, halves, *moves]) as s:
        pixels, moves = s.values[:PIXELS], s.values[PIXELS + 1 :]
        to = apart(k, s.values[PIXELS])
        pixels = [x + moves[0].load() for x in pixels] if moves else pixels
        for tap in range(p.taps):
            words = [(x + tap * p.tap_step).as_dtype("i4").load(align=1) for x in pixels]
            at = to + tap * PIXELS * HALVES
            store_pair(k, at, *((word & LOW_BYTES) ^ -1 for word in words))
            store_pair(k, at + PIXELS, *(word ^ SIGN for word in words))
        pixels = [x + a.move for x in pixels] if p.is_even else pixels
        s.next = [*pixels, to + p.taps * PIXELS * HALVES, *(x + 1 for x in moves)]


def put_pairs(k: Builder, p: Tile, a: SimpleNamespace, halves: Ptr, outs: Sequence[Ptr]) -> None:
    """Store the results of all channels of some pixels: of the first pairs of all blocks, then of the second ones."""
    with repeat(k, k.const(GROUP // PAIR, "i8"), [a.w, a.numbers, k.const(0, "i8"), *outs]) as part:
        w, numbers, first, *outs = part.values
        with repeat(k, a.panels, [w, numbers, first, *outs]) as s:
            w, numbers, channel, *places = s.values
            w, numbers, channel = put_pair(k, p, a, halves, w, numbers, channel, places)
            s.next = [w, numbers, channel, *(x + a.o_plane for x in places)]
        part.next = [*s.values[:2], first + PAIR, *(out + PAIR for out in outs)]


def put_pair(
    k: Builder, p: Tile, a: SimpleNamespace, halves: Ptr, w: Ptr, numbers: Ptr, channel: Val, outs: Sequence[Ptr]
) -> tuple[Ptr, Ptr, Val]:
    """Store the results of two channels; return the next weights, numbers and channel."""
    starts = [numbers.load(c) for c in range(PAIR) for _ in range(PIXELS)]
    w, *sums = add_words(k, p, a, halves, w, starts)
    zero = k.cast(a.zero, "i4")
    for c, factor in enumerate(load_pair(k, numbers + PAIR)):
        places = sums[c * PIXELS] & PLACES
        inside = k.count(channel + c) < k.count(a.channels) if p.is_rows else k.const(1, "b1")
        half = half_of(k, places, zero)
        with k.if_(inside):
            for out, x in zip(outs, sums[c * PIXELS :]):
                y = scaled(k, x, factor, places, half, p.fixed == "once", BITS)
                (out + c).store(k.cast(bounded_byte(k, p, a, y), "u1"))
    return w, numbers + NUMBERS, channel + GROUP


def add_words(k: Builder, p: Tile, a: SimpleNamespace, halves: Ptr, w: Ptr, sums: Sequence[Val]) -> list:
    """Return the address after the weights of two channels, and their sums, ``[channels][pixels]``."""
    with repeat(k, a.rounds, [halves, w, *sums]) as s:
        halves, w, *sums = s.values
        halves, w = apart(k, halves), apart(k, w)
        for turn in range(p.turns):
            weights = [*load_pair(k, w + PAIR * turn)]
            for part in range(HALVES):
                pixels = load_pair(k, halves + (turn * HALVES + part) * PIXELS)
                sums = [add_products(k, x, word, sums[c * PIXELS + q])
                        for c, word in enumerate(weights) for q, x in enumerate(pixels)]  # fmt: skip
                weights = [bytes_as_halves(k, word, 0, True) for word in weights]
        s.next = [halves + p.turns * PIXELS * HALVES, w + p.turns * PAIR, *sums]
    return s.values[1:]
