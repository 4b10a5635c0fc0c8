"""Call builder of convolutions to few channels."""

import numpy as np

from cgraph.kernels.conv.addresses import Direct
from cgraph.kernels.conv.lanes_signature import TILE
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.timing import tile_ns


def lane_sum_calls(conv: Direct) -> KernelCalls:
    """Return the call over all tiles and images of a convolution `by_lanes`; weights as of `pack_conv`."""
    shape, grid, source, out = conv.shape, conv.grid, conv.source, conv.out
    pixels = shape.pixels(grid.columns)
    across = -(-grid.columns // pixels)
    zeros, r = np.zeros(shape.lanes, np.dtype(shape.dtype)), conv.residual or out
    tasks = source.n * across * grid.rows
    call = TILE.call(
        (shape.dtype, pixels, shape.k, source.step, out.step, conv.program),
        tasks, chunk_of(tasks, tile_ns(shape.target, pixels * shape.k * len(shape.steps))),
        offsets=Pointer(source.offsets), steps=len(shape.steps), x=source.at, x_image=source.image, x_row=source.row,
        w=conv.weights, bias=conv.bias or Pointer(zeros),
        residual=conv.residual.at if conv.residual else None, r_image=r.image, r_row=r.row,
        out=out.at, o_image=out.image, o_row=out.row,
        columns=grid.columns, across=across, tiles=across * grid.rows, **conv.activation.args,
    )  # fmt: skip
    return KernelCalls((call,), (source.offsets, *(() if conv.bias else (zeros,))))
