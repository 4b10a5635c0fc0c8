"""Calls of convolution in blocks of threads, on plain images."""

import numpy as np

from cgraph.kernels.activation.calls import NONE
from cgraph.kernels.conv.addresses import Direct, Grid, PixelPlace
from cgraph.kernels.conv.gpu_signature import JOIN, TILE
from cgraph.kernels.gemm.gpu_calls import Blocks, blocks_of
from cgraph.kernels.gemm.gpu_signature import THREADS
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls
from cgraph.record import replace

FARTHEST = np.iinfo(np.int32).max  # elements from a pixel to a tap; also pixels of a result


def conv_calls(conv: Direct, workspace: View | None) -> KernelCalls | None:
    """Return calls as `cgraph.kernels.conv.calls.tile_calls` does; None if pixels or tap distances exceed 32 bits.

    `workspace`: of `parts_nbytes`; without one, sums are not cut.
    """
    source, pixels = conv.source, pixels_of(conv.source.n, conv.grid)
    if max(np.abs(source.offsets).max(), pixels) > FARTHEST:
        return None
    offsets = source.offsets.astype(np.int32)
    cut = cut_of(conv.shape, pixels)
    if workspace is None or cut.parts == 1:
        whole = replace(cut, parts=1, each=len(offsets))
        return KernelCalls((tile_call(conv, offsets, whole, 0),), (offsets, source.panel_offsets))
    size, columns = conv.shape.k * pixels, conv.grid.columns
    image = conv.grid.rows * columns
    parts = PixelPlace(scratch_pointer(workspace, parts_nbytes(conv.shape, source.n)), image, pixels, columns, 1)
    sums = replace(conv, out=parts, bias=None, residual=None, activation=NONE)
    calls = tile_call(sums, offsets, cut, size), join_call(conv, parts.at, cut.parts, size, pixels)
    return KernelCalls(calls, (offsets, source.panel_offsets))


def parts_nbytes(shape: ConvShape, n: int) -> int:
    """Return the bytes of workspace: the partial sums of `n` images."""
    pixels = pixels_of(n, Grid(*shape.result))
    parts = cut_of(shape, pixels).parts if pixels else 1
    return parts * shape.k * pixels * int(shape.dtype[1:]) if parts > 1 else 0


def pixels_of(n: int, grid: Grid) -> int:
    return n * grid.rows * grid.columns


def cut_of(shape: ConvShape, pixels: int) -> Blocks:
    """Return the tiles of all panels, with long sums cut into parts if there are few tiles."""
    return blocks_of(shape.dtype, shape.panels, shape.panel_channels, pixels, len(shape.steps))


def tile_call(conv: Direct, offsets: np.ndarray, cut: Blocks, o_part: int) -> Call:
    shape, source, grid = conv.shape, conv.source, conv.grid
    return TILE.call(
        (shape.dtype, cut.lines, conv.bias is not None, conv.residual is not None, cut.parts > 1),
        shape.panels * cut.rows * cut.columns * cut.parts,
        offsets=Pointer(offsets), steps=len(offsets), parts=cut.parts, each=cut.each,
        panel_offsets=Pointer(source.panel_offsets),
        x=source.at, x_image=source.image, x_row=source.row, x_step=source.step,
        w=conv.weights, w_panel=shape.panel_weights, o_part=o_part,
        channels=shape.panel_channels, pixels=pixels_of(source.n, grid), rows=grid.rows, columns=grid.columns,
        channel_tiles=cut.rows, pixel_tiles=cut.columns, **result(conv),
    )  # fmt: skip


def join_call(conv: Direct, parts: Pointer, count: int, size: int, pixels: int) -> Call:
    """Return a call that adds up `count` parts of `size` elements each, in order."""
    return JOIN.call(
        (conv.shape.dtype, conv.bias is not None, conv.residual is not None), -(-size // THREADS),
        size=size, parts=count, x=parts, pixels=pixels, rows=conv.grid.rows, columns=conv.grid.columns, **result(conv),
    )  # fmt: skip


def result(conv: Direct) -> dict[str, int | float | Pointer]:
    """Return the arguments for the pixels' addresses and the epilogue."""
    out, r = conv.out, conv.residual or conv.out
    return {
        "bias": conv.bias or conv.weights,
        "residual": r.at, "r_image": r.image, "r_plane": r.plane, "r_row": r.row, "r_step": r.step,
        "out": out.at, "o_image": out.image, "o_plane": out.plane, "o_row": out.row, "o_step": out.step,
        **conv.activation.args,
    }  # fmt: skip
