"""Depthwise convolution of channel-blocked bytes by vectors of the four channels of a pixel, for few registers."""

from types import SimpleNamespace

from cgraph.kernels.conv8.across_emit import put_vectors
from cgraph.kernels.depthwise8.halves_emit import Tile, each_tile
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import fold
from cgraph.kernels.llvm.values import Ptr, Val


@final
def rows(k: Builder, *params) -> None:
    """Emit the results. Task: one row of one block of an image; a last tile overlaps its neighbour."""
    p = Tile(*params)
    a = k.args()
    with each_tile(k, p, a) as at:
        bias = a.bias.load(at.block * GROUP, GROUP)
        put_vectors(k, p, a, reduce_rows(k, p, a, at.x, at.w, [bias] * p.pixels), at.residual, at.out, at.block)


def reduce_rows(k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, w: Ptr, sums: list[Val]) -> list[Val]:
    """Return the sums of neighbouring pixels, each a vector."""
    with fold(k, 0, a.taps, [x, w, *sums]) as s:
        x, w, *sums = s.values
        factors = [k.cast(w.load(j * GROUP, GROUP), "i4") for j in range(p.s)]
        for at in range((p.pixels - 1) * p.stride + p.s):
            inputs = k.cast(x.load(at * GROUP, GROUP), "i4")
            for q in range(p.pixels):
                j = at - q * p.stride
                if 0 <= j < p.s:
                    sums[q] = sums[q] + inputs * factors[j]
        s.next = [x + a.tap_row, w + p.s * GROUP, *sums]
    return s.values[2:]
