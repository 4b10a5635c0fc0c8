"""Pooling, its gradient, depthwise convolution and resizing: one pixel of the result per thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.windows import interpolate, larger, larger_with_tap, least
from cgraph.kernels.window.gpu_signature import THREADS


@block(THREADS)
def pool(k: GpuBuilder, dtype: str, kind: str) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``."""
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        r, s, x = own_window(a, image, plane, row, column)
        total = k.slot(k.const(0, dtype) if kind == "mean" else least(k, dtype, 0))
        with k.loop(0, r[1] - r[0]) as i, k.loop(0, s[1] - s[0]) as j:
            value = x.load(i * a.tap_row + j * a.tap_column)
            total.value = total.value + value if kind == "mean" else larger(k, total.value, value)
        reduction = total.value
        out.store(reduction / k.cast(r[2] * s[2], dtype) if kind == "mean" else reduction)


@block(THREADS)
def depthwise(k: GpuBuilder, dtype: str, biased: bool) -> None:
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        x = a.x + (image * a.x_image + plane * a.x_plane + row * a.x_row + column * a.x_column)
        w = a.w + plane * (a.kernel_rows * a.kernel_columns)
        total = k.slot(a.bias.load(plane) if biased else k.const(0.0, dtype))
        with k.loop(0, a.kernel_rows) as i, k.loop(0, a.kernel_columns) as j:
            value = x.load(i * a.tap_row + j * a.tap_column)
            total.value = k.fma(value, w.load(i * a.kernel_columns + j), total.value)
        out.store(activation(k, dtype)(total.value))


@block(THREADS)
def indices(k: GpuBuilder, dtype: str) -> None:
    """Emit the kernel of `cgraph.kernels.pool_indices.emit.indices` for a GPU."""
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        r, s, x = own_window(a, image, plane, row, column)
        best, place = k.slot(least(k, dtype, 0)), k.slot(k.cast(r[0] * a.taps + s[0], "i4"))
        with k.loop(r[0], r[1]) as i, k.loop(s[0], s[1]) as j:
            value, tap = x.load((i - r[0]) * a.tap_row + (j - s[0]) * a.tap_column), k.cast(i * a.taps + j, "i4")
            best.value, place.value = larger_with_tap(k, value, tap, best.value, place.value)
        out.store(place.value)


@block(THREADS)
def spread(k: GpuBuilder, dtype: str) -> None:
    """Add windows in order: those with the last of their taps at the pixel come first."""
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        p, g = a.p + (image * a.p_image + plane * a.p_plane), a.g + (image * a.g_image + plane * a.g_plane)
        total = k.slot(k.const(0, dtype))
        with k.loop(0, a.r) as i:
            tap_row = a.r - 1 - i
            down, is_row = window_at(row + a.top - tap_row * a.tall, a.down, a.p_rows)
            with k.if_(is_row), k.loop(0, a.s) as j:
                tap = a.s - 1 - j
                across, is_column = window_at(column + a.left - tap * a.wide, a.across, a.p_columns)
                with k.if_(is_column):
                    index = p.load(down * a.p_row + across * a.p_column)
                    with k.if_(k.cast(index, "i8") == tap_row * a.s + tap):
                        total.value = total.value + g.load(down * a.g_row + across * a.g_column)
        out.store(total.value)


def window_at(first: Val, step: Val, count: Val) -> tuple[Val, Val]:
    """Return the number of the window whose first tap lies at `first`, and whether it exists."""
    k = first.k
    start = k.larger(first, 0)
    number = k.cast(k.cast(start, "u4") // k.cast(step, "u4"), "i8")
    return number, (first >= 0) & (number * step == first) & (number < count)


@block(THREADS)
def nearest(k: GpuBuilder, dtype: str) -> None:
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        x = a.x + (image * a.x_image + plane * a.x_plane)
        out.store(x.load(a.row_table.load(row) + a.column_table.load(column)))


@block(THREADS)
def linear(k: GpuBuilder, dtype: str) -> None:
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        x = a.x + (image * a.x_image + plane * a.x_plane)
        lines = [x + (a.row_table + row * 2).load(i) for i in (0, 1)]
        at = [(a.column_table + column * 2).load(i) for i in (0, 1)]
        across = a.column_weights.load(column)
        above, below = (interpolate(line.load(at[0]), line.load(at[1]), across) for line in lines)
        out.store(interpolate(above, below, a.row_weights.load(row)))


def own_window(a: SimpleNamespace, image: Val, plane: Val, row: Val, column: Val) -> tuple[list[Val], list[Val], Ptr]:
    """Return per axis first tap, last tap (excluded), divisor and offset of the first tap; and its address."""
    tables = (a.row_table, row), (a.column_table, column)
    r, s = ([(table + place * 4).load(i) for i in range(4)] for table, place in tables)
    return r, s, a.x + (image * a.x_image + plane * a.x_plane + r[3] + s[3])


@contextmanager
def own_pixel(k: GpuBuilder, a: SimpleNamespace) -> Iterator[tuple[Val, Val, Val, Val, Ptr]]:
    """Yield image, plane, row and column of this thread's pixel, and its address; skip threads without a pixel."""
    with k.if_(k.task() < a.count):
        image, plane, row, column = k.digits(k.task(), a.planes, a.rows, a.columns)
        out = a.out + (image * a.o_image + plane * a.o_plane + row * a.o_row + column * a.o_column)
        yield image, plane, row, column, out
