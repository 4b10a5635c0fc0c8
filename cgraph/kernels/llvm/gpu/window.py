"""Pools and depthwise convolution in blocks of threads: a pixel of the result for each, neighbours in a row."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm.epilogue import activation
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.pool import larger, least
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.signatures.gpu.window import THREADS


@block(THREADS)
def pool(k: GpuBuilder, dtype: str, kind: str) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``."""
    a = k.args()
    with own_pixel(k, a) as (image, plane, row, column, out):
        r, s = (
            [(table + place * 4).load(i) for i in range(4)]
            for table, place in ((a.row_table, row), (a.column_table, column))
        )
        x = a.x + (image * a.x_image + plane * a.x_plane + r[3] + s[3])
        total = k.slot(k.const(0, dtype) if kind == "mean" else least(k, dtype, 0))
        with k.loop(0, r[1] - r[0]) as i, k.loop(0, s[1] - s[0]) as j:
            value = x.load(i * a.tap_row + j * a.tap_column)
            total.value = total.value + value if kind == "mean" else larger(k, total.value, value)
        found = total.value
        out.store(found / k.cast(r[2] * s[2], dtype) if kind == "mean" else found)


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


@contextmanager
def own_pixel(k: GpuBuilder, a: SimpleNamespace) -> Iterator[tuple[Val, Val, Val, Val, Ptr]]:
    """Image, plane, row and column of this thread's pixel, and where it goes; nothing beyond the last one."""
    with k.if_(k.task() < a.count):
        image, plane, row, column = k.digits(k.task(), a.planes, a.rows, a.columns)
        out = a.out + (image * a.o_image + plane * a.o_plane + row * a.o_row + column * a.o_column)
        yield image, plane, row, column, out
