"""Calls of max pooling's gradient, on channel-blocked images and on plain ones in C order."""

import numpy as np

from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.pool.calls import tables_of
from cgraph.kernels.pool_indices.signature import INDICES, SPREAD, SPREAD_BLOCKED
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import Images, Planes, is_plane_by_plane, planes_of, same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.window import Window
from cgraph.late import LateModule

gpu_window = LateModule("cgraph.kernels.window.gpu_calls")


def place_calls(target: Target, out: Images, x: Images, window: Window) -> KernelCalls:
    """Write the index of the largest element in each window of `x` to `out` (int32)."""
    to, source = same_planes(out, x)
    tables = tables_of(to, source, window)
    blocks = (
        in_blocks(target, gpu_window.place_calls, x.dtype, to, source, window, tables) if is_plane_by_plane(x) else None
    )
    if blocks is not None:
        return blocks
    tasks = to.n * to.count * to.rows
    chunk = chunk_of(tasks, to.columns * (window.taps * 0.8 + 5))
    call = INDICES.call((x.dtype, isinstance(x, BlockedView)), tasks, chunk, **window_args(to, source, window, tables))
    return KernelCalls((call,) if tasks * to.columns else (), tables)


def spread_calls(target: Target, out: Images, places: Images, g: Images, window: Window) -> KernelCalls:
    """Sum the elements `g` at their indices."""
    if is_plane_by_plane(out):
        planes = map(planes_of, (out, places, g))
        blocks = in_blocks(target, gpu_window.spread_calls, out.dtype, *planes, window)
        if blocks is not None:
            return blocks
    if isinstance(out, View):
        assert isinstance(places, View) and isinstance(g, View)
        return KernelCalls(tuple(plain_spread_calls(out, places, g, window)))
    to, source = same_planes(places, out)
    gradient = planes_of(g)
    tables = tables_of(to, source, window)
    tasks = to.n * to.count
    call = SPREAD_BLOCKED.call(
        (out.dtype,), tasks, chunk_of(tasks, to.rows * to.columns * window.taps * 1.0),
        **window_args(to, source, window, tables),
        g=gradient.at, g_image=gradient.image, g_plane=gradient.plane, g_row=gradient.row,
        height=source.rows, width=source.columns, x_row=source.row,
    )  # fmt: skip
    return KernelCalls((call,), tables)


def window_args(
    to: Planes, source: Planes, window: Window, tables: tuple[np.ndarray, np.ndarray]
) -> dict[str, int | Pointer]:
    return {
        "row_table": Pointer(tables[0]), "column_table": Pointer(tables[1]), "taps": window.kernel[1],
        "x": source.at, "x_image": source.image, "x_plane": source.plane,
        "tap_row": source.row * window.dilation[0], "tap_column": source.column * window.dilation[1],
        "p": to.at, "p_image": to.image, "p_plane": to.plane, "p_row": to.row, "p_column": to.column,
        "rows": to.rows, "columns": to.columns, "planes": to.count,
    }  # fmt: skip


def plain_spread_calls(out: View, places: View, g: View, window: Window) -> list[Call]:
    (r, s), (top, left, _, _) = window.kernel, window.pad
    (n, c, h, w), (rows, columns) = out.shape, g.shape[2:]
    call = SPREAD.call(
        (g.dtype,), n * c, chunk_of(n * c, rows * columns * 3.0),
        places=places.at, g=g.at, out=out.at, h=h, w=w, rows=rows, columns=columns, r=r, s=s,
        down=window.stride[0], across=window.stride[1], top=top, left=left,
        tall=window.dilation[0], wide=window.dilation[1],
    )  # fmt: skip
    return [call] if out.size else []
