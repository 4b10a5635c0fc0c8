"""Calls of pooling on channel-blocked images and on plain views ``[n, c, h, w]`` and ``[n, c, d, h, w]``."""

from typing import Any

import numpy as np

from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.pool.signature import SPAN, SWEEP, VOLUME, WINDOW
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import Images, Planes, is_plane_by_plane, planes_of, same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.window import Window
from cgraph.late import LateModule
from cgraph.record import Record, replace

gpu_window = LateModule("cgraph.kernels.window.gpu_calls")

FEWEST = 4  # columns of a vector
MOST_TAPS = 9  # of a window whose code is not a loop
LEAST_OUTER = 3  # taps of a column, from which on a sweep gains
MOST_STEP = 4  # loads of an image for a vector of taps


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
    require_taps(tables, window, source)
    blocks = (
        in_blocks(target, gpu_window.pool_calls, x.dtype, to, source, window, kind, tables)
        if is_plane_by_plane(x)
        else None
    )
    if blocks is not None:
        return blocks
    lanes = x.lanes if isinstance(x, BlockedView) else 0
    rows = RowsOfWindows.of(target, x.dtype, lanes, to, source, window, tables)
    tile = 0 if lanes or kind == "mean" else sweep_tile(target, rows, window.kernel[0])
    if tile:
        return sweep_calls(target, rows, Frames(1, np.array([[0, 1, 1, 0]], np.int64), 0, 0), kind, tile)
    band = band_of(to.rows, to.columns)
    tasks = banded_tasks(to.n, to.count, to.rows, band)
    is_loop = not lanes or target.is_small or window.taps > MOST_TAPS
    call = WINDOW.call(
        (*rows.parameters(kind), *((0, 0) if is_loop else window.kernel)), tasks, rows.chunk(tasks, window.taps),
        **rows.arguments(), band=band, x_step=source.column * window.stride[1],
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)


def volume_pool_calls(
    target: Target, out: View, x: View, windows: tuple[Window, Window], kind: str, count_include_pad: bool
) -> KernelCalls:
    """Pool plain volumes ``[n, c, d, h, w]`` over windows of frames, and over ``(taps, 1)`` windows along the depth."""
    window, along = windows
    to, source = planes_of(first_frame(out)), planes_of(first_frame(x))
    tables = tables_of(to, source, window, count_include_pad)
    (taps, _), (stride, _), (dilation, _) = along.kernel, along.stride, along.dilation
    depth = taps_inside(out.shape[2], x.shape[2], taps, stride, dilation, *along.pad[::2], count_include_pad)
    require_taps((depth, *tables), window, source)
    step = x.strides[2] // x.itemsize
    depth[:, 3] *= step
    rows = RowsOfWindows.of(target, x.dtype, 0, to, source, window, tables)
    frames = Frames(out.shape[2], depth, step * dilation, out.strides[2] // out.itemsize)
    tile = sweep_tile(target, rows, taps * window.kernel[0])
    if tile:
        return sweep_calls(target, rows, frames, kind, tile)
    tasks = to.n * to.count * frames.count * to.rows
    chunk = rows.chunk(tasks, window.taps * taps)
    call = VOLUME.call(rows.parameters(kind), tasks, chunk, **rows.arguments(), **frames.arguments())
    return KernelCalls((call,) if tasks else (), (depth, *tables))


class Frames(Record, eq=False):
    """The frames of volumes of results.

    Fields
        count: frames of a volume
        table: `taps_inside` along the depth, positions in elements
        tap, out: elements from one frame that a window reads to the next, and from one frame of the result to the next
    """

    count: int
    table: np.ndarray
    tap: int
    out: int

    def arguments(self) -> dict[str, Any]:
        return {"frame_table": Pointer(self.table), "tap_frame": self.tap, "o_frame": self.out, "frames": self.count}


def sweep_tile(target: Target, rows: "RowsOfWindows", outer: int) -> int:
    """Return the results of a tile of a sweep; 0 where each window is computed by itself.

    A sweep reduces the `outer` taps of a column once for all windows that contain it. That gains from three taps on,
    if columns lie side by side in memory and make vectors, and needs more of the stack than small targets have.
    """
    window, to, source = rows.window, rows.to, rows.source
    if outer < LEAST_OUTER or window.kernel[1] == 1 or source.column != 1 or source.columns < FEWEST or not to.columns:
        return 0
    if target.lanes == 1 or target.is_small:
        return 0
    most = (SPAN - window.extent[1]) // window.stride[1] + 1
    return max(min(most, to.columns), 0)


def sweep_calls(target: Target, rows: "RowsOfWindows", frames: Frames, kind: str, tile: int) -> KernelCalls:
    to, source, window, stride = rows.to, rows.source, rows.window, rows.window.stride[1]
    lanes = target.lanes_of(rows.dtype)
    down = power_below(min(2 * lanes, source.columns))
    across = power_below(min(2 * lanes, tile)) if to.column == 1 and stride <= MOST_STEP and tile >= FEWEST else 0
    tables = frames.table, *rows.tables, rows.tables[1][:, 2].astype(np.int32)
    tasks = to.n * to.count * frames.count * to.rows
    cost = to.columns * (4 + stride * window.kernel[0] * 0.5) / max(across // 2, 1)
    call = SWEEP.call(
        (rows.dtype, down, across, stride if across else 1, kind), tasks, chunk_of(tasks, cost),
        **rows.arguments(), **frames.arguments(), column_counts=Pointer(tables[-1]), taps=window.kernel[1],
        stride=stride, left=window.pad[1], width=source.columns, tile=tile,
        span=(tile - 1) * stride + window.extent[1],
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)


def power_below(n: int) -> int:
    """Return the largest power of two that is at most `n` >= 1."""
    return 1 << (n.bit_length() - 1)


def first_frame(x: View) -> View:
    """Return the first frame of each volume, as images."""
    return replace(x, shape=x.shape[:2] + x.shape[3:], strides=x.strides[:2] + x.strides[3:])


def require_taps(tables: tuple[np.ndarray, ...], window: Window, source: Planes) -> None:
    """Raise ValueError if a window has no tap inside an image."""
    if any((table[:, 0] >= table[:, 1]).any() for table in tables):
        raise ValueError(
            f"a window of {window} has no tap inside an image of {source.rows} x {source.columns}. Reduce the padding"
        )


class RowsOfWindows(Record, eq=False):
    """The parameters and arguments that kernels of images and of volumes share.

    Fields
        lanes: channels of a block; 0 for plain views
        across, step: columns of a vector, and the columns of the image from one of its windows to the next
        inner: the first column whose taps are all inside the image, and the one after the last
    """

    dtype: str
    lanes: int
    across: int
    step: int
    inner: tuple[int, int]
    to: Planes
    source: Planes
    window: Window
    tables: tuple[np.ndarray, np.ndarray]

    @staticmethod
    def of(
        target: Target, dtype: str, lanes: int, to: Planes, source: Planes, window: Window,
        tables: tuple[np.ndarray, np.ndarray],
    ) -> "RowsOfWindows":  # fmt: skip
        inner, stop = inner_columns(tables[1], window)
        across = 0 if lanes else vector_of(target, dtype, to, source, window, stop - inner)
        step = window.stride[1] if across else 1
        return RowsOfWindows(dtype, lanes, across, step, (inner, stop), to, source, window, tables)

    def parameters(self, kind: str) -> tuple[Any, ...]:
        return self.dtype, self.lanes, self.across, self.step, kind

    def chunk(self, tasks: int, taps: int) -> int:
        return chunk_of(tasks, self.to.columns * (taps * 0.5 + 5) / max(self.across // 2, 1))

    def arguments(self) -> dict[str, Any]:
        to, source, window = self.to, self.source, self.window
        return {
            "row_table": Pointer(self.tables[0]), "column_table": Pointer(self.tables[1]),
            "x": source.at, "x_image": source.image, "x_plane": source.plane,
            "tap_row": source.row * window.dilation[0], "tap_column": source.column * window.dilation[1],
            "out": to.at, "o_image": to.image, "o_plane": to.plane, "o_row": to.row, "o_column": to.column,
            "inner": self.inner[0], "inner_stop": self.inner[1],
            "rows": to.rows, "columns": to.columns, "planes": to.count,
        }  # fmt: skip


def inner_columns(table: np.ndarray, window: Window) -> tuple[int, int]:
    """Return the first column whose taps are all inside the image, and the one after the last."""
    whole = np.flatnonzero((table[:, 0] == 0) & (table[:, 1] == window.kernel[1]) & (table[:, 2] == table[:, 2].max()))
    return (int(whole[0]), int(whole[-1]) + 1) if len(whole) else (0, 0)


def vector_of(target: Target, dtype: str, to: Planes, source: Planes, window: Window, columns: int) -> int:
    """Return the columns of a vector, a power of two; 0 where columns do not lie side by side in memory."""
    if target.code == "ptx" or window.stride[1] > MOST_STEP or source.column != 1 or to.column != 1:
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
