"""Calls of convolution in blocks of threads, on images whose channels do not lie side by side."""

import numpy as np

from cgraph.kernels.calls.activation import Activation
from cgraph.kernels.calls.conv_places import Grid, Place, Source
from cgraph.kernels.calls.conv_shape import ConvShape
from cgraph.kernels.calls.gpu.gemm import lines_of
from cgraph.kernels.calls.lowered import Lowered
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.signatures.gpu.conv import TILE

FARTHEST = np.iinfo(np.int32).max  # elements from a pixel to a tap; also pixels of a result


def conv_calls(
    shape: ConvShape,
    grid: Grid,
    source: Source,
    weights: Pointer,
    bias: Pointer | None,
    out: Place,
    residual: Place | None,
    activation: Activation,
) -> Lowered | None:
    """As `cgraph.kernels.calls.conv.tile_calls`; `residual` may be `out`.

    None for more pixels, or taps further apart, than 32 bits can count.
    """
    channels, pixels, steps = shape.panel_channels, source.n * grid.rows * grid.columns, len(shape.steps)
    if max(np.abs(source.offsets).max(), pixels) > FARTHEST:
        return None
    offsets = source.offsets.astype(np.int32)
    lines = lines_of(shape.dtype, shape.panels, channels, pixels)
    channel_tiles, pixel_tiles, r = -(-channels // lines), -(-pixels // lines), residual or out
    call = TILE.call(
        (shape.dtype, lines, bias is not None, residual is not None), shape.panels * channel_tiles * pixel_tiles,
        offsets=Pointer(offsets), steps=steps, panel_offsets=Pointer(source.panel_offsets),
        x=source.at, x_image=source.image, x_row=source.row, x_step=source.step,
        w=weights, w_panel=shape.panel_weights, bias=bias or weights,
        residual=r.at, r_image=r.image, r_plane=r.plane, r_row=r.row, r_step=r.step,
        out=out.at, o_image=out.image, o_plane=out.plane, o_row=out.row, o_step=out.step,
        channels=channels, pixels=pixels, rows=grid.rows, columns=grid.columns,
        channel_tiles=channel_tiles, pixel_tiles=pixel_tiles, **activation.args,
    )  # fmt: skip
    return Lowered((call,), (offsets, source.panel_offsets))
