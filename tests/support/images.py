"""Laned images in NumPy, and what image kernels mean, in float64."""

import numpy as np

from cgraph.kernels.activation.calls import BoundedActivation
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.window import Window


def aligned(nbytes: int) -> np.ndarray:
    """Bytes that start at a cache line."""
    raw = np.zeros(nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes]


def workspace(nbytes: int) -> View:
    """A workspace at a cache line, all its bytes ones: NaN in floats."""
    bytes_ = aligned(nbytes)
    bytes_[:] = 0xFF
    return contiguous(Pointer(bytes_), (nbytes,), "u1")


def empty_laned(shape, lanes, halo=(0, 0, 0, 0), dtype="f4", channels=0, channel_offset=0) -> BlockedView:
    """A value in lanes of NaN in a zero halo."""
    x = BlockedView(Pointer(np.empty(0)), *shape, lanes, halo, channel_offset, channels, dtype)
    made = BlockedView(Pointer(aligned(x.nbytes).view(dtype)), *shape, lanes, halo, channel_offset, channels, dtype)
    interior(made)[...] = np.nan if dtype[0] == "f" else 99
    return made


def laned(x: np.ndarray, lanes: int, halo=(0, 0, 0, 0)) -> BlockedView:
    """Plain images ``[n, c, h, w]`` as a value in lanes."""
    n, c, h, w = x.shape
    made = empty_laned(x.shape, lanes, halo, f"{x.dtype.kind}{x.dtype.itemsize}")
    padded = np.zeros((n, made.buffer_blocks * lanes, h, w), x.dtype)
    padded[:, :c] = x
    interior(made)[...] = padded.reshape(n, -1, lanes, h, w).transpose(0, 1, 3, 4, 2)
    return made


def buffer(x: BlockedView) -> np.ndarray:
    """The whole buffer ``[n, blocks, rows, columns, lanes]``."""
    top, left, bottom, right = x.halo
    return x.at.base.reshape(x.n, x.buffer_blocks, x.h + top + bottom, x.w + left + right, x.lanes)


def interior(x: BlockedView) -> np.ndarray:
    top, left = x.halo[:2]
    return buffer(x)[:, :, top : top + x.h, left : left + x.w]


def plain(x: BlockedView) -> np.ndarray:
    """The value as ``[n, c, h, w]``."""
    channels = interior(x).transpose(0, 1, 4, 2, 3).reshape(x.n, -1, x.h, x.w)
    return channels[:, x.channel_offset : x.channel_offset + x.c]


def assert_zero_frame(x: BlockedView) -> None:
    """The halo and the unused lanes are zero."""
    assert not np.isnan(buffer(x)).any()
    frame = buffer(x).copy()
    top, left = x.halo[:2]
    frame[:, :, top : top + x.h, left : left + x.w] = 0
    assert not frame.any()
    channels = interior(x).transpose(0, 1, 4, 2, 3).reshape(x.n, -1, x.h, x.w)
    assert not channels[:, (x.channels or x.channel_offset + x.c) :].any()


def windows(x: np.ndarray, window: Window, fill: float = 0.0) -> np.ndarray:
    """What each window sees: ``[n, c, p, q, r, s]`` of padded images."""
    top, left, bottom, right = window.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    seen = np.lib.stride_tricks.sliding_window_view(padded, window.extent, (2, 3))
    (a, b), (c, d) = window.stride, window.dilation
    return seen[:, :, ::a, ::b, ::c, ::d]


def conv64(x, filters, window: Window, groups: int = 1) -> np.ndarray:
    """The meaning of a convolution, in float64."""
    seen = windows(x.astype("f8"), window)
    n, c, p, q, r, s = seen.shape
    seen = seen.reshape(n, groups, c // groups, p, q, r, s)
    f = filters.astype("f8").reshape(groups, -1, *filters.shape[1:])
    return np.einsum("ngcpqrs,gkcrs->ngkpq", seen, f, optimize=True).reshape(n, -1, p, q)


def activated(x: np.ndarray, activation: BoundedActivation) -> np.ndarray:
    return np.clip(np.where(x > 0, x, activation.slope * x), activation.low, activation.high)
