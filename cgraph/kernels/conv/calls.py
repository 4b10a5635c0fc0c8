"""Call builders of direct convolution on channel-blocked images, or on plain images of few channels."""

import numpy as np

from cgraph.kernels.conv.addresses import Direct, Grid, PixelPlace, PixelSource
from cgraph.kernels.conv.clipped import clipped_parts, halo_read
from cgraph.kernels.conv.clipped_signature import TILE as CLIPPED
from cgraph.kernels.conv.epilogue import NO_EPILOGUE, Epilogue
from cgraph.kernels.conv.lanes_calls import lane_sum_calls
from cgraph.kernels.conv.signature import TILE
from cgraph.kernels.kernel import Pointer, View, split_scratch
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.plain.calls import pad_plain_calls, padded_plain
from cgraph.kernels.views.blocked_views import BlockedView, require_first_lane, require_whole_blocks
from cgraph.kernels.views.conv_shape import ConvShape, pixels_for
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, join_calls, table
from cgraph.kernels.views.row_bands import BANDS
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.timing import tile_ns
from cgraph.late import LateModule
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned

gpu_conv = LateModule("cgraph.kernels.conv.gpu_calls")

NEAR_BYTES = 300_000  # weights up to this size stay in L2 together with the tiles that read them
NEAR_INPUT = 448 << 10  # input of a block of tiles: it stays in L2 while all panels pass over it
EARLY = 4  # prefetch distance, in steps, of a filter of one tap, whose pixels no step has read before
SHORT_REDUCTION = 600  # below this the reduction is too short to hide cache misses of the result


def conv_calls(
    shape: ConvShape,
    out: BlockedView,
    x: BlockedView | View,
    weights: Pointer,
    epilogue: Epilogue = NO_EPILOGUE,
    workspace: View | None = None,
    weights_dtype: str | None = None,
) -> KernelCalls:
    """Compute ``out = epilogue(conv(x, weights))``

    Operands
        x: blocked images whose halo is at least ``shape.window.halo(h, w)``; or, if ``shape.is_plain``, a view ``[n, c,
            h, w]`` with contiguous pixels
        weights: in the layout of `pack_conv`
        epilogue: its residual may be `out` itself if `conv_overwrites_residual`
        workspace: at least `conv_nbytes` bytes
        weights_dtype: dtype of the weights in memory, by default that of the images; pairs need images in bfloat16
    Raises
        ValueError: shapes disagree, the halo is too narrow, or a value shares a block of channels
    """
    residual = epilogue.residual
    check_result(shape, out, residual)
    before = KernelCalls()
    first, parts = split_scratch(workspace, *conv_rooms(shape, out.n))
    if isinstance(x, View):
        if first is not None:
            padded = padded_plain(x, shape.window.pad, first)
            before = KernelCalls(tuple(pad_plain_calls(padded, x, shape.window.pad)))
            x = padded
        source = plain_source(shape, x)
    else:
        source = blocked_source(shape, x)
        source = in_channel_pairs(source) if weights_dtype == PAIRS else source
    if source.n != out.n:
        raise ValueError(f"x has {source.n} images and out has {out.n}: pass views with equal numbers of images")
    beside = blocked_place(residual) if residual else None
    grid = grid_of(shape, source, out, residual)
    functions = epilogue.activation, epilogue.program
    conv = Direct(shape, grid, source, weights, blocked_place(out), epilogue.bias, beside, *functions)
    if shape.is_clipped:
        return join_calls([tile_calls(part, 0, weights_dtype, parts) for part in clipped_parts(conv)])
    return before + tile_calls(conv, weights_dtype=weights_dtype, workspace=parts)


def grid_of(shape: ConvShape, source: PixelSource, *laned: BlockedView | None) -> Grid:
    """Return the pixels of the result: a single row if the window is 1×1 and no image has a halo."""
    grid = Grid(*shape.result)
    flat = source.is_flat and shape.window.is_point and all(x is None or x.is_flat for x in laned)
    return Grid(1, grid.rows * grid.columns) if flat else grid


def conv_nbytes(shape: ConvShape, n: int) -> int:
    """Return the bytes of workspace for `n` images."""
    return sum(map(aligned, conv_rooms(shape, n)))


def conv_rooms(shape: ConvShape, n: int) -> tuple[int, int]:
    """Return the bytes of a padded copy of plain images, and of the parts of sums on a GPU."""
    padded, (top, left, bottom, right) = 0, shape.window.pad
    if shape.is_plain and shape.window.pad != (0, 0, 0, 0):
        padded = n * shape.c * (shape.h + top + bottom) * (shape.w + left + right) * int(shape.dtype[1:])
    return padded, gpu_conv.parts_nbytes(shape, n) if shape.target.has_blocks else 0


def conv_overwrites_residual(shape: ConvShape, has_halo: bool) -> bool:
    """Return True if `residual` may be `out`, since each pixel is written once; `has_halo`: of input, residual or
    result.
    """
    rows, columns = shape.result
    if shape.is_clipped:
        return False
    if shape.is_column or (shape.window.is_point and not has_halo and not shape.is_plain):
        columns *= rows
    return columns % shape.pixels(columns) == 0


def blocked_place(x: BlockedView) -> PixelPlace:
    """Return the place of all pixels of a blocked value."""
    return PixelPlace(x.origin, x.image, x.plane, x.row, x.lanes)


def blocked_source(shape: ConvShape, x: BlockedView) -> PixelSource:
    """Return a blocked value as operand of `shape`."""
    require_first_lane(x)
    window = shape.window
    if (x.c, x.h, x.w) != (shape.c, shape.h, shape.w) or x.lanes != shape.source_lanes:
        raise ValueError(f"images [{x.c}, {x.h}, {x.w}] are not those of {shape}")
    if not x.covers(halo_read(shape)):
        raise ValueError(f"a halo of {x.halo} is narrower than {halo_read(shape)}, which the filter reads")
    down, across = window.dilation
    c, r, s = np.array(shape.steps).T
    offsets = c // x.lanes * x.plane + c % x.lanes + r * down * x.row + s * across * x.lanes
    panels = table([first * x.plane for first in shape.panel_blocks[0]])
    at = x.pixel(-window.pad[0], -window.pad[1])
    row, step = window.stride[0] * x.row, window.stride[1] * x.lanes
    return PixelSource(at, x.n, x.image, row, step, table(offsets), panels, x.is_flat)


def in_channel_pairs(x: PixelSource) -> PixelSource:
    """Return images counted in pairs of channels."""
    steps = {name: getattr(x, name) // 2 for name in ("image", "row", "step", "offsets", "panel_offsets")}
    return replace(x, **steps)


def plain_source(shape: ConvShape, x: View) -> PixelSource:
    """Return a plain view ``[n, c, h, w]``, already padded, as operand of `shape`."""
    image, plane, row, pixel = (s // x.itemsize for s in x.strides)
    if pixel != 1 and x.shape[3] > 1:
        raise ValueError(f"pixels are {pixel} elements apart; plain images need adjacent pixels. Copy x first")
    down, across = shape.window.dilation
    c, r, s = np.array(shape.steps).T
    offsets = table(c * plane + r * down * row + s * across)
    panels = table([0] * shape.panels)
    return PixelSource(x.at, x.shape[0], image, row * shape.window.stride[0], shape.window.stride[1], offsets, panels)


def tile_calls(
    conv: Direct,
    weights_step: int = 0,
    weights_dtype: str | None = None,
    workspace: View | None = None,
    chain: int = 0,
) -> KernelCalls:
    """Return one call of the register-tiled kernel over all tiles, panels and images.

    Parameters
        weights_step: elements from the weights of one image to those of the next
        workspace: for parts of sums on a GPU, which are not cut without one
        chain: products in a row, after which a sum is added to its total; 0 for all
    """
    conv = with_column_as_row(conv)
    shape, grid, source, out = conv.shape, conv.grid, conv.source, conv.out
    if source.n * grid.rows * grid.columns == 0:
        return KernelCalls()
    if not weights_step and (other := other_calls(conv, workspace)):
        return other
    each = 2 if weights_dtype == PAIRS else 1  # channels
    weights_nbytes = shape.weights_nbytes * (source.n if weights_step else 1) // each
    weights_dtype, unroll = weights_dtype or shape.dtype, shape.unroll // each
    t = tiling_of(shape, grid, source.n, weights_nbytes)
    pixels, tile_blocks = t.pixels, t.blocks
    turns, by_block = (source.n, 1) if weights_step and t.is_banded else (tile_blocks, 0)
    ahead = lines_ahead(t.block) if weights_nbytes >= NEAR_BYTES and conv.picks is None else 0
    offsets = extend_offsets(source.offsets, early_steps(shape), pixels * source.step)
    zeros, r = np.zeros(shape.panels * shape.panel_channels, np.dtype(shape.dtype)), conv.residual or out
    tasks = source.n * tile_blocks * t.block * shape.panels
    chunk = chunk_of(tasks, tile_ns(shape.target, pixels * shape.vectors * len(shape.steps) * unroll))
    signature, picks = (TILE, {}) if conv.picks is None else (CLIPPED, {"picks": conv.picks})
    call = signature.call(
        tile_params(conv, pixels, unroll, ahead, weights_dtype, chain // unroll), tasks, chunk,
        offsets=Pointer(offsets), steps=len(source.offsets), panel_offsets=Pointer(source.panel_offsets),
        x=source.at, x_image=source.image, x_row=source.row,
        w=conv.weights, w_image=weights_step, w_panel=shape.panel_weights // each, bias=conv.bias or Pointer(zeros),
        wide=shape.panels - shape.narrow, w_block=shape.block_weights // each,
        residual=conv.residual.at if conv.residual else None, r_image=r.image, r_plane=r.plane, r_row=r.row,
        out=out.at, o_image=out.image, o_plane=out.plane, o_row=out.row,
        columns=grid.columns, across=t.across, tiles=t.tiles, block=t.block, panels=shape.panels,
        turns=turns, by_block=by_block, **conv.activation.args,
        **{name: Pointer(steps) for name, steps in picks.items()},
    )  # fmt: skip
    return KernelCalls((call,), (offsets, source.panel_offsets, *picks.values(), *(() if conv.bias else (zeros,))))


def with_column_as_row(conv: Direct) -> Direct:
    """Return the convolution with a result of one column as a row, whose pixels a tile takes together.

    A residual whose pixels have other distances than those of the result prevents this.
    """
    grid, source, out, residual = conv.grid, conv.source, conv.out, conv.residual
    if not conv.shape.is_column or grid.columns != 1 or (residual is not None and residual.row != out.row):
        return conv
    return replace(
        conv,
        grid=Grid(1, grid.rows),
        source=replace(source, step=source.row),
        out=replace(out, step=out.row),
        residual=residual and replace(residual, step=residual.row),
    )


def other_calls(conv: Direct, workspace: View | None) -> KernelCalls | None:
    """Return the calls of another kernel for the layer: sums of lanes, or blocks of a GPU's threads."""
    if conv.shape.by_lanes:
        return lane_sum_calls(conv)
    return in_blocks(conv.shape.target, gpu_conv.conv_calls, conv, workspace)


def tile_params(conv: Direct, pixels: int, unroll: int, ahead: int, weights_dtype: str, chain: int) -> tuple:
    """Return the params of the kernel; see `cgraph.kernels.conv.emit.Tile`."""
    shape, steps = conv.shape, (conv.source.step, conv.out.step)
    touch = len(shape.steps) * unroll <= SHORT_REDUCTION
    prefetches = ahead, touch, early_steps(shape)
    tile = shape.dtype, pixels, shape.vectors, unroll
    return *tile, *steps, *prefetches, weights_dtype, chain, shape.narrow > 0, conv.program


def early_steps(shape: ConvShape) -> int:
    """Return the steps between the prefetch of a pixel's line and its read."""
    return EARLY if shape.window.taps == 1 and not shape.is_plain and shape.target.code != "ptx" else 0


class Tiling(Record):
    """The division of the pixels of a grid into tiles.

    Fields
        pixels: pixels of a tile
        across, tiles: tiles in a row, and in an image
        block: tiles over which all panels pass before the next block
        is_banded: blocks are bands of rows, since the filters are smaller than the images
    """

    pixels: int
    across: int
    tiles: int
    block: int
    is_banded: bool

    @property
    def blocks(self) -> int:
        return -(-self.tiles // self.block)


def tiling_of(shape: ConvShape, grid: Grid, n: int, weights_nbytes: int) -> Tiling:
    """Return the tiles of `n` images with `weights_nbytes` of filters in all.

    A block is a band, or the whole image, if its input fits in L2, where the next panel reads it again. Otherwise a
    block has as many tiles as fit: up to 1.4 times as fast on images of 64 x 64 pixels and 1024 channels.
    """
    pixels = pixels_for(grid.columns, shape.vectors, shape.target)
    across = -(-grid.columns // pixels)
    tiles = across * grid.rows
    values = n * (shape.c * shape.h * shape.w + shape.k * grid.rows * grid.columns)
    is_banded = weights_nbytes < values * int(shape.dtype[1:])
    block = -(-tiles // BANDS) if is_banded else tiles
    tile_nbytes = max(1, shape.c * shape.h * shape.w * int(shape.dtype[1:]) // tiles)
    if block * tile_nbytes > 2 * NEAR_INPUT:
        block = max(4, NEAR_INPUT // tile_nbytes)
    return Tiling(pixels, across, tiles, min(block, tiles), is_banded)


def extend_offsets(offsets: np.ndarray, steps: int, tile: int) -> np.ndarray:
    """Return a table of offsets, extended by `steps` steps of the following tiles, which are `tile` elements apart."""
    step = np.arange(len(offsets) + steps)
    return table(offsets[step % len(offsets)] + step // len(offsets) * tile)


def lines_ahead(tiles: int) -> int:
    """Return the cache lines of the next panel to prefetch in a step, so that all tiles together prefetch all of
    them.
    """
    return 0 if tiles >= 200 else 2 if tiles >= 7 else 4 if tiles >= 4 else 8


def check_result(shape: ConvShape, out: BlockedView, residual: BlockedView | None) -> None:
    """Raise ValueError if a value is not the result of `shape`, or shares a block of channels with another."""
    require_whole_blocks(out, residual)
    for y in (out, residual or out):
        if (y.n, y.c, y.h, y.w, y.lanes, y.dtype) != (out.n, shape.k, *shape.result, shape.lanes, shape.dtype):
            raise ValueError(f"a value {y.dtype} [{y.n}, {y.c}, {y.h}, {y.w}] is not the result of {shape}")
