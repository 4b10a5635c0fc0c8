"""Depthwise convolution on plain images: a vector is neighbouring columns of one channel.

Blocks of two or three channels are mostly empty. Columns whose taps are all inside the image are computed a vector at a
time, the others one by one with the taps inside: the same bits.
"""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import banded_rows, fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pool.emit import Taps, load_apart, taps_of


@final
def window(k: Builder, dtype: str, across: int, step: int) -> None:
    """Task: one row of one channel of an image, by bands."""
    a = k.args()
    with banded_rows(k, a.planes, a.rows, a.band) as (image, channel, row):
        down = taps_of(a.row_table, row, a.tap_row)
        x = a.x + (image * a.x_image + channel * a.x_plane + down.start)
        out = a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row)
        w = a.w + (channel * a.kernel_rows + down.first) * a.kernel_columns
        bias, inside = a.bias.load(channel), a.inner_stop - a.inner

        def put(column: Val, lanes: int) -> None:
            value = sums(k, a, (x, w), (down, taps_of(a.column_table, column, a.tap_column)), bias, lanes, step)
            at = out + column * a.o_column
            ActivationEmitter(k, dtype, lanes).store([value], lambda _, y: at.store(y))

        with k.loop(0, a.columns - inside) as i:
            put(k.select(i < a.inner, i, i + inside), 0)
        with k.loop(0, inside, across) as i:  # the last vector ends with the last of these columns
            put(a.inner + k.smaller(i, inside - across), across)


def sums(
    k: Builder, a: SimpleNamespace, at: tuple[Ptr, Ptr], axes: tuple[Taps, Taps], bias: Val, lanes: int, stride: int
) -> Val:
    """Return the bias and the products of all taps inside, of `lanes` windows."""
    (x, w), (down, along) = at, axes
    start = k.splat(bias, lanes) if lanes else bias
    with fold(k, down.first, down.stop, [x + along.start, w + along.first, start]) as rows:
        x, w, total = rows.values
        with fold(k, along.first, along.stop, [x, w, total]) as s:
            tap, weight, value = s.values
            factor = k.splat(weight.load(), lanes) if lanes else weight.load()
            s.next = [tap + along.step, weight + 1, k.fma(load_apart(k, tap, lanes, stride), factor, value)]
        rows.next = [x + down.step, w + a.kernel_columns, s.values[2]]
    return rows.values[2]
