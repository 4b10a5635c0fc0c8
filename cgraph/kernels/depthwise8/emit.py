"""Depthwise convolution of channel-blocked 8-bit images: four neighbouring pixels of a block are one vector of
bytes.

A shuffle turns 4 pixels x `lanes` channels into `lanes` groups of four pixels of one channel, which are added up like
the four channels of a convolution. Filters of at most three columns and stride 1 use each shuffle for two results.
"""

from types import SimpleNamespace

from cgraph.kernels.conv8.emit import finish
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, as_vector, dots
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, shuffle
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record


class Tile(Record):
    """The params of `rows`.

    Fields
        pixels: neighbouring pixels whose sums are in registers
        r, s: rows and columns of a filter
        stride: pixels from one result to the next
        result, fixed, joins, is_rows: as in `cgraph.kernels.conv8.emit.Tile`; pixels are channel-blocked
    """

    pixels: int
    r: int
    s: int
    stride: int
    result: str
    fixed: str
    joins: str
    is_rows: bool

    @property
    def shifts(self) -> int:
        """Number of results that use one shuffle."""
        return shifts_of(self.s, self.stride)

    @property
    def windows(self) -> int:
        """Number of groups of four columns in a filter."""
        return -(-self.s // GROUP)


def shifts_of(s: int, stride: int) -> int:
    """Return the number of neighbouring results whose taps are in one group of four pixels."""
    return 2 if s < GROUP and stride == 1 else 1


@final
def rows(k: Builder, *params) -> None:
    """Emit the sums. Task: one row of one block of an image, by bands; last tiles overlap their neighbours.

    Weights: ``[block][row][group of columns][shift][lanes][4]``.
    """
    p = Tile(*params)
    a = k.args()
    lanes, count = k.target.lanes, p.r * p.windows * p.shifts
    with banded_rows(k, a.blocks, a.rows, a.band) as (image, block, row):
        x = a.x + (image * a.x_image + block * a.x_plane + row * a.x_row)
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        residual = k.pointer(a.residual, "u1") + (image * a.r_image + block * a.r_plane + row * a.r_row)
        w = a.w + block * (count * GROUP * lanes)
        weights = [w.as_dtype("i4").load(i * lanes, lanes, align=1) for i in range(count)]
        bias = a.bias.load(block * lanes, lanes)
        with k.loop(0, a.columns, p.pixels) as start:
            column = k.smaller(start, a.columns - p.pixels)
            sums = tile_sums(k, p, a, x + column * (p.stride * lanes), weights, bias)
            finish(k, p, a, sums, residual + column * lanes, out + column * a.o_step, block)


def tile_sums(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, weights: list[Val], bias: Val) -> list[Val]:
    """Return the sums of neighbouring pixels."""
    lanes, sums = k.target.lanes, [bias] * p.pixels
    for i in range(p.r):
        row = x + a.tap_row * i
        bytes_at: dict[int, Val] = {}
        for q in range(0, p.pixels, p.shifts):
            for j in range(p.windows):
                at = q * p.stride + GROUP * j
                if at not in bytes_at:
                    bytes_at[at] = four_pixels(k, (row + at * lanes).as_dtype("i4").load(0, lanes, align=1))
                for d in range(min(p.shifts, p.pixels - q)):
                    weight = weights[(i * p.windows + j) * p.shifts + d]
                    (sums[q + d],) = dots(k, [sums[q + d]], [bytes_at[at]], [weight])
    return sums


def four_pixels(k: Builder, x: Val) -> Val:
    """Return ``[4 pixels][lanes]`` bytes as ``[lanes][4 pixels]``, each four an int32, by words, then within 16 bytes.

    Operands
        x: the bytes as int32, as many as lanes
    """
    lanes = x.lanes
    parts = lanes // GROUP
    words = shuffle(k, x, x, [p * parts + part for part in range(parts) for p in range(GROUP)])
    y = as_vector(k, words, "u1", GROUP * lanes)
    y = shuffle(
        k, y, y, [16 * part + GROUP * p + c for part in range(parts) for c in range(GROUP) for p in range(GROUP)]
    )
    return as_vector(k, y, "i4", lanes)
