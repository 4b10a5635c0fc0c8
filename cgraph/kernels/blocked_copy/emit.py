"""Copies between plain and channel-blocked images, halos, and channels that move to other lanes."""

import operator
from functools import partial, reduce
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, first_lanes, masked_load, masked_store, transpose
from cgraph.kernels.llvm.values import Ptr, Val

WORD = 4  # bytes
FEW = 2  # pixels of a row, up to which no square is transposed


@final
def to_blocked(k: Builder, dtype: str, lanes: int) -> None:
    """Plain to channel-blocked; lanes beyond the channels become zero. Task: one row of one block of an image, by
    bands.
    """
    a = k.args()
    with banded_rows(k, a.blocks, a.h, a.band) as (image, block, row):
        x = a.x + (image * a.x_image + row * a.x_row)
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        used = first_lanes(k, a.c - block * lanes, lanes)
        inside = [k.smaller(block * lanes + i, a.c - 1) for i in range(lanes)]
        zero = k.const(0, dtype, lanes)

        def square(column: Val) -> None:
            rows = [(x + channel * a.x_plane).load(column, lanes) for channel in inside]
            for j, pixel in enumerate(transpose(k, rows)):
                out.store(k.select(used, pixel, zero), (column + j) * lanes)

        def part(count: Val) -> None:
            pixels = first_lanes(k, count, lanes)
            rows = [masked_load(k, x + channel * a.x_plane, pixels) for channel in inside]
            for j, pixel in enumerate(transpose(k, rows)):
                with k.if_(count > j):
                    out.store(k.select(used, pixel, zero), j * lanes)

        def single(column: Val) -> None:
            with k.loop(0, lanes) as i:
                channel = block * lanes + i
                value = (x + k.smaller(channel, a.c - 1) * a.x_plane).load(column)
                out.store(k.select(channel < a.c, value, k.const(0, dtype)), column * lanes + i)

        def words(column: Val) -> None:
            loads = [(x + channel * a.x_plane).load(column, k.target.lanes) for channel in inside]
            word = words_of(k, loads, a.c - block * lanes)
            out.as_dtype("u4").store(word, column, align=1)

        if (dtype, lanes) != ("u1", WORD) or k.target.lanes <= lanes:
            in_squares(k, a.w, dtype, lanes, square, part, single)
            return
        with k.if_else(a.w >= k.target.lanes) as (wide, narrow):
            with wide:
                in_squares(k, a.w, dtype, k.target.lanes, words, part, single)
            with narrow:
                in_squares(k, a.w, dtype, lanes, square, part, single)


def words_of(k: Builder, channels: list[Val], count: Val) -> Val:
    """Return words of four bytes, one of each channel; the bytes from `count` on are 0."""
    used = [k.select(count > i, k.cast(x, "u4"), k.const(0, "u4", x.lanes)) for i, x in enumerate(channels)]
    return reduce(operator.or_, [x << 8 * i for i, x in enumerate(used)])


@final
def to_plain(k: Builder, dtype: str, lanes: int) -> None:
    """Channel-blocked to plain. Task: one row of one block of an image, by bands."""
    a = k.args()
    with banded_rows(k, a.blocks, a.h, a.band) as (image, block, row):
        x = a.x + (image * a.x_image + block * a.x_plane + row * a.x_row)
        out = a.out + (image * a.o_image + row * a.o_row)
        count = k.smaller(a.c - block * lanes, lanes)

        def square(column: Val) -> None:
            pixels = [x.load((column + j) * lanes, lanes) for j in range(lanes)]
            for i, channel in enumerate(transpose(k, pixels)):
                with k.if_(count > i):
                    (out + (block * lanes + i) * a.o_plane).store(channel, column)

        def part(columns: Val) -> None:
            inside = first_lanes(k, columns, lanes)
            pixels = [x.load(k.smaller(columns - 1, j) * lanes, lanes) for j in range(lanes)]
            for i, channel in enumerate(transpose(k, pixels)):
                with k.if_(count > i):
                    masked_store(k, out + (block * lanes + i) * a.o_plane, channel, inside)

        def single(column: Val) -> None:
            with k.loop(0, count) as i:
                (out + (block * lanes + i) * a.o_plane).store(x.load(column * lanes + i), column)

        in_squares(k, a.w, dtype, lanes, square, part, single)


def in_squares(k: Builder, count: Val, dtype: str, lanes: int, square, part, single) -> None:
    """Emit squares of `lanes` pixels; the last one overlaps its neighbour.

    Of narrower rows, several pixels of floats are a part of a square; one or two pixels, and those of other dtypes, are
    copied one by one.
    """
    with k.if_else(count >= lanes) as (wide, narrow):
        with wide, k.loop(0, count, lanes) as column:
            square(k.smaller(column, count - lanes))
        with narrow:
            if dtype not in ("f4", "f8"):
                with k.loop(0, count) as column:
                    single(column)
                return
            with k.if_else(count > FEW) as (several, few):
                with several:
                    part(count)
                with few, k.loop(0, count) as column:
                    single(column)


@final
def fill_halo(k: Builder, dtype: str, lanes: int) -> None:
    """Fill the halo of a plane. Task: one row of one block of an image, halo included, by bands."""
    a = k.args()
    rows, columns = a.above + a.h + a.below, k.count(a.before + a.w + a.after)
    above, end, before, after = (k.count(x) for x in (a.above, a.above + a.h, a.before, a.after))
    fill, kind = fill_of(k, k.cast(a.fill, dtype), dtype, lanes)
    with banded_rows(k, a.blocks, rows, a.band) as (image, block, row):
        line = a.out + (image * a.image + block * a.plane + row * a.line)
        number = k.count(row)
        is_outside = (number < above) | (number >= end)
        put = partial(fill_pixels, k, lanes=lanes, kind=kind, fill=fill)
        put(line, k.select(is_outside, columns, before))
        put(line + (a.before + a.w) * lanes, k.select(is_outside, 0, after))


def fill_of(k: Builder, x: Val, dtype: str, lanes: int) -> tuple[Val, str]:
    """Return a number in all lanes of a pixel and its dtype in memory: a vector, or the bytes of a word, which every
    processor stores.
    """
    is_word = (dtype, lanes) == ("u1", WORD)
    return (k.cast(x, "i4") * 0x01010101, "i4") if is_word else (k.splat(x, lanes), dtype)


def fill_pixels(k: Builder, at: Ptr, count: Val, lanes: int, kind: str, fill: Val) -> None:
    with k.loop(0, k.cast(count, "i8")) as i:
        (at + i * lanes).as_dtype(kind).store(fill, align=1 if kind != at.dtype else None)


@final
def channels(k: Builder, dtype: str, is_shifted: bool) -> None:
    """Copy channels from one lane to another: each vector is read from two blocks under masks, and written to two.

    `is_shifted`: either side starts inside a block; else whole blocks are copied. Task: one row of one block of an
    image, by bands, counted from the first channel copied.
    """
    a = k.args()
    with banded_rows(k, a.blocks, a.h, a.band) as (image, block, row):
        x = a.x + (image * a.x_image + block * a.x_plane + row * a.x_row)
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        if is_shifted:
            copy_shifted(k, a, x, out, block)
        else:
            copy_whole(k, a, x, out, block)


def copy_whole(k: Builder, a: SimpleNamespace, x: Ptr, out: Ptr, block: Val) -> None:
    """Copy one row of a whole block; the last block of a value may be partial."""
    lanes = k.target.channels_of(x.dtype)
    with k.if_else((block + 1) * lanes <= a.c) as (whole, cut):
        with whole, k.loop(0, a.w) as column:
            out.store(x.load(column * lanes, lanes), column * lanes)
        with cut:
            copy_shifted(k, a, x, out, block)


def copy_shifted(k: Builder, a: SimpleNamespace, x: Ptr, out: Ptr, block: Val) -> None:
    """Copy one row: `near` is in the first block that a vector overlaps, `far` in the next.

    If no lane is far, `far` is the near vector under an empty mask: an access of no lane to a page that is not there
    takes about 130 ns on a Zen 4.
    """
    lanes = k.target.channels_of(x.dtype)
    lane = k.iota("i4", lanes)
    readable = first_lanes(k, a.c - block * lanes, lanes)
    writable = first_lanes(k, a.stored - block * lanes, lanes)
    x_near = lane < k.splat(k.cast(lanes - a.x_shift, "i4"), lanes)
    o_near = lane < k.splat(k.cast(lanes - a.o_shift, "i4"), lanes)
    x_far = far_offset(k, a.x_shift, a.x_plane, a.c - block * lanes, lanes)
    o_far = far_offset(k, a.o_shift, a.o_plane, a.stored - block * lanes, lanes)
    with k.loop(0, a.w) as column:
        near, far = x + (column * lanes + a.x_shift), x + (column * lanes + x_far)
        value = masked_load(k, near, readable & x_near)
        value = k.select(x_near, value, masked_load(k, far, readable & ~x_near))
        masked_store(k, out + (column * lanes + a.o_shift), value, writable & o_near)
        masked_store(k, out + (column * lanes + o_far), value, writable & ~o_near)


def far_offset(k: Builder, shift: Val, plane: Val, count: Val, lanes: int) -> Val:
    """Return the offset of the vector in the next block, if any of `count` lanes from `shift` on is there."""
    return k.select(k.count(count) + k.count(shift) > lanes, k.count(plane) + k.count(shift) - lanes, k.count(shift))
