"""Pooling over windows, on channel-blocked images (a vector is a block's channels) or on plain views.

Plain rows whose windows lie side by side are computed a vector of columns at a time, all others value by value: the
same bits. Tables describe which taps of a window lie inside the image: per row and per column of the result the first
and the last tap (excluded) and, for averages, that axis's factor of the divisor.
"""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, fold
from cgraph.kernels.llvm.storage import register_dtype
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.windows import larger, least


@final
def window(k: Builder, dtype: str, lanes: int, across: int, kind: str) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``. `lanes`: channels of a block; 0 for plain views. `across`: columns of a
    vector; 0 for one column at a time.

    Task: one row of one plane (channel or block of channels) of an image, by bands.
    """
    a = k.args()
    with banded_rows(k, a.planes, a.rows, a.band) as (image, channel, row):
        r = [(a.row_table + row * 4).load(i) for i in range(4)]
        x = a.x + (image * a.x_image + channel * a.x_plane + r[3])
        out = a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row)
        inside = a.inner_stop - a.inner
        with k.loop(0, a.columns - inside if across else a.columns) as i:
            column = k.select(i < a.inner, i, i + inside) if across else i
            out.store(window_value(k, a, kind, x, r, column, lanes), column * a.o_column)
        if not across:
            return
        with k.loop(0, inside, across) as i:  # the last vector ends with the last of these columns
            column = a.inner + k.smaller(i, inside - across)
            out.store(window_value(k, a, kind, x, r, column, across), column)


def window_value(k: Builder, a: SimpleNamespace, kind: str, x: Ptr, r: list[Val], column: Val, lanes: int) -> Val:
    """Return the value of a window, or of `lanes` windows; `r`: what the table has for its row."""
    s = [(a.column_table + column * 4).load(i) for i in range(4)]
    dtype = register_dtype(x.dtype)
    empty = k.const(0, dtype, lanes) if kind == "mean" else least(k, dtype, lanes)
    with fold(k, r[0], r[1], [x + s[3], empty]) as down:
        with fold(k, s[0], s[1], down.values) as along:
            at, total = along.values
            value = at.load(lanes=lanes)
            along.next = [at + a.tap_column, total + value if kind == "mean" else larger(k, total, value)]
        down.next = [down.values[0] + a.tap_row, along.values[1]]
    if kind != "mean":
        return down.values[1]
    count = k.cast(r[2] * s[2], dtype)
    return down.values[1] / (k.splat(count, lanes) if lanes else count)
