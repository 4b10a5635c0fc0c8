"""Pooling over windows, on channel-blocked images (a vector is a block's channels) or on plain views.

Plain rows whose windows lie side by side are computed a vector of columns at a time, all others value by value: the
same bits. Tables describe which taps of a window lie inside the image: per row and per column of the result the first
and the last tap (excluded) and, for averages, that axis's factor of the divisor.
"""

from functools import partial, reduce
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, fold
from cgraph.kernels.llvm.storage import register_dtype
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.windows import larger, least


@final
def window(k: Builder, dtype: str, lanes: int, across: int, kind: str, down: int, over: int) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``. `lanes`: channels of a block; 0 for plain views. `across`: columns of a
    vector; 0 for one column at a time. `down`, `over`: taps of a window, or 0 for a loop over taps.

    Task: one row of one plane (channel or block of channels) of an image, by bands.
    """
    a = k.args()
    with banded_rows(k, a.planes, a.rows, a.band) as (image, channel, row):
        r = [(a.row_table + row * 4).load(i) for i in range(4)]
        x = a.x + (image * a.x_image + channel * a.x_plane + r[3])
        out = a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row)
        inside = k.select((r[0] == 0) & (r[1] == down), a.inner_stop - a.inner, 0) if down else a.inner_stop - a.inner
        with k.loop(0, a.columns - inside if across or down else a.columns) as i:
            column = k.select(i < a.inner, i, i + inside) if across or down else i
            out.store(window_value(k, a, kind, x, r, column, lanes), column * a.o_column)
        if down:
            put_inner(k, a, kind, x, out, r, inside, (lanes, down, over))
        if across:
            with k.loop(0, inside, across) as i:  # the last vector ends with the last of these columns
                column = a.inner + k.smaller(i, inside - across)
                out.store(window_value(k, a, kind, x, r, column, across), column)


def put_inner(
    k: Builder,
    a: SimpleNamespace,
    kind: str,
    x: Ptr,
    out: Ptr,
    r: list[Val],
    inside: Val,
    size: tuple[int, int, int],
) -> None:
    """Store the values of the windows of a row that have all taps inside, without loops over taps.

    Parameters
        size: channels of a block, taps down and across
    """
    lanes, down, over = size
    with k.if_(inside > 0):
        s = [(a.column_table + a.inner * 4).load(i) for i in range(4)]
        first, to, dtype = x + s[3], out + a.inner * a.o_column, register_dtype(x.dtype)
        count = divisor(k, r, s, dtype, lanes)
        with k.loop(0, inside) as i:
            at = first + i * a.x_step
            rows = [at + a.tap_row * j for j in range(down)]
            loads = [row.load(a.tap_column * j, lanes) for row in rows for j in range(over)]
            start = k.const(0, dtype, lanes) if kind == "mean" else loads.pop(0)
            total = reduce(partial(joined, k, kind), loads, start)
            to.store(total / count if kind == "mean" else total, i * a.o_column)


def joined(k: Builder, kind: str, total: Val, value: Val) -> Val:
    return total + value if kind == "mean" else larger(k, total, value)


def divisor(k: Builder, r: list[Val], s: list[Val], dtype: str, lanes: int) -> Val:
    """Return the elements of a window, by what the tables have for its row and column."""
    count = k.cast(r[2] * s[2], dtype)
    return k.splat(count, lanes) if lanes else count


def window_value(k: Builder, a: SimpleNamespace, kind: str, x: Ptr, r: list[Val], column: Val, lanes: int) -> Val:
    """Return the value of a window, or of `lanes` windows; `r`: what the table has for its row."""
    s = [(a.column_table + column * 4).load(i) for i in range(4)]
    dtype = register_dtype(x.dtype)
    empty = k.const(0, dtype, lanes) if kind == "mean" else least(k, dtype, lanes)
    with fold(k, r[0], r[1], [x + s[3], empty]) as down:
        with fold(k, s[0], s[1], down.values) as along:
            at, total = along.values
            along.next = [at + a.tap_column, joined(k, kind, total, at.load(lanes=lanes))]
        down.next = [down.values[0] + a.tap_row, along.values[1]]
    total = down.values[1]
    return total / divisor(k, r, s, dtype, lanes) if kind == "mean" else total
