"""Call builders of convolutions on tile registers, of bfloat16 numbers or bytes, and conversions to such images."""

from itertools import product
from math import ceil
from typing import Any

import numpy as np

from cgraph.kernels.blocked_copy.calls import plain_steps
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv8.calls import ByteWeights, Result, join_args, residual_args
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.isa.records import TILE_ROW
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.tile_conv.signature import JOIN_BLOCKS, OF_BYTES, OF_NUMBERS, ROUND_PIXELS
from cgraph.kernels.tile_conv.stride_phases import StridePhases
from cgraph.kernels.tile_products.calls import (
    FEW_ROWS,
    NEAR_INPUT,
    ROWS,
    WIDTH,
    TileSize,
    ahead_of,
    config_of,
    ns_of,
    pack_tiles,
    suits_tiles,
    unpack_tiles,
)
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, table
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.record import Record, replace

NUMBER_NBYTES = 2
PIXEL = 4  # channels of a pixel of a first layer
LEAST_ROWS = 9  # a tile of fewer rows takes as long as one of these
MANY_WEIGHTS = 1 << 18  # of a convolution: 1 MiB of float32 numbers
MOST_PIXELS = 1 << 24  # of a result, so that tables of int32 number the elements of its blocks and their halo
OUTSIDE = -1  # in a table of pixels: not stored


class TileLayer(Record):
    """A convolution of ``[c, h, w]`` on tiles, of bytes or of bfloat16 numbers in place of float32 ones.

    Fields
        shape: sizes and window; its layout of filters is not used
    """

    shape: ConvShape

    @property
    def itemsize(self) -> int:
        """Bytes of a number in a tile."""
        return 1 if self.shape.dtype == "u1" else NUMBER_NBYTES

    @property
    def depth(self) -> int:
        """Numbers of a step."""
        return TILE_ROW // self.itemsize

    @property
    def lanes(self) -> int:
        """Channels of a pixel in memory: a block, or all of them and zeros."""
        return PIXEL if self.shape.is_plain else self.depth

    @property
    def taps(self) -> int:
        """Neighbouring pixels that one step reads."""
        return self.depth // self.lanes

    @property
    def across(self) -> int:
        """Steps of a row of the filter."""
        return ceil(self.shape.window.kernel[1] / self.taps)

    @property
    def steps(self) -> tuple[tuple[int, int, int], ...]:
        """The reduction in order: (block of channels; filter row; first filter column)."""
        blocks = range(ceil(self.shape.c / self.lanes))
        columns = range(0, self.across * self.taps, self.taps)
        return tuple(product(blocks, range(self.shape.window.kernel[0]), columns))

    @property
    def size(self) -> TileSize:
        """The product of a pixel's window by the filters."""
        return TileSize(len(self.steps) * self.depth, self.shape.k, self.itemsize)

    @property
    def phases(self) -> StridePhases | None:
        """The phases in which pixels are gathered before they are read; None if they are read in place. Measured:
        gathering is faster for results of up to 14 columns, slower from 28 on.
        """
        is_narrow = self.shape.window.stride != (1, 1) and self.shape.result[1] <= ROWS
        return StridePhases(self.shape) if self.taps == 1 and is_narrow else None

    def nbytes(self, n: int) -> int:
        """Return the bytes of workspace of `n` images."""
        return n * self.phases.image(ceil(self.shape.c / self.lanes)) if self.phases else 0

    @property
    def halo(self) -> tuple[int, int, int, int]:
        """Pixels that steps read beyond an image ``(top, left, bottom, right)``."""
        window, w = self.shape.window, self.shape.w
        top, left, bottom, right = window.halo(self.shape.h, w)
        if self.taps == 1:
            return top, left, bottom, right
        read = (self.shape.result[1] - 1) * window.stride[1] + self.across * self.taps
        return top, left, bottom, max(right, read - left - w)


def suits_tile_conv(shape: ConvShape) -> bool:
    """Return True if a convolution is computed on tiles: enough channels and pixels, one group.

    Many filters are read from memory, so that bfloat16 numbers halve the time even for one pixel.
    """
    if shape.dtype == "f8" or shape.groups != 1 or is_depthwise(shape):
        return False
    if shape.is_plain and shape.window.dilation[1] != 1:
        return False
    rows, columns = shape.result
    if rows * columns > MOST_PIXELS:
        return False
    size = shape.c * shape.window.taps
    pixels = FEW_ROWS if shape.dtype == "f4" and size * shape.k >= MANY_WEIGHTS else rows * columns
    return rows * columns > 0 and suits_tiles(pixels, size, TileLayer(shape).itemsize)


def pack_tile_filters(layer: TileLayer, bits: np.ndarray) -> np.ndarray:
    """Return filters ``[k, c, r, s]``, bytes or the bits of bfloat16 numbers, as `pack_tiles` returns them; 0 where a
    step has no channel or no tap.
    """
    k, c, r, s = bits.shape
    blocks, width = ceil(c / layer.lanes), layer.across * layer.taps
    whole = np.zeros((k, blocks * layer.lanes, r, width), bits.dtype)
    whole[:, :c, :, :s] = bits
    parts = whole.reshape(k, blocks, layer.lanes, r, layer.across, layer.taps)
    return pack_tiles(layer.size, parts.transpose(1, 3, 4, 5, 2, 0).reshape(-1, k))


def unpack_tile_filters(layer: TileLayer, packed: np.ndarray) -> np.ndarray:
    """Return the filters that `pack_tile_filters` packed."""
    (r, s), k = layer.shape.window.kernel, layer.shape.k
    rows = unpack_tiles(layer.size, packed)
    parts = rows.reshape(-1, r, layer.across, layer.taps, layer.lanes, k).transpose(5, 0, 4, 1, 2, 3)
    return np.ascontiguousarray(parts.reshape(k, -1, r, layer.across * layer.taps)[:, : layer.shape.c, :, :s])


class PixelTiles(Record, eq=False):
    """The tiles of an image.

    Fields
        height: rows of a tile: pixels
        first: the source pixel of each tile's first one, ``[tiles, 2]``, row and column
        pixels: result pixels ``[tiles, height, 2]``, row and column
        is_new: pixels that are stored, ``[tiles, height]``: others are beyond the result or in an earlier tile
    """

    height: int
    first: np.ndarray
    pixels: np.ndarray
    is_new: np.ndarray

    @property
    def group(self) -> int:
        return min(2, len(self.first))

    @property
    def groups(self) -> int:
        return len(self.first) // self.group


def tiles_of_rows(rows: int, columns: int) -> PixelTiles:
    """Return tiles of pixels of one row each; the last tile of a row begins early, so that it ends with the row."""
    across = ceil(columns / ROWS)
    height = ceil(columns / across)
    starts = np.minimum(np.arange(across) * height, columns - height)
    count = rows * across
    padded = count + (count % 2 if count > 1 else 0)  # a group has two tiles
    number = np.minimum(np.arange(padded), count - 1)
    first = np.stack([number // across, starts[number % across]], axis=1)
    steps = np.arange(height)
    pixels = np.stack(np.broadcast_arrays(first[:, :1], first[:, 1:] + steps), axis=2)
    is_new = (pixels[:, :, 1] >= (number % across * height)[:, None]) & (np.arange(padded) < count)[:, None]
    return PixelTiles(height, first, pixels, is_new)


def tiles_of_image(rows: int, columns: int, width: int) -> PixelTiles:
    """Return tiles of pixels that follow one another in an image whose rows are `width` pixels apart; pixels between
    rows are computed, but not stored.
    """
    count = (rows - 1) * width + columns
    group = 1 if count <= ROWS else 2
    tiles = group * ceil(count / (ROWS * group))
    height = ceil(count / tiles)
    starts = np.minimum(np.arange(tiles) * height, count - height)
    number = starts[:, None] + np.arange(height)
    pixels = np.stack(np.divmod(number, width), axis=2)
    is_new = (pixels[:, :, 1] < columns) & (number >= (np.arange(tiles) * height)[:, None])
    return PixelTiles(height, pixels[:, 0], pixels, is_new)


def pixel_tiles(shape: ConvShape, width: int | None) -> PixelTiles:
    """Return the cheaper tiles of the result; `width`: pixels of an image's row in memory, None if rows lie apart."""
    if shape.window.stride != (1, 1) or width is None:
        return tiles_of_rows(*shape.result)
    return neighbouring_pixels(*shape.result, width)


def neighbouring_pixels(rows: int, columns: int, width: int) -> PixelTiles:
    """Return the cheaper tiles of pixels whose windows begin at neighbouring pixels of images with rows of `width`."""
    choices = tiles_of_image(rows, columns, width), tiles_of_rows(rows, columns)
    return min(choices, key=lambda x: len(x.first) * (max(x.height, LEAST_ROWS) + 1))


def tile_conv_calls(
    layer: TileLayer,
    out: BlockedView,
    x: BlockedView,
    filters: Pointer,
    epilogue: Epilogue,
    workspace: Pointer | None = None,
) -> KernelCalls:
    """Compute ``out = epilogue(conv(x, filters))``.

    Operands
        out: float32 or bfloat16 images
        x: bfloat16 images in blocks of ``layer.lanes``, with a halo of at least ``layer.halo``
        filters: as `pack_tile_filters` returns them; a bias up to the last panel's end
        epilogue: its residual, float32 or bfloat16, may be `out` itself
        workspace: ``layer.nbytes(x.n)`` bytes
    Raises
        ValueError: the halo is too narrow
    """
    if not out.n * out.h * out.w:
        return KernelCalls()
    residual, shared = epilogue.residual, tile_args(layer, out, x, filters, epilogue.residual, workspace)
    call = OF_NUMBERS.call(
        (*shared.params(layer.size), out.dtype, residual.dtype if residual else ""),
        *shared.tasks, **shared.args, bias=epilogue.bias, beside=residual.origin if residual else None,
        **epilogue.activation.args,
    )  # fmt: skip
    return KernelCalls((*shared.before, call))


def tile_conv8_calls(
    layer: TileLayer,
    out: BlockedView,
    x: BlockedView,
    weights: ByteWeights,
    result: Result,
    residual: BlockedView | None,
    workspace: Pointer | None = None,
) -> KernelCalls:
    """Compute ``result(sums of x * weights + bias)`` of bytes.

    Operands
        out: bytes in blocks of any number of vectors; floats or int32 numbers in blocks of one
        x: images in blocks of ``layer.lanes`` bytes, with a halo of their zero point at least ``layer.halo`` wide
        weights: filters as `pack_tile_filters` returns them, bias and scale up to the last panel's end
        residual: it may be `out` itself
        workspace: ``layer.nbytes(x.n)`` bytes
    Raises
        ValueError: the halo is too narrow
    """
    if not out.n * out.h * out.w:
        return KernelCalls()
    shared, beside = tile_args(layer, out, x, weights.at, residual, workspace), residual or out
    form = result.dtype, out.lanes, beside.lanes, result.fixed, result.joins
    call = OF_BYTES.call(
        (*shared.params(layer.size), *form), *shared.tasks,
        **shared.args, bias=weights.bias, scale=weights.scale, shifts=layer.size.panels * WIDTH,
        **join_args(result), **residual_args(residual),
    )  # fmt: skip
    return KernelCalls((*shared.before, call))


class TileArgs(Record, eq=False):
    """The arguments that both kernels share.

    Fields
        tiles: the pixels
        tasks: the number of tasks, and those that a thread takes at a time
        args: arguments by name
        before: calls that gather the pixels
    """

    tiles: PixelTiles
    tasks: tuple[int, int]
    args: dict[str, Any]
    before: tuple[Call, ...] = ()

    def params(self, size: TileSize) -> tuple[int, int, int]:
        """Return the first params of both kernels: tiles of a group, their rows, lines prefetched in a step."""
        return self.tiles.group, self.tiles.height, ahead_of(size, self.args["block"])


def tile_args(
    layer: TileLayer,
    out: BlockedView,
    x: BlockedView,
    filters: Pointer,
    residual: BlockedView | None,
    workspace: Pointer | None,
) -> TileArgs:
    """Return the arguments about images, filters, results and residual.

    Raises
        ValueError: the halo is too narrow, or there is no workspace for gathered pixels
    """
    require_halo(x, layer.halo)
    phases, before = layer.phases, tuple[Call, ...]()
    if phases is None:
        reads = reads_of(layer, x)
    elif workspace is None:
        raise ValueError(f"a stride of {layer.shape.window.stride} needs a workspace of {layer.nbytes(x.n)} bytes")
    else:
        reads, before = gathered_reads(layer, phases, x, workspace), phases.calls(workspace, x)
    args = {
        "numbers": Pointer(numbers_of(reads.tiles, out)),
        "beside_numbers": Pointer(numbers_of(reads.tiles, residual or out)),
        "b_image": residual.image if residual else 0, "b_plane": residual.plane if residual else 0,
        "b_channels": residual.blocks * residual.lanes if residual else 0,
    }  # fmt: skip
    shared = product_args(layer.size, reads, out, x.n, filters)
    return replace(shared, args=shared.args | args, before=before)


def reads_of(layer: TileLayer, x: BlockedView) -> "PixelReads":
    """Return how tiles read images in place."""
    window, pixel, row = layer.shape.window, x.lanes * x.itemsize, x.row * x.itemsize
    tiles = pixel_tiles(layer.shape, x.row // x.lanes if layer.taps == 1 else None)
    (down, across), (below, beside) = window.stride, window.dilation
    offsets = [b * x.plane * x.itemsize + r * below * row + s * beside * pixel for b, r, s in layer.steps]
    first, read = x.pixel(-window.pad[0], -window.pad[1]), layer.size.steps * TILE_ROW // window.taps
    return PixelReads(tiles, first, x.image * x.itemsize, (down * row, across * pixel), offsets, read)


def gathered_reads(layer: TileLayer, phases: StridePhases, x: BlockedView, first: Pointer) -> "PixelReads":
    """Return how tiles read the gathered pixels of images."""
    columns, read = phases.raster[1], layer.size.steps * TILE_ROW // layer.shape.window.taps
    tiles = neighbouring_pixels(*layer.shape.result, columns)
    offsets = [phases.offset(x.blocks, step) for step in layer.steps]
    return PixelReads(tiles, first, phases.image(x.blocks), (columns * TILE_ROW, TILE_ROW), offsets, read)


def require_halo(x: BlockedView, halo: tuple[int, int, int, int]) -> None:
    """Raise ValueError if the halo of images is narrower than what filters read."""
    if not x.covers(halo):
        raise ValueError(f"a halo of {x.halo} is narrower than {halo}, which the filter reads")


class PixelReads(Record, eq=False):
    """The addresses that the pixels of tiles read.

    Fields
        tiles: the pixels
        first: where the window of the first pixel begins
        image: bytes from one image to the next
        apart: bytes from one window to the next, down and across
        offsets: bytes from the begin of a window to each step
        nbytes: bytes of images for each pixel
    """

    tiles: PixelTiles
    first: Pointer
    image: int
    apart: tuple[int, int]
    offsets: list[int]
    nbytes: int


def product_args(size: TileSize, reads: PixelReads, out: BlockedView, n: int, filters: Pointer) -> TileArgs:
    """Return the arguments of a product of pixels of `n` images by filters, except for places of results and the
    residual.
    """
    tiles, places = reads.tiles, reads.tiles.first @ np.array(reads.apart)
    block = max(1, min(tiles.groups, NEAR_INPUT // (reads.nbytes * tiles.height * tiles.group)))
    blocks = -(-tiles.groups // block)
    tasks = n * blocks * block * size.panels
    args = {
        "config": Pointer(config_of(tiles.height)), "offsets": Pointer(table(reads.offsets)),
        "steps": len(reads.offsets), "x": reads.first, "x_image": reads.image, "x_step": reads.apart[1],
        "w": filters, "w_image": 0, "w_panel": size.panel_nbytes, "places": Pointer(table(places)),
        "out": out.origin, "o_image": out.image, "o_plane": out.plane, "channels": out.blocks * out.lanes,
        "groups": tiles.groups, "block": block, "blocks": blocks, "panels": size.panels,
    }  # fmt: skip
    return TileArgs(tiles, (tasks, chunk_of(tasks, ns_of(size, tiles.group))), args)


def numbers_of(
    tiles: PixelTiles, x: BlockedView, first: tuple[int, int] = (0, 0), apart: tuple[int, int] = (1, 1)
) -> np.ndarray:
    """Return the elements from an image's first pixel to each pixel of each tile, for 16 pixels a tile.

    Parameters
        first, apart: row and column of the tiles' first pixel in the image; rows and columns from one to the next
    """
    numbers = np.full((len(tiles.first), ROWS), OUTSIDE, np.int32)
    at = (tiles.pixels * apart + first) @ np.array([x.row, x.lanes])
    numbers[:, : tiles.height] = np.where(tiles.is_new, at, OUTSIDE)
    return numbers


def join_blocks_calls(out: BlockedView, x: BlockedView) -> KernelCalls:
    """Convert channel-blocked images to blocks of 64 bytes, without the halo: bytes, or float32 to bfloat16 numbers."""
    band = band_of(out.h, out.w)
    tasks = banded_tasks(out.n, out.blocks, out.h, band)
    call = JOIN_BLOCKS.call(
        (x.dtype, out.dtype), tasks, chunk_of(tasks, out.w * 5.0),
        x=x.origin, x_image=x.image, x_plane=x.plane, x_row=x.row, x_blocks=x.blocks,
        out=out.origin, o_image=out.image, o_plane=out.plane, o_row=out.row,
        rows=out.h, columns=out.w, planes=out.blocks, band=band,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else ())


def round_pixels_calls(out: BlockedView, x: View) -> KernelCalls:
    """Round plain images ``[n, c, h, w]`` to pixels of four bfloat16 numbers, without the halo."""
    image, plane, row = plain_steps(x, (out.n, out.c, out.h, out.w))
    band = band_of(out.h, out.w)
    tasks = banded_tasks(out.n, 1, out.h, band)
    call = ROUND_PIXELS.call(
        (out.c,), tasks, chunk_of(tasks, out.w * 2.0),
        x=x.at, x_image=image, x_plane=plane, x_row=row,
        out=out.origin, o_image=out.image // PIXEL, o_row=out.row // PIXEL,
        rows=out.h, columns=out.w, planes=1, band=band,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else ())
