"""Constants in the order in which kernels read them. NumPy, one layer at a time."""

import numpy as np

from cgraph.kernels.calls.conv_shape import ConvShape


def pack_conv(shape: ConvShape, filters: np.ndarray) -> np.ndarray:
    """Filters ``[k, c / groups, r, s]`` as ``[panels, steps, unroll, panel channels]``; zero beyond the channels."""
    width = shape.panel_channels
    out = np.zeros((shape.panels, len(shape.steps), shape.unroll, width), np.dtype(shape.dtype))
    if shape.groups == 1:
        whole = shape.k // width
        pack_panels(shape, out[:whole], filters[: whole * width])
        pack_panels(shape, out[whole:], filters[whole * width :])
        return out
    for panel in range(shape.panels):
        count = min(width, shape.k - panel * width)
        pack_panels(shape, out[panel : panel + 1], spread_groups(shape, filters, panel, count))
    return out


def pack_panels(shape: ConvShape, out: np.ndarray, dense: np.ndarray) -> None:
    """Filters ``[panels * count, c, r, s]`` into ``[panels, steps, unroll, panel channels]``, `count` of each panel."""
    if not len(out):
        return
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


def spread_groups(shape: ConvShape, filters: np.ndarray, panel: int, count: int) -> np.ndarray:
    """Filters of a panel over all the channels that the panel reads: zero outside each filter's own group."""
    starts, blocks = shape.panel_blocks
    per_in, per_out = shape.c // shape.groups, shape.k // shape.groups
    dense = np.zeros((count, blocks * shape.lanes, *shape.window.kernel), filters.dtype)
    for i in range(count):
        k = panel * shape.panel_channels + i
        first = k // per_out * per_in - starts[panel] * shape.lanes
        dense[i, first : first + per_in] = filters[k]
    return dense


def pack_bias(shape: ConvShape, bias: np.ndarray) -> np.ndarray:
    """A bias ``[k]`` with zeros up to the last panel's end."""
    out = np.zeros(shape.panels * shape.panel_channels, np.dtype(shape.dtype))
    out[: shape.k] = bias.ravel()
    return out
