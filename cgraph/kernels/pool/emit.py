"""Pooling over windows, on channel-blocked images (a vector is a block's channels) or on plain views, value by value.

Tables describe which taps of a window lie inside the image: per row and per column of the result the first and the last
tap (excluded) and, for averages, that axis's factor of the divisor.
"""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, fold
from cgraph.kernels.llvm.windows import larger, least


@final
def window(k: Builder, dtype: str, is_blocked: bool, kind: str) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``.

    Task: one row of one plane (channel or block of channels) of an image, by bands.
    """
    a = k.args()
    lanes = k.target.channels_of(dtype) if is_blocked else 0
    empty = k.const(0, dtype, lanes) if kind == "mean" else least(k, dtype, lanes)
    with banded_rows(k, a.planes, a.rows, a.band) as (image, channel, row):
        r = [(a.row_table + row * 4).load(i) for i in range(4)]
        x = a.x + (image * a.x_image + channel * a.x_plane + r[3])
        out = a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row)
        with k.loop(0, a.columns) as column:
            s = [(a.column_table + column * 4).load(i) for i in range(4)]
            with fold(k, r[0], r[1], [x + s[3], empty]) as down:
                with fold(k, s[0], s[1], down.values) as across:
                    at, total = across.values
                    value = at.load(lanes=lanes)
                    across.next = [at + a.tap_column, total + value if kind == "mean" else larger(k, total, value)]
                down.next = [down.values[0] + a.tap_row, across.values[1]]
            result = down.values[1]
            if kind == "mean":
                count = k.cast(r[2] * s[2], dtype)
                result = result / (k.splat(count, lanes) if lanes else count)
            out.store(result, column * a.o_column)
