"""Filters that are computed, packed for tiles in each run."""

from math import prod

from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.move.calls import boxes_around, copy_calls, fill_calls, part
from cgraph.kernels.pairs.paired_sides import joining
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import TileLayer
from cgraph.kernels.tile_products.calls import WIDTH
from cgraph.kernels.tile_products.signature import ACROSS
from cgraph.kernels.views.window_views import reorder_axes, split_axis

PAIR_NBYTES = 4


def pairs_shape(layer: TileLayer) -> tuple[int, int, int, int]:
    """Return the shape of filters in pairs of channels ``[k, c / 2, r, s]``, up to the last panel's, block's and
    step's end.
    """
    blocks = -(-layer.shape.c // layer.lanes)
    rows = layer.shape.window.kernel[0]
    return layer.size.panels * WIDTH, blocks * layer.lanes // 2, rows, layer.across * layer.taps


def pairs_nbytes(layer: TileLayer) -> int:
    """Return the bytes of filters in pairs."""
    return PAIR_NBYTES * prod(pairs_shape(layer))


def pack_filters_calls(target: Target, layer: TileLayer, out: Pointer, f: View, workspace: Pointer) -> list[Call]:
    """Round float32 filters ``[k, c, r, s]`` of any strides to bfloat16, and pack them as `pack_tile_filters` does.

    Parameters
        workspace: of `pairs_nbytes` bytes
    """
    pairs, (k, c, r, s) = contiguous(workspace, pairs_shape(layer), PAIRS), f.shape
    sizes = (k, -(-c // 2), r, s)
    calls = [call for box in boxes_around(pairs, (0, 0, 0, 0), sizes) for call in fill_calls(target, box, 0)]
    inner = View(pairs.at, sizes, pairs.strides, PAIRS)
    both = [part(f, 1, i, c // 2, 2) for i in (0, 1)]
    calls += pointwise_calls(target, joining(2), part(inner, 1, 0, c // 2), *both)
    calls += pointwise_calls(target, joining(1), part(inner, 1, c // 2, c % 2), part(f, 1, c - c % 2, c % 2))
    tiles = split_axis(split_axis(pairs, 3, layer.across), 1, pairs.shape[1] * 2 // layer.lanes)
    tiles = split_axis(split_axis(tiles, 0, layer.size.panels), 1, ACROSS)
    panel, side, column, block, pair, row, across, tap = range(8)
    tiles = reorder_axes(tiles, (panel, block, row, across, side, tap, pair, column))
    return [*calls, *copy_calls(target, contiguous(out, tiles.shape, PAIRS), tiles)]
