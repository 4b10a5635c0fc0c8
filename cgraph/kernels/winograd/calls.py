"""Calls of Winograd convolution F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).

Three calls for each block of tiles: input transform, one matrix product for each of the (m + 2)**2 points, output
transform. A block has as many tiles as keep V and M near the L2 cache.
"""

from functools import cached_property

import numpy as np

from cgraph.kernels.conv.addresses import Direct, Grid, PixelPlace, PixelSource
from cgraph.kernels.conv.calls import check_result, tile_calls, tiling_of
from cgraph.kernels.conv.epilogue import NO_EPILOGUE, Epilogue
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.views.blocked_views import BlockedView, require_first_lane
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.gemm_tile import evenly, spans
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, join_calls, table
from cgraph.kernels.views.pack import runs_of
from cgraph.kernels.views.row_bands import banded_tasks
from cgraph.kernels.views.timing import tile_ns
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.signature import INPUT_TRANSFORM, OUTPUT_TRANSFORM
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned, aligned_zeros

BLOCK_BYTES = 2 << 20  # V and M of one block of tiles
LEAST_TILES = 56  # fewer tiles would read the filters of all points too often
FEW_CHANNELS = 64  # no more have shorter chains
PACKED_CHANNELS = 64  # tiles packed at a time: intermediate results stay in the L2 cache


class Winograd(Record):
    """A 3 x 3 convolution of stride 1 by tiles of m x m results.

    With dilation d the pixels of a tile are d apart. All results whose row and column have the same remainders by d are
    a *phase*: a convolution without dilation. Phases follow one another, each with its tiles.

    Fields
        shape: the convolution; any padding, one group, channel-blocked
        n: images
        m: 2 or 4; 4 needs fewer multiplications (largest errors relative
            to the standard deviation of the result: direct 1e-6, m = 2 2.5e-6, m = 4 1e-5)
    """

    shape: ConvShape
    n: int
    m: int

    def __post_init__(self) -> None:
        if not is_winograd(self.shape):
            raise ValueError(
                f"Winograd needs 3 x 3 filters, stride 1, one group and channel-blocked images, not {self.shape}"
            )

    @property
    def points(self) -> int:
        return (self.m + 2) ** 2

    @property
    def dilation(self) -> tuple[int, int]:
        """Pixels from one pixel of a tile to the next, down and across."""
        return self.shape.window.dilation

    @property
    def is_dilated(self) -> bool:
        return self.dilation != (1, 1)

    @property
    def across(self) -> int:
        """Tiles in a row of a phase."""
        return tiles_along(self.shape.result[1], self.dilation[1], self.m)

    @property
    def per_phase(self) -> int:
        return tiles_along(self.shape.result[0], self.dilation[0], self.m) * self.across

    @property
    def per_image(self) -> int:
        return self.dilation[0] * self.dilation[1] * self.per_phase

    @property
    def tiles(self) -> int:
        return self.n * self.per_image

    @property
    def in_blocks(self) -> int:
        return -(-self.shape.c // self.shape.lanes)

    @cached_property
    def block(self) -> int:
        """Tiles in a block."""
        per_tile = self.points * (self.in_blocks + self.shape.blocks) * self.shape.lanes * self.itemsize
        return evenly(self.tiles, max(BLOCK_BYTES // per_tile, LEAST_TILES), 1)

    @property
    def itemsize(self) -> int:
        return int(self.shape.dtype[1:])

    @property
    def product(self) -> ConvShape:
        """The matrix product of one point, as a 1 x 1 convolution of a row of tiles."""
        return replace(self.shape, h=1, w=self.block, window=Window())

    @property
    def chain(self) -> int:
        """Products in a row, after which a sum is added to its total: the error of a sum grows with the root of their
        number, and that of m = 4 is the largest.
        """
        return self.shape.c if self.m == 2 else min(self.shape.c, 16 if self.shape.c <= FEW_CHANNELS else 32)

    @property
    def v_step(self) -> int:
        """Elements from one point of V to the next: an odd number of cache lines, to avoid cache conflicts."""
        return (self.in_blocks * self.block | 1) * self.shape.lanes

    @property
    def m_step(self) -> int:
        """Elements from one point of M to the next."""
        return (self.shape.blocks * self.block | 1) * self.shape.lanes

    @property
    def v_nbytes(self) -> int:
        return aligned(self.points * self.v_step * self.itemsize)

    @property
    def m_nbytes(self) -> int:
        return self.points * self.m_step * self.itemsize

    @property
    def nbytes(self) -> int:
        """Workspace: transformed inputs and products of one block of tiles."""
        return self.v_nbytes + self.m_nbytes

    @property
    def weights_nbytes(self) -> int:
        return self.points * self.product.weights_nbytes

    def band(self, count: int) -> int:
        """Return the tiles of a band, of `count`: those of a block if products are computed by bands, else all."""
        tiling = tiling_of(self.product, Grid(1, count), self.points, self.weights_nbytes)
        return min(count, tiling.block * tiling.pixels) if tiling.is_banded else count


def tiles_along(pixels: int, dilation: int, m: int) -> int:
    """Return the tiles along an axis of the phase with most pixels."""
    return -(-pixels // (dilation * m))


def is_winograd(shape: ConvShape) -> bool:
    """Return True for 3 x 3 filters, stride 1, one group, channel-blocked images."""
    w = shape.window
    return w.kernel == (3, 3) and w.stride == (1, 1) and shape.groups == 1 and not shape.is_plain


def winograd_calls(
    plan: Winograd,
    out: BlockedView,
    x: BlockedView,
    weights: Pointer,
    epilogue: Epilogue = NO_EPILOGUE,
    workspace: View | None = None,
    is_transformed: bool = False,
) -> KernelCalls:
    """Compute ``out = epilogue(conv(x, weights))``

    Operands
        x: channel-blocked images; no halo is needed, but one as wide as the padding saves copies at the border
        weights: in the layout of `pack_winograd`
        epilogue: its residual may be `out` itself
        workspace: at least ``plan.nbytes`` bytes
        is_transformed: another part of the same layer has left the transformed images of the only block there
    Raises
        ValueError: shapes disagree, or a value shares a block of channels
    """
    shape = plan.shape
    require_first_lane(x)
    check_result(shape, out, epilogue.residual)
    if (x.n, x.c, x.h, x.w, x.lanes) != (plan.n, shape.c, shape.h, shape.w, shape.lanes) or out.n != plan.n:
        raise ValueError(f"images [{x.n}, {x.c}, {x.h}, {x.w}] do not fit {plan}")
    inside = scratch_pointer(workspace, plan.nbytes)
    biases = np.zeros(shape.blocks * shape.lanes, np.dtype(shape.dtype))
    parts = [KernelCalls((), (biases,))]
    epilogue = replace(epilogue, bias=epilogue.bias or Pointer(biases))
    for first, count in spans(plan.tiles, plan.block):
        tiles = {"first": first, "count": count, "across": plan.across, "per_image": plan.per_image}
        tiles |= {"per_phase": plan.per_phase, "row_step": plan.dilation[0], "column_step": plan.dilation[1]}
        tiles["band"] = plan.band(count)
        if not is_transformed:
            parts.append(KernelCalls((input_call(plan, tiles, x, inside),)))
        parts.append(product_calls(plan, count, weights, inside))
        parts.append(KernelCalls((output_call(plan, tiles, epilogue, out, inside),)))
    return join_calls(parts)


def input_call(plan: Winograd, tiles: dict[str, int], x: BlockedView, v: Pointer) -> Call:
    top, left = plan.shape.window.pad[:2]
    above, before, below, after = x.halo
    tasks = banded_tasks(1, plan.in_blocks, tiles["count"], tiles["band"])
    return INPUT_TRANSFORM.call(
        (x.dtype, plan.m, plan.is_dilated), tasks, chunk_of(tasks, plan.points * 4.0),
        **tiles, blocks=plan.in_blocks,
        x=x.origin, x_image=x.image, x_plane=x.plane, x_row=x.row, top=top, left=left,
        low_row=-above, high_row=x.h + below, low_column=-before, high_column=x.w + after, h=x.h, w=x.w,
        v=v, v_xi=plan.v_step, v_block=plan.block * x.lanes,
    )  # fmt: skip


def product_calls(plan: Winograd, count: int, weights: Pointer, inside: Pointer) -> KernelCalls:
    """M = U V for every point: images of `conv.tile` are points here, pixels are tiles."""
    shape = plan.product
    plane = plan.block * shape.lanes
    c = np.array(shape.steps)[:, 0]
    offsets = table(c // shape.lanes * plane + c % shape.lanes)
    source = PixelSource(inside, plan.points, plan.v_step, 0, shape.lanes, offsets, table([0] * shape.panels))
    m = inside + plan.v_nbytes
    out = PixelPlace(m, plan.m_step, plane, 0, shape.lanes)
    weights_step = plan.product.weights_nbytes // plan.itemsize
    chain = plan.chain if plan.chain < shape.c else 0
    return tile_calls(Direct(shape, Grid(1, count), source, weights, out), weights_step, chain=chain)


def output_call(plan: Winograd, tiles: dict[str, int], epilogue: Epilogue, out: BlockedView, inside: Pointer) -> Call:
    residual = epilogue.residual
    r = residual or out
    tasks = banded_tasks(1, plan.shape.blocks, tiles["count"], tiles["band"])
    params = out.dtype, plan.m, plan.is_dilated, epilogue.program
    return OUTPUT_TRANSFORM.call(
        params, tasks, chunk_of(tasks, tile_ns(plan.shape.target, plan.points * 8)),
        **tiles, blocks=plan.shape.blocks,
        products=inside + plan.v_nbytes, p_xi=plan.m_step, p_block=plan.block * out.lanes, bias=epilogue.bias,
        residual=residual.origin if residual else None, r_image=r.image, r_plane=r.plane, r_row=r.row,
        out=out.origin, o_image=out.image, o_plane=out.plane, o_row=out.row, h=out.h, w=out.w,
        **epilogue.activation.args,
    )  # fmt: skip


def pack_winograd(plan: Winograd, filters: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """``U = G g GT`` of filters ``[k, c, 3, 3]``, times `scale` ``[k]``, as ``[points, panels, input channels, panel
    channels]``.

    By einsum, whose loops use no BLAS threads: on a busy machine they make products of this size twenty times slower.
    """
    product, c = plan.product, plan.shape.c
    g = winograd_matrices(plan.m)[1]
    depth = len(product.steps) * product.unroll
    out = aligned_zeros((plan.points, product.panels, depth, product.panel_channels), np.dtype(product.dtype))
    for first, dense in runs_of(filters, scale, product.panel_channels, False):
        for c0, count in spans(c, PACKED_CHANNELS):
            taps = dense[:, c0 : c0 + count].transpose(2, 3, 1, 0).astype(g.dtype, order="C")  # [r, s, c, k]
            u = np.einsum("js,isck->ijck", g, np.einsum("ir,rsck->isck", g, taps))
            into = out[:, first // product.panel_channels, c0 : c0 + count, : len(dense)]
            into[...] = u.reshape(plan.points, count, -1)
    return out
