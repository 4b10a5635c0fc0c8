"""Calls of pooling on channel-blocked images and on plain views ``[n, c, h, w]``."""

import numpy as np

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pool.signature import WINDOW
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import Images, Planes, is_plane_by_plane, same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.window import Window
from cgraph.late import LateModule

gpu_window = LateModule("cgraph.kernels.window.gpu_calls")

FEWEST = 4  # columns of a vector
MOST_TAPS = 9  # of a window whose code is not a loop


def max_pool_calls(target: Target, out: Images, x: Images, window: Window) -> KernelCalls:
    """Return the largest value of each window; padding never wins, a NaN always does.

    `out` and `x` are both channel-blocked, or both plain views of any dtype and strides. A result larger than
    ``window.result`` (ceil mode) has last windows that reach beyond the padding. ValueError if a window has no tap
    inside the image.
    """
    return pool_calls(target, out, x, window, "max", False)


def average_pool_calls(
    target: Target, out: Images, x: Images, window: Window, count_include_pad: bool = False
) -> KernelCalls:
    """Return the mean of each window over the image, or with `count_include_pad` over image and padding."""
    return pool_calls(target, out, x, window, "mean", count_include_pad)


def pool_calls(
    target: Target, out: Images, x: Images, window: Window, kind: str, count_include_pad: bool
) -> KernelCalls:
    to, source = same_planes(out, x)
    tables = tables_of(to, source, window, count_include_pad)
    if any((table[:, 0] >= table[:, 1]).any() for table in tables):
        raise ValueError(
            f"a window of {window} has no tap inside an image of {source.rows} x {source.columns}. Reduce the padding"
        )
    blocks = (
        in_blocks(target, gpu_window.pool_calls, x.dtype, to, source, window, kind, tables)
        if is_plane_by_plane(x)
        else None
    )
    if blocks is not None:
        return blocks
    band = band_of(to.rows, to.columns)
    tasks = banded_tasks(to.n, to.count, to.rows, band)
    inner, stop = inner_columns(tables[1], window)
    across = 0 if isinstance(x, BlockedView) else vector_of(target, x.dtype, to, source, window, stop - inner)
    chunk = chunk_of(tasks, to.columns * (window.taps * 0.5 + 5) / max(across // 2, 1))
    is_loop = across or target.is_small or window.taps > MOST_TAPS
    call = WINDOW.call(
        (x.dtype, x.lanes if isinstance(x, BlockedView) else 0, across, kind, *((0, 0) if is_loop else window.kernel)),
        tasks, chunk,
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane, x_step=source.column * window.stride[1],
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        out=to.at, o_image=to.image, o_plane=to.plane, o_row=to.row, o_column=to.column,
        inner=inner, inner_stop=stop, rows=to.rows, columns=to.columns, planes=to.count, band=band,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)


def inner_columns(table: np.ndarray, window: Window) -> tuple[int, int]:
    """Return the first column whose taps are all inside the image, and the one after the last."""
    whole = np.flatnonzero((table[:, 0] == 0) & (table[:, 1] == window.kernel[1]) & (table[:, 2] == table[:, 2].max()))
    return (int(whole[0]), int(whole[-1]) + 1) if len(whole) else (0, 0)


def vector_of(target: Target, dtype: str, to: Planes, source: Planes, window: Window, columns: int) -> int:
    """Return the columns of a vector, a power of two; 0 where windows do not lie side by side in memory."""
    if target.code == "ptx" or window.stride[1] != 1 or source.column != 1 or to.column != 1:
        return 0
    fitting = [n for n in (target.lanes_of(dtype) >> shift for shift in range(4)) if FEWEST <= n <= columns]
    return max(fitting, default=0)


def tables_of(to: Planes, source: Planes, window: Window, padded: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return `taps_inside` per row and column of windows, positions in elements. `padded`: divisors count padding."""
    (r, s), (down, across), (top, left, bottom, right) = window.kernel, window.stride, window.pad
    rows = taps_inside(to.rows, source.rows, r, down, window.dilation[0], top, bottom, padded)
    columns = taps_inside(to.columns, source.columns, s, across, window.dilation[1], left, right, padded)
    rows[:, 3] *= source.row
    columns[:, 3] *= source.column
    return rows, columns


def taps_inside(
    count: int, size: int, taps: int, stride: int, dilation: int, before: int, after: int, padded: bool
) -> np.ndarray:
    """Return per result along an axis: first and last tap inside, divisor, position of the first tap inside."""
    start = np.arange(count) * stride - before
    first = np.clip(-(start // dilation), 0, taps)
    last = np.clip(-((start - size) // dilation), first, taps)
    inside = np.clip(-((start - size - after) // dilation), 0, taps) if padded else last - first
    return np.stack([first, last, inside, start + first * dilation], axis=1).astype(np.int64)
