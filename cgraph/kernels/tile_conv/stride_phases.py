"""Pixels a stride apart, gathered so that they are neighbours: convolutions with strides read them by full tiles.

Tap ``(r, s)`` of a window of stride 2 reads every second pixel. Pixels whose row and column have the same remainder are
a phase, an image in which the windows' pixels are neighbours. So a tile can pass over the ends of rows, as for stride
1: a result of 7 columns fills tiles of 13 pixels instead of 7.
"""

from functools import cached_property
from itertools import product

import numpy as np

from cgraph.kernels.isa.records import TILE_ROW
from cgraph.kernels.kernel import Call, Pointer
from cgraph.kernels.tile_conv.signature import PHASE_PIXELS
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.record import Record

PIXEL_NS = 3.0  # estimate: a pixel of 64 bytes


class StridePhases(Record):
    """The phases of a convolution of images in blocks of 64 bytes. Its gathered images are
    ``[n, phases, blocks, rows, columns, 64 bytes]``.

    Fields
        shape: sizes and window
    """

    shape: ConvShape

    @cached_property
    def axes(self) -> tuple["AxisPhases", "AxisPhases"]:
        """The phases of rows, and of columns."""
        window = self.shape.window
        sizes = zip(window.kernel, window.stride, window.dilation, self.shape.result)
        down, across = (AxisPhases(*x) for x in sizes)
        return down, across

    @cached_property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The remainders of row and column of each phase that a tap reads."""
        down, across = self.axes
        return tuple(product(down.phases, across.phases))

    @property
    def raster(self) -> tuple[int, int]:
        """Rows and columns of each gathered image."""
        down, across = self.axes
        return down.length, across.length

    @property
    def plane(self) -> int:
        """Bytes of a block of channels of a phase."""
        rows, columns = self.raster
        return rows * columns * TILE_ROW

    def image(self, blocks: int) -> int:
        """Bytes of all phases of an image."""
        return len(self.phases) * blocks * self.plane

    def offset(self, blocks: int, step: tuple[int, int, int]) -> int:
        """Return the bytes from the begin of a window to a step, given as in ``TileLayer.steps``."""
        (down, across), (block, r, s) = self.axes, step
        (row_phase, row), (column_phase, column) = down.place(r), across.place(s)
        phase = self.phases.index((row_phase, column_phase))
        return (phase * blocks + block) * self.plane + (row * self.raster[1] + column) * TILE_ROW

    def calls(self, out: Pointer, x: BlockedView) -> tuple[Call, ...]:
        """Gather the pixels that windows of `x` read, whose halo covers them."""
        (down, across), (rows, columns), window = self.axes, self.raster, self.shape.window
        table = [(i, j, down.count(i), across.count(j)) for i, j in self.phases]
        planes, band, row = len(table) * x.blocks, band_of(rows, columns), x.row * x.itemsize
        tasks = banded_tasks(x.n, planes, rows, band)
        call = PHASE_PIXELS.call(
            (), tasks, chunk_of(tasks, columns * PIXEL_NS),
            phases=Pointer(np.array(table, np.int64)), blocks=x.blocks,
            x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image * x.itemsize, x_plane=x.plane * x.itemsize,
            x_row=row, x_down=row * window.stride[0], x_step=TILE_ROW * window.stride[1],
            out=out, o_image=self.image(x.blocks), o_plane=self.plane, o_row=columns * TILE_ROW,
            rows=rows, planes=planes, band=band,
        )  # fmt: skip
        return (call,) if tasks else ()


class AxisPhases(Record):
    """The phases along one axis.

    Fields
        kernel, stride, dilation: of the window
        result: pixels of the result
    """

    kernel: int
    stride: int
    dilation: int
    result: int

    @cached_property
    def phases(self) -> tuple[int, ...]:
        return tuple(sorted({self.place(tap)[0] for tap in range(self.kernel)}))

    @cached_property
    def length(self) -> int:
        """Pixels of the longest phase."""
        return max(map(self.count, self.phases))

    def place(self, tap: int) -> tuple[int, int]:
        """Return the phase that a tap reads, and its first pixel there."""
        index, phase = divmod(tap * self.dilation, self.stride)
        return phase, index

    def count(self, phase: int) -> int:
        """Return the pixels of a phase."""
        places = map(self.place, range(self.kernel))
        return self.result + max(index for own, index in places if own == phase)
