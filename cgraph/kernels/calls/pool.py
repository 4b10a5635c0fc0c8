"""Calls of pooling on blocked images and on plain views ``[n, c, h, w]``."""

import numpy as np

from cgraph.kernels.calls.blocked import Blocked, require_whole_blocks
from cgraph.kernels.calls.lowered import Lowered, chunk_of
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Call, Kernel, Pointer, View

Images = Blocked | View


def max_pool_calls(out: Images, x: Images, window: Window) -> Lowered:
    """The largest value of each window; padding never wins, a NaN always does.

    `out` and `x` are both blocked, or both plain views of any dtype and strides. A result larger than
    ``window.result`` (ceil mode) has last windows that reach beyond the padding. ValueError when a window has no tap
    inside the image.
    """
    return pool_calls(out, x, window, "max", False)


def average_pool_calls(out: Images, x: Images, window: Window, count_include_pad: bool = False) -> Lowered:
    """The mean of each window over the pixels inside the image, or with `count_include_pad` inside its padding."""
    return pool_calls(out, x, window, "mean", count_include_pad)


def global_pool_calls(out: Images, x: Images, kind: str) -> Lowered:
    """The ``max`` or ``mean`` of each channel; `out` has one pixel."""
    return pool_calls(out, x, Window(rows_columns(x)), kind, False)


def pool_calls(out: Images, x: Images, window: Window, kind: str, count_include_pad: bool) -> Lowered:
    if isinstance(out, Blocked) != isinstance(x, Blocked):
        raise ValueError("pooling changes no layout: both values blocked, or both plain")
    n, planes, tap_row, tap_column, *source = geometry(x)
    _, _, o_row, o_column, *result = geometry(out)
    (rows, columns), (h, w) = rows_columns(out), rows_columns(x)
    top, left, bottom, right = window.pad
    tables = [
        taps_inside(rows, h, window.kernel[0], window.stride[0], window.dilation[0], top, bottom, count_include_pad),
        taps_inside(columns, w, window.kernel[1], window.stride[1], window.dilation[1], left, right, count_include_pad),
    ]
    if any((table[:, 0] >= table[:, 1]).any() for table in tables):
        raise ValueError(f"some window of {window} has no tap inside an image of {h} x {w}")
    for table, step in zip(tables, (tap_row, tap_column)):
        table[:, 3] *= step
    steps = tap_row * window.dilation[0], tap_column * window.dilation[1]
    args = (Pointer(tables[0]), Pointer(tables[1]), *source, *steps, *result, o_row, o_column, rows, columns, planes)
    kernel = Kernel("pool.window", (x.dtype, isinstance(x, Blocked), kind))
    tasks = n * planes * rows
    chunk = chunk_of(tasks, columns * (window.taps * 0.5 + 5))
    return Lowered((Call(kernel, args, tasks, chunk),) if tasks else (), tuple(tables))


def geometry(x: Images) -> tuple:
    """Images, planes, elements along a row and a column, then first element, image and plane step."""
    if isinstance(x, Blocked):
        require_whole_blocks(x)
        return x.n, x.blocks, x.row, x.lanes, x.origin, x.image, x.plane
    image, plane, row, column = (s // x.itemsize for s in x.strides)
    return x.shape[0], x.shape[1], row, column, x.at, image, plane


def rows_columns(x: Images) -> tuple[int, int]:
    return (x.h, x.w) if isinstance(x, Blocked) else x.shape[2:]  # type: ignore[return-value]


def taps_inside(
    count: int, size: int, taps: int, stride: int, dilation: int, before: int, after: int, padded: bool
) -> np.ndarray:
    """Along one axis, for each result: first and last tap inside, divisor, position of the first tap inside."""
    start = np.arange(count) * stride - before
    first = np.clip(-(start // dilation), 0, taps)
    last = np.clip(-((start - size) // dilation), first, taps)
    inside = np.clip(-((start - size - after) // dilation), 0, taps) if padded else last - first
    return np.stack([first, last, inside, start + first * dilation], axis=1).astype(np.int64)
