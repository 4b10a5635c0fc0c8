"""Call builders of transposed convolution, the gradient of a convolution with respect to its images.

The result is cut into ``stride * stride`` phases: the pixels of one phase meet the same taps of the filter, so each
phase is a direct convolution of stride 1 with some of the taps, which writes every stride-th pixel. No product is
wasted and no workspace is needed. A phase without taps is computed with one tap of zeros, so its result is the bias.
"""

from collections.abc import Iterator

import numpy as np

from cgraph.kernels.conv.addresses import Direct, Grid, PixelPlace, PixelSource
from cgraph.kernels.conv.calls import in_channel_pairs, tile_calls
from cgraph.kernels.conv.epilogue import NO_EPILOGUE, Epilogue
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.mapped import release
from cgraph.kernels.pairs.signature import PAIRS
from cgraph.kernels.views.blocked_views import BlockedView, require_first_lane, require_whole_blocks
from cgraph.kernels.views.conv_shape import ConvShape, LayerShape
from cgraph.kernels.views.kernel_calls import KernelCalls, join_calls, table
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window import Window
from cgraph.record import Record, replace

Taps = tuple[tuple[int, int], ...]  # (tap of the filter, pixel of the image it reads relative to the result's)


class TransposedShape(LayerShape):
    """A transposed convolution of images ``[n, c, h, w]`` with filters ``[c, k / groups, r, s]``.

    ``out[n, k, i*stride + r*dilation - top, ...] += x[n, c, i, ...] * f[c, k, r, s]``

    Fields
        window: window of the convolution whose transpose this is; its padding crops the result
        more: rows and columns added at the end of the result
        by_lanes: lanes of sums are input channels
        others: as in `ConvShape`
    Source
        ONNX operator ConvTranspose; Dumoulin and Visin 2016, arXiv:1603.07285
    """

    more: tuple[int, int] = (0, 0)
    groups: int = 1
    dtype: str = "f4"
    by_lanes: bool = False

    @property
    def lanes(self) -> int:
        return self.target.lanes_of(self.dtype)

    @property
    def cropped(self) -> tuple[int, int]:
        """Rows and columns without `more`; below zero where the padding crops more than there is."""
        (down, across), (top, left, bottom, right) = self.window.extent, self.window.pad
        rows = (self.h - 1) * self.window.stride[0] + down - top - bottom
        columns = (self.w - 1) * self.window.stride[1] + across - left - right
        return rows, columns

    @property
    def result(self) -> tuple[int, int]:
        (rows, columns), (below, right) = self.cropped, self.more
        return max(rows + below, 0), max(columns + right, 0)

    def taps(self, axis: int, phase: int) -> Taps:
        """Return the taps that meet the pixels ``phase, phase + stride, ...`` of the result along one axis."""
        stride, dilation = self.window.stride[axis], self.window.dilation[axis]
        positions = [(tap, phase + self.window.pad[axis] - tap * dilation) for tap in range(self.window.kernel[axis])]
        return tuple((tap, at // stride) for tap, at in positions if at % stride == 0)

    def halo(self) -> tuple[int, int, int, int]:
        """Return the rows and columns read beyond the image: ``(top, left, bottom, right)``."""
        sides = []
        for axis, size in ((0, self.h), (1, self.w)):
            before = after = 0
            for phase in range(min(self.window.stride[axis], self.result[axis])):
                count = len(range(phase, self.result[axis], self.window.stride[axis]))
                for _, shift in self.taps(axis, phase):
                    before, after = max(before, -shift), max(after, count + shift - size)
            sides.append((before, after))
        return sides[0][0], sides[1][0], sides[0][1], sides[1][1]

    @property
    def reach(self) -> tuple[int, int]:
        """Return the first and last row of the images that a row of the result reads, counted from ``row //
        stride``.
        """
        stride = self.window.stride[0]
        shifts = [shift for phase in range(stride) for _, shift in self.taps(0, phase)]
        low = min(*shifts, self.window.pad[0] // stride)
        return low, max(*shifts, low)

    def strip(self, first: int, count: int, begin: int, size: int) -> "TransposedShape":
        """Return the shape that computes `count` rows of the result from row `first` on, a multiple of the stride, from
        `size` rows of the images from row `begin` on, with the same phases and filters.
        """
        (stride, _), (_, left, _, right) = self.window.stride, self.window.pad
        top = first + self.window.pad[0] - stride * begin
        beyond = (size - 1) * stride + self.window.extent[0] - top - count
        window = replace(self.window, pad=(top, left, max(beyond, 0), right))
        return replace(self, h=size, window=window, more=(max(-beyond, 0), self.more[1]))

    def phases(self) -> Iterator["Phase"]:
        """Return the phases that have pixels, in order; their packed weights follow one another."""
        start = 0
        for row in range(min(self.window.stride[0], self.result[0])):
            for column in range(min(self.window.stride[1], self.result[1])):
                phase = Phase(self, row, column, self.taps(0, row), self.taps(1, column), start)
                yield phase
                start += phase.shape.weights_nbytes

    @property
    def weights_nbytes(self) -> int:
        return sum(phase.shape.weights_nbytes for phase in self.phases())


class Phase(Record):
    """The pixels ``row, row + stride, ...`` by ``column, column + stride, ...`` of a result.

    `start`: bytes from the first packed weights to those of this phase.
    """

    whole: TransposedShape
    row: int
    column: int
    row_taps: Taps
    column_taps: Taps
    start: int

    @property
    def taps(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """(row tap, column tap); one that reads the pixel itself if there are none."""
        return [(r, s) for r in self.row_taps for s in self.column_taps] or [((0, 0), (0, 0))]

    @property
    def is_empty(self) -> bool:
        return not (self.row_taps and self.column_taps)

    @property
    def shape(self) -> ConvShape:
        """Return a convolution with as many taps, next to one another."""
        x, count = self.whole, len(self.taps)
        window = Window((1, count))
        size = x.c, 1, x.w + count - 1, x.k
        return ConvShape(*size, x.target, window, x.groups, dtype=x.dtype, by_lanes=x.by_lanes)

    @property
    def grid(self) -> Grid:
        (rows, columns), (down, across) = self.whole.result, self.whole.window.stride
        return Grid(len(range(self.row, rows, down)), len(range(self.column, columns, across)))


def conv_transpose_calls(
    shape: TransposedShape,
    out: BlockedView,
    x: BlockedView,
    weights: Pointer,
    epilogue: Epilogue = NO_EPILOGUE,
    weights_dtype: str | None = None,
) -> KernelCalls:
    """Compute ``out = epilogue(transposed convolution of x)``

    Operands
        x: blocked images whose halo is at least ``shape.halo()``
        weights: in the layout of `pack_transposed`
        epilogue: without a residual
        weights_dtype: dtype of the weights in memory, by default that of the images; pairs need images in bfloat16
    Raises
        ValueError: shapes disagree, the halo is too narrow, a value shares a block of channels, or there is a residual
    """
    require_whole_blocks(out)
    require_first_lane(x)
    results, images = (shape.k, *shape.result, shape.lanes), (shape.c, shape.h, shape.w, shape.lanes)
    if (out.c, out.h, out.w, out.lanes) != results or (x.c, x.h, x.w, x.lanes) != images or x.n != out.n:
        raise ValueError(f"values [{x.c}, {x.h}, {x.w}] and [{out.c}, {out.h}, {out.w}] are not those of {shape}")
    if not x.covers(shape.halo()):
        raise ValueError(f"a halo of {x.halo} is narrower than {shape.halo()}, which the filter reads")
    (bias, activation), (down, across) = epilogue.without_residual(), shape.window.stride
    parts = []
    for phase in shape.phases():
        at = out.pixel(phase.row, phase.column)
        place = PixelPlace(at, out.image, out.plane, out.row * down, out.lanes * across)
        source, start = phase_source(phase, x), weights + phase.start
        if weights_dtype == PAIRS:
            source, start = in_channel_pairs(source), weights + phase.start // 2
        direct = Direct(phase.shape, phase.grid, source, start, place, bias, activation=activation)
        parts.append(tile_calls(direct, weights_dtype=weights_dtype))
    return join_calls(parts)


def phase_source(phase: Phase, x: BlockedView) -> PixelSource:
    shape = phase.shape
    c, _, tap = np.array(shape.steps).T
    shifts = np.array([(r, s) for (_, r), (_, s) in phase.taps])[tap]
    offsets = c // x.lanes * x.plane + c % x.lanes + shifts[:, 0] * x.row + shifts[:, 1] * x.lanes
    panels = table([first * x.plane for first in shape.panel_blocks[0]])
    return PixelSource(x.origin, x.n, x.image, x.row, x.lanes, table(offsets), panels)


def pack_transposed(shape: TransposedShape, filters: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Return filters ``[c, k / groups, r, s]``, times `scale` ``[k]``, in the order in which the phases read them."""
    g, r, s = shape.groups, *shape.window.kernel
    turned = filters.reshape(g, shape.c // g, shape.k // g, r, s).swapaxes(1, 2).reshape(shape.k, shape.c // g, r, s)
    packed = []
    for phase in shape.phases():
        rows, columns = ([pair[axis][0] for pair in phase.taps] for axis in (0, 1))
        taps = turned[:, :, rows, columns][:, :, None] * (0 if phase.is_empty else 1)
        packed.append(pack_conv(phase.shape, taps, scale).ravel())
    release(filters)
    return np.concatenate(packed) if packed else np.zeros(0, np.dtype(shape.dtype))
