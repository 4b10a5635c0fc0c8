"""Resizing by tables of rows and columns, on channel-blocked images or plain views, and by weights of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.windows import interpolate

VECTORS = 4  # of a row whose sums are in registers at a time


@final
def nearest(k: Builder, dtype: str, is_blocked: bool) -> None:
    """Compute ``out[p, q] = x[rows[p], columns[q]]``. Task: one row of one plane of an image."""
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    with each_row(k) as (a, x, out, row):
        x = x + a.row_table.load(row)
        with k.loop(0, a.columns) as column:
            out.store(x.load(a.column_table.load(column), lanes), column * a.o_column)


@final
def linear(k: Builder, dtype: str, is_blocked: bool) -> None:
    """Compute weighted means of two rows and two columns. Task: one row of one plane of an image."""
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    with each_row(k) as (a, x, out, row):
        lines = [x + a.row_table.load(row * 2 + i) for i in (0, 1)]
        weight = a.row_weights.load(row)
        with k.loop(0, a.columns) as column:
            at = [a.column_table.load(column * 2 + i) for i in (0, 1)]
            across = a.column_weights.load(column)
            above, below = (interpolate(line.load(at[0], lanes), line.load(at[1], lanes), across) for line in lines)
            out.store(interpolate(above, below, weight), column * a.o_column)


@final
def weighted(k: Builder, dtype: str) -> None:
    """Compute ``out[p, i] = sum over t of weights[i, t] * x[p, first[i] + t]``. Task: one row of one plane."""
    lanes, a = k.target.lanes_of(dtype), k.args()
    with k.task_loop() as task:
        plane, row = divmod_of(task, a.rows)
        x = a.x + (plane * a.x_plane + a.first.load(row) * a.x_row)
        weights = a.weights + row * a.taps
        out = a.out + (plane * a.o_plane + row * a.o_row)

        def add_rows(at: Val, lanes: int) -> None:
            with fold(k, 0, a.taps, [x + at, k.const(0.0, dtype, lanes)]) as s:
                line, total = s.values
                weight = weights.load(s.i)
                s.next = [
                    line + a.x_row,
                    k.fma(k.splat(weight, lanes) if lanes else weight, line.load(0, lanes), total),
                ]
            out.store(s.values[1], at)

        whole = a.width - a.width % (VECTORS * lanes)
        with k.loop(0, whole, VECTORS * lanes) as at:
            add_rows(at, VECTORS * lanes)
        k.tail_loop(a.width - whole, lanes, lambda at, count: add_rows(at + whole, count))


@contextmanager
def each_row(k: Builder) -> Iterator[tuple[Any, Ptr, Ptr, Val]]:
    """Yield for each task the arguments, the plane that it reads, the row that it writes, and the row's number."""
    a = k.args()
    with k.task_loop() as task:
        plane, row = divmod_of(task, a.rows)
        image, channel = divmod_of(plane, a.planes)
        x = a.x + (image * a.x_image + channel * a.x_plane)
        yield a, x, a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row), row
