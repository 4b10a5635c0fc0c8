"""Average pooling of channel-blocked bytes: the bytes of the mean of floats, mostly from sums of integers.

The meaning is in float32 with a rounding after each operation: bytes become floats, which are added one after another,
divided by their number and by the scale of the result, and rounded. The kernel adds bytes as integers, and multiplies
the sum by a factor. Both quotients differ by less than a bound (`cgraph.kernels.pool8.rounding_margin`), so they
round to the same byte unless one is as near to the middle between two integers. Such quotients are rare; a group
of pixels that has one is computed again in floats.

Where no sum is as near and a product of 16 bits has the byte of every sum (`cgraph.kernels.pool8.fixed_mean`), windows
inside the image need no floats. Even and odd bytes are then two vectors of 16-bit numbers.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, round_to_integer, store_bytes
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, change_if, fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vfloat import any_lane, magnitude
from cgraph.record import Record


class PixelGroup(Record, eq=False):
    """Neighbouring pixels of the result, whose windows have the same taps.

    Fields
        x: the first tap of the first pixel
        taps: first tap and the one after the last, down and across
        divisor: elements of a window, as float32
        places: elements from `x` to each vector of the group
    """

    x: Ptr
    taps: tuple[Val, Val, Val, Val]
    divisor: Val
    places: Sequence[Val]


@final
def window(k: Builder, lanes: int, sum_dtype: str, down: int, over: int) -> None:
    """Emit the means. Task: one row of one plane (block of channels) of an image, by bands.

    Parameters
        down, over: taps of windows that are computed by integers alone where all taps are inside, or 0
    """
    a, pixels = k.args(), max(GROUP * k.target.lanes // lanes, 1)
    with banded_rows(k, a.planes, a.rows, a.band) as (image, plane, row):
        r = [(a.row_table + row * 4).load(i) for i in range(4)]
        x = a.x + (image * a.x_image + plane * a.x_plane + r[3])
        out = a.out + (image * a.o_image + plane * a.o_plane + row * a.o_row)
        inside = a.inner_stop - a.inner
        whole = k.select((r[0] == 0) & (r[1] == down), inside, 0) if down else 0

        def put(column: Val, count: int) -> None:
            """Store neighbouring pixels from a column on."""
            s = [(a.column_table + column * 4).load(i) for i in range(4)]
            divisor = k.cast(r[2] * s[2], "f4")
            channels = min(lanes, GROUP * k.target.lanes)  # of a pixel at once
            places = [a.x_step * q + v for q in range(count) for v in range(0, channels, k.target.lanes)]
            with k.loop(0, lanes, channels) as first:
                group = PixelGroup(x + (s[3] + first), (r[0], r[1], s[0], s[1]), divisor, places)
                put_group(k, a, group, sum_dtype, out + (column * lanes + first))

        with k.loop(0, a.columns - inside) as i:
            put(k.select(i < a.inner, i, i + inside), 1)
        # the last group ends with the last of these columns
        with k.loop(whole, inside, pixels) as i:
            put(a.inner + k.smaller(i, inside - pixels), pixels)
        if down:
            first = x + (a.column_table + a.inner * 4).load(3)
            with k.loop(0, whole, pixels) as i, k.loop(0, lanes, GROUP * k.target.lanes) as channel:
                at = k.smaller(i, inside - pixels)
                to = out + ((a.inner + at) * lanes + channel)
                put_whole(k, a, first + (at * a.x_step + channel), to, down, over)


def put_group(k: Builder, a: SimpleNamespace, group: PixelGroup, sum_dtype: str, out: Ptr) -> None:
    """Store the bytes of a group. Where many quotients are halves, integers are not tried."""
    has_halves = (a.has_halves != 0) & (k.cast(group.divisor, "i4") % 2 == 0)
    unknown = [k.const(0, "f4", k.target.lanes)] * len(group.places)
    with change_if(k, ~has_halves, [has_halves, *unknown]) as tried:
        tried.next = integer_quotients(k, a, group, sum_dtype)
    needs_floats, *ys = tried.values
    with change_if(k, needs_floats, ys) as s:
        s.next = float_quotients(k, a, group)
    store_bytes(k, out, s.values, k.cast(a.zero, "i2"), k.cast(a.low, "u1"), k.cast(a.high, "u1"))


def integer_quotients(k: Builder, a: SimpleNamespace, group: PixelGroup, sum_dtype: str) -> list[Val]:
    """Return whether one of the quotients by integers is near the middle between two, and the quotients."""
    lanes = k.target.lanes
    factor, slope, edge = (
        k.splat(x, lanes) for x in (k.cast(a.ratio, "f4") / group.divisor, k.cast(a.slope, "f4"), k.cast(a.edge, "f4"))
    )
    ys = [k.cast(k.cast(y, "i4"), "f4") * factor for y in integer_sums(k, a, group, sum_dtype)]
    nearness = [k.fma(magnitude(k, y), slope, magnitude(k, y - round_to_integer(k, y))) for y in ys]
    return [any_lane(k, reduce(k.larger, nearness) > edge), *ys]


def put_whole(k: Builder, a: SimpleNamespace, x: Ptr, out: Ptr, down: int, over: int) -> None:
    """Store the bytes of a group whose windows have all taps inside."""
    lanes = 2 * k.target.lanes
    taps = [x + (a.tap_row * i + a.tap_column * j) for i in range(down) for j in range(over)]
    pairs = [tap.as_dtype("u2").load(lanes=lanes, align=1) for tap in taps]
    even, odd = (reduce(operator.add, values) for values in ([y & 0xFF for y in pairs], [y >> 8 for y in pairs]))
    out.as_dtype("u2").store(fixed_byte(k, a, even) | fixed_byte(k, a, odd) << 8, align=1)


def fixed_byte(k: Builder, a: SimpleNamespace, total: Val) -> Val:
    """Return the bytes of sums of 16 bits, as `FixedMean` says."""
    shift, factor, plus, minus, fraction, low, high = (
        k.splat(k.cast(x, "u2"), total.lanes) for x in (a.shift, a.factor, a.plus, a.minus, a.fraction, a.low, a.high)
    )
    product = k.cast((k.cast(total << shift, "u4") * k.cast(factor, "u4")) >> 16, "u2")
    rounded = k.intrinsic("usub.sat", k.intrinsic("uadd.sat", product, plus), minus) >> fraction
    return k.intrinsic("umin", k.intrinsic("umax", rounded, low), high)


def integer_sums(k: Builder, a: SimpleNamespace, group: PixelGroup, dtype: str) -> list[Val]:
    """Return the sums of bytes less the zero point."""
    first, last, left, right = group.taps
    count = (last - first) * (right - left)
    start = k.splat(k.cast(-(count * a.x_zero), dtype), k.target.lanes)
    return add_taps(k, a, group, start, lambda y: k.cast(y, dtype))


def float_quotients(k: Builder, a: SimpleNamespace, group: PixelGroup) -> list[Val]:
    """Return the means over the scale of the result, in the order and with the roundings of floats."""
    lanes = k.target.lanes
    scale, last = (k.splat(k.cast(x, "f4"), lanes) for x in (a.scale, a.last))
    zero, divisor = k.splat(k.cast(a.x_zero, "i4"), lanes), k.splat(group.divisor, lanes)
    totals = add_taps(k, a, group, k.const(0, "f4", lanes), lambda y: k.cast(k.cast(y, "i4") - zero, "f4") * scale)
    return [y / divisor / last for y in totals]


def add_taps(k: Builder, a: SimpleNamespace, group: PixelGroup, start: Val, value: Callable[[Val], Val]) -> list[Val]:
    """Return the sums of the values of all taps, row by row."""
    first, last, left, right = group.taps
    with fold(k, first, last, [group.x, *[start] * len(group.places)]) as down:
        with fold(k, left, right, down.values) as along:
            at, *totals = along.values
            loads = [(at + place).load(lanes=start.lanes) for place in group.places]
            along.next = [at + a.tap_column, *(total + value(y) for total, y in zip(totals, loads))]
        down.next = [down.values[0] + a.tap_row, *along.values[1:]]
    return down.values[1:]
