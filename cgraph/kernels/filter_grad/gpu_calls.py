"""Calls of the gradient of a convolution for its filters in blocks of threads."""

import numpy as np

from cgraph.kernels.conv.addresses import Images
from cgraph.kernels.conv.gpu_calls import FARTHEST
from cgraph.kernels.filter_grad.gpu_signature import TILE
from cgraph.kernels.gemm.gpu_calls import lines_of
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, table


def filter_grad_calls(
    shape: ConvShape, n: int, sums: tuple[int, int, int], x: Images, g: BlockedView, out: Pointer
) -> KernelCalls | None:
    """Return calls that compute the sums of every part, tap and filter; None if pixels are too far apart.

    `sums`: parts, images of a part, elements of its sums.
    """
    parts, images, part_size = sums
    (rows, columns), (down, across), (tall, wide) = shape.result, shape.window.stride, shape.window.dilation
    x_taps = offsets_of(
        (shape.c, x.plane), (shape.window.kernel[0], x.row * tall), (shape.window.kernel[1], x.step * wide)
    )
    x_pixels = offsets_of((rows, x.row * down), (columns, x.step * across))
    g_pixels = offsets_of((rows, g.row), (columns, 1))
    if max(x_pixels.max(), g_pixels.max()) > FARTHEST:
        return None
    x_pixels, g_pixels = x_pixels.astype(np.int32), g_pixels.astype(np.int32)
    size = len(x_taps)
    lines = lines_of(shape.dtype, parts, shape.k, size)
    row_tiles, column_tiles = -(-shape.k // lines), -(-size // lines)
    call = TILE.call(
        (shape.dtype, lines), parts * row_tiles * column_tiles,
        k=shape.k, size=size, pixels=rows * columns, n=n, images=images, row_tiles=row_tiles, column_tiles=column_tiles,
        x=x.at, x_image=x.image, x_taps=Pointer(x_taps), x_pixels=Pointer(x_pixels),
        g=g.origin, g_image=g.image, g_plane=g.plane, g_pixels=Pointer(g_pixels), out=out, o_part=part_size,
    )  # fmt: skip
    return KernelCalls((call,), (x_taps, x_pixels, g_pixels))


def offsets_of(*axes: tuple[int, int]) -> np.ndarray:
    """Return the offsets of the elements of axes, each an extent and a step, the last one fastest."""
    offsets = np.zeros(1, np.int64)
    for n, step in axes:
        offsets = np.add.outer(offsets, np.arange(n) * step).ravel()
    return table(offsets)
