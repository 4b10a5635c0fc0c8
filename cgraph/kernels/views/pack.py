"""Packing of constants into the order in which kernels read them, with NumPy, a few panels at a time.

No temporary is as large as a layer, and pages of a mapped file are released after reading.
"""

from collections.abc import Iterator
from math import prod

import numpy as np

from cgraph.dtypes.convert import is_storage
from cgraph.kernels.mapped import PIECE, release
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.system.alignment import aligned_zeros


def pack_conv(shape: ConvShape, filters: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Pack filters ``[k, c / groups, r, s]``, times `scale` ``[k]``, as ``[panels, steps, unroll, panel channels]``.

    Entries beyond the channels are zero. Filters of a storage dtype keep it. With narrow panels the result has one
    axis: the wide panels, then the narrow ones. Filters `by_lanes` are ``[1, steps, k, lanes]``.
    """
    if shape.by_lanes:
        return pack_lanes(shape, filters if scale is None else filters * scale[:, None, None, None])
    dtype = filters.dtype if is_storage(filters.dtype) else np.dtype(shape.dtype)
    parts = shape.parts
    sizes = [(part.panels, len(part.steps), part.unroll, part.panel_channels) for part in parts]
    out = aligned_zeros((sum(map(prod, sizes)),), dtype)
    at = first = 0
    for part, size in zip(parts, sizes):
        some, to = slice(first, first + part.k), out[at : at + prod(size)].reshape(size)
        pack_equal_panels(part, to, filters[some], None if scale is None else scale[some])
        at, first = at + prod(size), first + part.k
    return out if shape.narrow else out.reshape(sizes[0])


def pack_lanes(shape: ConvShape, filters: np.ndarray) -> np.ndarray:
    """Pack filters ``[k, c, r, s]`` as one panel ``[1, steps, k, lanes]``: a step is a tap of a block of channels."""
    k, c = filters.shape[:2]
    padded = np.zeros((-(-c // shape.lanes) * shape.lanes, k, shape.window.taps), np.dtype(shape.dtype))
    padded[:c] = filters.reshape(k, c, -1).swapaxes(0, 1)
    steps = padded.reshape(-1, shape.lanes, k, shape.window.taps).transpose(0, 3, 2, 1)
    return np.ascontiguousarray(steps).reshape(1, -1, k, shape.lanes)


def pack_equal_panels(shape: ConvShape, out: np.ndarray, filters: np.ndarray, scale: np.ndarray | None) -> None:
    """Pack filters into zeros ``[panels, steps, unroll, panel channels]``."""
    width = shape.panel_channels
    for first, dense in runs_of(filters, scale, width, shape.groups == 1):
        panel = first // width
        if shape.groups > 1:
            dense = spread_groups(shape, dense, panel)
        pack_panels(shape, out[panel : panel + -(-len(dense) // width)], dense)


def runs_of(
    filters: np.ndarray, scale: np.ndarray | None, width: int, several: bool
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first filter and the scaled filters of each run of panels.

    A run has about a `PIECE` of whole panels if `several` allows it; the last run has the remaining filters.
    """
    whole = len(filters) // width * width
    panels = max(PIECE // max(filters[:width].nbytes, 1), 1) if several else 1
    for start, stop, step in ((0, whole, panels * width), (whole, len(filters), width)):
        for first in range(start, stop, step):
            run = slice(first, min(first + step, stop))
            yield first, filters[run] if scale is None else filters[run] * scale[run, None, None, None]
            release(filters[run])


def pack_panels(shape: ConvShape, out: np.ndarray, dense: np.ndarray) -> None:
    """Pack filters ``[panels * count, c, r, s]`` as ``[panels, steps, unroll, panel channels]``, `count` per panel."""
    panels, steps, _, width = out.shape
    count, c, taps = len(dense) // panels, dense.shape[1], shape.window.taps
    if shape.is_plain:
        out[:, :, 0, :count] = dense.reshape(panels, count, steps).transpose(0, 2, 1)
        return
    by_filter = dense.reshape(panels, count, c, taps)
    blocks, used = divmod(c, shape.lanes)
    split = blocks * taps * shape.lanes // shape.unroll
    whole = out[:, :split].reshape(panels, blocks, taps, shape.lanes, width)
    of_blocks = by_filter[:, :, : c - used].reshape(panels, count, blocks, shape.lanes, taps)
    whole[..., :count] = of_blocks.transpose(0, 2, 4, 3, 1)
    if used:
        rest = out[:, split:].reshape(panels, taps, -1, width)
        rest[:, :, :used, :count] = by_filter[:, :, c - used :].transpose(0, 3, 2, 1)


def spread_groups(shape: ConvShape, filters: np.ndarray, panel: int) -> np.ndarray:
    """Return the filters of a panel over all its input channels, zero outside each filter's own group."""
    starts, blocks = shape.panel_blocks
    per_in, per_out = shape.c // shape.groups, shape.k // shape.groups
    dense = np.zeros((len(filters), blocks * shape.lanes, *shape.window.kernel), filters.dtype)
    for i, filter_ in enumerate(filters):
        k = panel * shape.panel_channels + i
        first = k // per_out * per_in - starts[panel] * shape.lanes
        dense[i, first : first + per_in] = filter_
    return dense


def pack_bias(shape: ConvShape, bias: np.ndarray) -> np.ndarray:
    """Return a bias ``[k]`` padded with zeros to the last panel's end."""
    out = np.zeros(shape.panels * shape.panel_channels, np.dtype(shape.dtype))
    out[: shape.k] = bias.ravel()
    return out
