"""Call builders of transposed convolutions, the gradients of convolutions for images, on tile registers.

The pixels of the result that meet the same taps of the filter are a phase, as in `cgraph.kernels.conv.transpose_calls`.
A phase is a convolution of stride 1 by these taps, in the order in which they read the images, and a table says where
its pixels lie, a stride apart. A phase without taps has no steps, so its sums are 0.
"""

from math import ceil, prod

import numpy as np

from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv.transpose_calls import Phase, Taps, TransposedShape
from cgraph.kernels.isa.records import TILE_ROW
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.move.calls import part
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import (
    MOST_PIXELS,
    NUMBER_NBYTES,
    PixelReads,
    TileLayer,
    neighbouring_pixels,
    numbers_of,
    pack_tile_filters,
    product_args,
    require_halo,
    unpack_tile_filters,
)
from cgraph.kernels.tile_conv.filter_calls import pack_filters_calls, pairs_nbytes
from cgraph.kernels.tile_conv.signature import CHANNELS, OF_NUMBERS
from cgraph.kernels.tile_products.calls import TileSize, packed_shape, suits_tiles
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, join_calls
from cgraph.kernels.views.window import Window
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.record import Record

DOWN, ACROSS = 2, 3  # axes of filters


class TilePhase(Record):
    """A phase of a transposed convolution on tiles.

    Fields
        phase: its pixels
        start: bytes from the first packed filters to those of this phase
    """

    phase: Phase
    start: int

    @property
    def rows(self) -> Taps:
        """The taps down, by the rows of the images that they read."""
        return self.phase.row_taps[::-1]

    @property
    def columns(self) -> Taps:
        """The taps across, by the columns of the images that they read."""
        return self.phase.column_taps[::-1]

    @property
    def taps(self) -> int:
        return len(self.rows) * len(self.columns)

    @property
    def layer(self) -> TileLayer:
        """The convolution by the taps of this phase, which has at least one; sizes of its images are not used."""
        x, window = self.phase.whole, Window((len(self.rows), len(self.columns)))
        return TileLayer(ConvShape(x.c, x.h, x.w, x.k, x.target, window))

    @property
    def size(self) -> TileSize:
        """The product of a pixel's window by the filters."""
        x = self.phase.whole
        return TileSize(ceil(x.c / CHANNELS) * self.taps * CHANNELS, x.k, NUMBER_NBYTES)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed filters."""
        return self.size.panels * self.size.panel_nbytes


class TileTransposed(Record):
    """A transposed convolution on tiles, of one group, of bfloat16 numbers in place of float32 ones.

    Fields
        shape: sizes and window
    """

    shape: TransposedShape

    @property
    def lanes(self) -> int:
        """Channels of a pixel in memory."""
        return CHANNELS

    @property
    def halo(self) -> tuple[int, int, int, int]:
        """Pixels that steps read beyond an image ``(top, left, bottom, right)``."""
        return self.shape.halo()

    @property
    def phases(self) -> tuple[TilePhase, ...]:
        """The phases that have pixels; their packed filters follow one another."""
        phases, start = [], 0
        for phase in self.shape.phases():
            phases.append(TilePhase(phase, start))
            start += phases[-1].nbytes
        return tuple(phases)

    @property
    def full_phases(self) -> tuple[TilePhase, ...]:
        """The phases that have taps."""
        return tuple(x for x in self.phases if x.taps)

    @property
    def filters_nbytes(self) -> int:
        """Bytes of the packed filters."""
        return sum(x.nbytes for x in self.phases)

    @property
    def pairs_nbytes(self) -> int:
        """Bytes of workspace for packing."""
        return max((pairs_nbytes(x.layer) for x in self.full_phases), default=0)


def suits_tile_transposed(shape: TransposedShape) -> bool:
    """Return True if a transposed convolution is computed on tiles: enough channels and pixels, one group."""
    if shape.dtype != "f4" or shape.groups != 1 or not 0 < prod(shape.result) <= MOST_PIXELS:
        return False
    phases = TileTransposed(shape).phases
    grid, taps = phases[0].phase.grid, max(x.taps for x in phases)
    return suits_tiles(grid.rows * grid.columns, shape.c * taps, NUMBER_NBYTES)


def pack_tile_transposed(layer: TileTransposed, bits: np.ndarray) -> np.ndarray:
    """Return the bits of bfloat16 filters ``[c, k, r, s]`` as ``[filters_nbytes / 2]``: for each phase its taps, as
    `pack_tile_filters` returns them.
    """
    f, parts = bits.swapaxes(0, 1), [np.zeros(0, bits.dtype)]
    for phase in layer.full_phases:
        rows, columns = indices_of(phase)
        parts.append(pack_tile_filters(phase.layer, f[:, :, rows, columns]).ravel())
    return np.concatenate(parts)


def unpack_tile_transposed(layer: TileTransposed, packed: np.ndarray) -> np.ndarray:
    """Return the filters that `pack_tile_transposed` packed; taps that meet no pixel are 0."""
    shape = layer.shape
    f = np.zeros((shape.k, shape.c, *shape.window.kernel), packed.dtype)
    for phase in layer.full_phases:
        rows, columns = indices_of(phase)
        start, nbytes = (n // packed.itemsize for n in (phase.start, phase.nbytes))
        steps = packed[start : start + nbytes].reshape(packed_shape(phase.size))
        f[:, :, rows, columns] = unpack_tile_filters(phase.layer, steps)
    return np.ascontiguousarray(f.swapaxes(0, 1))


def indices_of(phase: TilePhase) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of a phase's taps in the filter: rows, a column of them, and columns."""
    rows, columns = (np.array([tap for tap, _ in taps], int) for taps in (phase.rows, phase.columns))
    return rows[:, None], columns


def pack_transposed_calls(target: Target, layer: TileTransposed, out: Pointer, f: View, place: Pointer) -> list[Call]:
    """Round float32 filters ``[c, k, r, s]`` of any strides to bfloat16, and pack them as `pack_tile_transposed` does.

    Parameters
        place: workspace of ``layer.pairs_nbytes`` bytes
    """
    filters, calls = reorder_axes(f, (1, 0, DOWN, ACROSS)), []
    for phase in layer.full_phases:
        taps = filters
        for axis, some in ((DOWN, phase.rows), (ACROSS, phase.columns)):
            first, step = some[0][0], some[1][0] - some[0][0] if len(some) > 1 else 1
            taps = part(taps, axis, first, len(some), step)
        calls += pack_filters_calls(target, phase.layer, out + phase.start, taps, place)
    return calls


def tile_transposed_calls(
    layer: TileTransposed, out: BlockedView, x: BlockedView, filters: Pointer, epilogue: Epilogue
) -> KernelCalls:
    """Compute ``out = epilogue(transposed convolution of x)``.

    Operands
        out: float32 or bfloat16 images
        x: bfloat16 images in blocks of 32 channels, with a halo of at least ``layer.halo``
        filters: as `pack_tile_transposed` returns them; a bias up to the last panel's end
        epilogue: without a residual
    Raises
        ValueError: the halo is too narrow, or there is a residual
    """
    require_halo(x, layer.halo)
    if not out.n:
        return KernelCalls()
    return join_calls([phase_calls(phase, out, x, filters + phase.start, epilogue) for phase in layer.phases])


def phase_calls(
    phase: TilePhase, out: BlockedView, x: BlockedView, filters: Pointer, epilogue: Epilogue
) -> KernelCalls:
    """Return the calls that compute the pixels of one phase."""
    (bias, activation), grid, size = epilogue.without_residual(), phase.phase.grid, phase.size
    pixel, row, plane = x.lanes * x.itemsize, x.row * x.itemsize, x.plane * x.itemsize
    tiles = neighbouring_pixels(grid.rows, grid.columns, x.row // x.lanes)
    offsets = [
        block * plane + down * row + across * pixel
        for block in range(x.blocks)
        for _, down in phase.rows
        for _, across in phase.columns
    ]
    reads = PixelReads(tiles, x.origin, x.image * x.itemsize, (row, pixel), offsets, x.blocks * TILE_ROW)
    shared = product_args(size, reads, out, x.n, filters)
    numbers = Pointer(numbers_of(tiles, out, (phase.phase.row, phase.phase.column), phase.phase.whole.window.stride))
    call = OF_NUMBERS.call(
        (*shared.params(size), out.dtype, ""), *shared.tasks, **shared.args,
        numbers=numbers, bias=bias, beside=None, beside_numbers=numbers, b_image=0, b_plane=0, b_channels=0,
        **activation.args,
    )  # fmt: skip
    return KernelCalls((call,))
