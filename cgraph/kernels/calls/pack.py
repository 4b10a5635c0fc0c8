"""Constants in the order in which kernels read them. NumPy, one layer at a time."""

import numpy as np

from cgraph.kernels.calls.conv_shape import ConvShape


def pack_conv(shape: ConvShape, filters: np.ndarray) -> np.ndarray:
    """Filters ``[k, c / groups, r, s]`` as ``[panels, steps, unroll, panel channels]``; zero beyond the channels."""
    out = np.zeros((shape.panels, len(shape.steps), shape.unroll, shape.panel_channels), np.dtype(shape.dtype))
    for panel in range(shape.panels):
        first = panel * shape.panel_channels
        count = min(shape.panel_channels, shape.k - first)
        dense = filters[first : first + count] if shape.groups == 1 else spread_groups(shape, filters, panel, count)
        pack_panel(shape, out[panel, :, :, :count], dense)
    return out


def pack_panel(shape: ConvShape, out: np.ndarray, dense: np.ndarray) -> None:
    """One panel of filters ``[count, c, r, s]`` into ``[steps, unroll, count]``, a block of channels at a time."""
    count, c = dense.shape[:2]
    if shape.is_plain:
        out[:, 0] = dense.reshape(count, -1).T
        return
    start = 0
    for first in range(0, c, shape.lanes):
        block = dense[:, first : first + shape.lanes]
        used = block.shape[1]
        groups = -(-used // shape.unroll)
        steps = out[start : start + shape.window.taps * groups]
        by_tap = steps.reshape(shape.window.taps, groups * shape.unroll, count)
        by_tap[:, :used] = block.reshape(count, used, -1).transpose(2, 1, 0)
        start += len(steps)


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
