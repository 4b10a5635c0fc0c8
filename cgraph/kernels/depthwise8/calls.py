"""Calls of depthwise convolution of channel-blocked 8-bit images."""

import numpy as np

from cgraph.kernels.conv8.calls import (
    GROUP,
    ByteShape,
    ByteWeights,
    Result,
    is_depthwise8,
    join_args,
    out_args,
    residual_args,
)
from cgraph.kernels.depthwise.calls import pixels_of
from cgraph.kernels.depthwise8.across_signature import ROWS as ACROSS_ROWS
from cgraph.kernels.depthwise8.halves_signature import ROWS as HALVES_ROWS
from cgraph.kernels.depthwise8.planes_signature import BLOCKS
from cgraph.kernels.depthwise8.signature import ROWS
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.timing import tile_ns
from cgraph.kernels.views.window import Window

FEW = {"halves": 4, "across": 3}  # pixels whose sums are in few registers at once
TAPS = 3  # of the filters of planes
ROOMS = (14, 26, 50)  # words of a row of a plane on the stack: few sizes, so that layers share code
Halo = tuple[int, int, int, int]


def halo8(shape: ByteShape, window: Window) -> Halo:
    """Return the halo that a convolution reads; a depthwise one by vectors, or one by taps, reads columns in groups of
    four.
    """
    top, left, bottom, right = window.halo(shape.h, shape.w)
    in_groups = is_depthwise8(shape) and not shape.by_rows or shape.by_taps
    return top, left, bottom, right + (-window.kernel[1] % GROUP if in_groups else 0)


def depthwise8_calls(
    shape: ByteShape,
    out: BlockedView,
    x: BlockedView,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None = None,
) -> KernelCalls:
    """Return calls as `conv8_calls` does, with weights in the layout of `pack_depthwise8` and a halo of `halo8`.

    Raises
        ValueError: shapes disagree, or the halo is too narrow
    """
    window = shape.window
    if (x.n, x.c, x.h, x.w, x.lanes) != (out.n, shape.c, shape.h, shape.w, shape.lanes):
        raise ValueError(f"images [{x.n}, {x.c}, {x.h}, {x.w}] are not those of {shape}")
    if not x.covers(halo8(shape, window)):
        raise ValueError(f"a halo of {x.halo} is narrower than {halo8(shape, window)}, which the filter reads")
    if shape.by_rows:
        if shape.is_unpacked:
            return plane_calls(shape, out, x, weights, result)
        return few_calls(shape, out, x, weights, result, residual)
    (r, s), (down, across) = window.kernel, window.stride
    pixels, band = pixels_of(out.w, shape.target), band_of(out.h, out.w)
    tasks = banded_tasks(out.n, out.blocks, out.h, band)
    call = ROWS.call(
        (pixels, r, s, across, result.dtype, result.fixed, result.joins, False),
        tasks, chunk_of(tasks, tile_ns(shape.target, out.w * r * -(-s // GROUP))),
        x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image, x_plane=x.plane, x_row=x.row * down, tap_row=x.row,
        w=weights.at, bias=weights.bias, scale=weights.scale, shifts=shape.panels * shape.panel_channels,
        rows=out.h, columns=out.w, blocks=out.blocks, band=band,
        **out_args(out), **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((call,) if tasks else ())


def few_calls(
    shape: ByteShape,
    out: BlockedView,
    x: BlockedView,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None,
) -> KernelCalls:
    """Return the call of the kernel for few registers."""
    window = shape.window
    (r, s), (down, across) = window.kernel, window.stride
    tasks = out.n * out.blocks * out.h
    form = result.dtype, result.fixed, result.bounded, (result.low, result.high) != (0, 255), result.joins
    rows = ACROSS_ROWS if shape.is_across else HALVES_ROWS
    call = rows.call(
        (few_pixels(out.w, shape.target.dot), s, across, *form, False, result.joins_places),
        tasks, chunk_of(tasks, tile_ns(shape.target, out.w * r * s)),
        x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image, x_plane=x.plane, x_row=x.row * down, tap_row=x.row,
        w=weights.at, bias=weights.bias, scale=weights.scale, shifts=shape.panels * shape.panel_channels,
        taps=r, rows=out.h, columns=out.w, blocks=out.blocks, channels=shape.k,
        **out_args(out), **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((call,) if tasks else ())


def plane_calls(
    shape: ByteShape, out: BlockedView, x: BlockedView, weights: ByteWeights, result: Result
) -> KernelCalls:
    """Return the call of the kernel that unpacks each row once."""
    window = shape.window
    down, across = window.stride
    room = next(n for n in ROOMS if n >= row_words(out.w, across))
    tasks = out.n * out.blocks
    call = BLOCKS.call(
        (room, across, out.w % 2 == 1, result.fixed, (result.low, result.high) != (0, 255), result.joins_places),
        tasks, chunk_of(tasks, tile_ns(shape.target, out.h * out.w * window.taps)),
        x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image, x_plane=x.plane, tap_row=x.row,
        width=(out.w - 1) * across + TAPS, down=down,
        w=weights.at, bias=weights.bias, scale=weights.scale, shifts=shape.panels * shape.panel_channels,
        zero=result.zero, low=result.low, high=result.high, rows=out.h, columns=out.w, blocks=out.blocks,
        **out_args(out),
    )  # fmt: skip
    return KernelCalls((call,) if tasks * out.h else ())


def row_words(columns: int, stride: int) -> int:
    """Return the words that an even number of results of a row of one channel reads, two pixels each."""
    return ((columns - 1 | 1) * stride + TAPS + 1) // 2


def has_planes(shape: ByteShape) -> bool:
    """Return True if rows of a depthwise convolution may be unpacked once: few columns, filters of three."""
    window, columns = shape.window, shape.result[1]
    fits = shape.target.dot == "halves" and window.kernel == (TAPS, TAPS) and columns > 1
    return (
        fits
        and window.stride[0] <= TAPS
        and window.stride[1] <= 2
        and row_words(columns, window.stride[1]) <= ROOMS[-1]
    )


def few_pixels(columns: int, dot: str) -> int:
    """Return the width of a tile of which registers hold two sums for each pixel: that which repeats few pixels."""
    most = FEW[dot]
    if columns <= most:
        return max(columns, 1)
    return min(range(most, 1, -1), key=lambda pixels: -(-columns // pixels) * (pixels + 0.5))


def pack_depthwise8(shape: ByteShape, filters: np.ndarray) -> np.ndarray:
    """Return filters int8 ``[c, 1, r, s]`` as ``[block, row, group of columns, shift, lanes, 4]``, zero beyond both;
    for halves as ``[block, row, column, lanes]``, for planes as ``[channel, row, column]``.
    """
    r, s = shape.window.kernel
    if shape.by_rows:
        padded = np.pad(filters[:, 0], ((0, -shape.c % shape.lanes), (0, 0), (0, 0)))
        if shape.is_unpacked:
            return padded
        return np.ascontiguousarray(padded.reshape(-1, shape.lanes, r, s).transpose(0, 2, 3, 1))
    shifts = 2 if s < GROUP and shape.window.stride[1] == 1 else 1
    dense = np.pad(filters[:, 0], ((0, -shape.c % shape.lanes), (0, 0), (0, -s % GROUP)))
    by_block = dense.reshape(-1, shape.lanes, r, dense.shape[2] // GROUP, GROUP).transpose(0, 2, 3, 1, 4)
    shifted = [np.roll(by_block, d, -1) for d in range(shifts)]  # the last column is empty, so it may wrap around
    return np.ascontiguousarray(np.stack(shifted, 3))
