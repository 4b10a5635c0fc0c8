"""Calls of max pooling's gradient, on blocked images and on plain ones in C order."""

import numpy as np

from cgraph.kernels.calls.blocked import Blocked
from cgraph.kernels.calls.images import Images, Planes, planes_of, same_planes
from cgraph.kernels.calls.lowered import Lowered, chunk_of
from cgraph.kernels.calls.pool import taps_inside
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Call, Kernel, Pointer, View

Arguments = tuple[int | Pointer, ...]


def place_calls(out: Images, x: Images, window: Window) -> Lowered:
    """``out`` (int32) = the position of the largest element in each window of `x`."""
    to, source = same_planes(out, x)
    tables = tables_of(to, source, window)
    tasks = to.n * to.count * to.rows
    kernel = Kernel("pool_places.places", (x.dtype, isinstance(x, Blocked)))
    args = window_args(to, source, window, tables)
    call = Call(kernel, args, tasks, chunk_of(tasks, to.columns * (window.taps * 0.8 + 5)))
    return Lowered((call,) if tasks * to.columns else (), tables)


def spread_calls(out: Images, places: Images, g: Images, window: Window) -> Lowered:
    """``out`` = the elements `g` added up at their places."""
    if isinstance(out, View):
        assert isinstance(places, View) and isinstance(g, View)
        return Lowered(tuple(plain_spread_calls(out, places, g, window)))
    to, source = same_planes(places, out)
    given = planes_of(g)
    tables = tables_of(to, source, window)
    tasks = to.n * to.count
    args = (
        *window_args(to, source, window, tables),
        given.at, given.image, given.plane, given.row, source.rows, source.columns, source.row,
    )  # fmt: skip
    chunk = chunk_of(tasks, to.rows * to.columns * window.taps * 1.0)
    return Lowered((Call(Kernel("pool_places.spread_blocked", (out.dtype,)), args, tasks, chunk),), tables)


def tables_of(to: Planes, source: Planes, window: Window) -> tuple[np.ndarray, np.ndarray]:
    """The taps that lie inside the image, per row and per column of windows."""
    (r, s), (down, across), (top, left, bottom, right) = window.kernel, window.stride, window.pad
    rows = taps_inside(to.rows, source.rows, r, down, window.dilation[0], top, bottom, False)
    columns = taps_inside(to.columns, source.columns, s, across, window.dilation[1], left, right, False)
    for table, step in ((rows, source.row), (columns, source.column)):
        table[:, 3] *= step
    return rows, columns


def window_args(to: Planes, source: Planes, window: Window, tables: tuple[np.ndarray, np.ndarray]) -> Arguments:
    return (
        Pointer(tables[0]), Pointer(tables[1]), window.kernel[1],
        source.at, source.image, source.plane, source.row * window.dilation[0], source.column * window.dilation[1],
        to.at, to.image, to.plane, to.row, to.column, to.rows, to.columns, to.count,
    )  # fmt: skip


def plain_spread_calls(out: View, places: View, g: View, window: Window) -> list[Call]:
    (r, s), (top, left, _, _) = window.kernel, window.pad
    geometry = (*out.shape[2:], *g.shape[2:], r, s, *window.stride, top, left, *window.dilation)
    tasks = out.shape[0] * out.shape[1]
    kernel = Kernel("pool_places.spread", (g.dtype,))
    args: Arguments = (places.at, g.at, out.at, *geometry)
    return [Call(kernel, args, tasks, chunk_of(tasks, g.shape[2] * g.shape[3] * 3.0))] if out.size else []
