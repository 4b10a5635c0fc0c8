"""The choice of the lanes of a layer's sums: result channels, or input channels."""

from math import prod

from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.views.conv_shape import ConvShape

JOIN = 4  # instructions that add the lanes of a sum, and those that store a pixel, in vector multiply-adds


def gains_by_lanes(shape: ConvShape | TransposedShape) -> bool:
    """Return True if a layer of one group and constant filters is faster with input channels in lanes.

    A pixel takes a multiply-add for each input channel with results in lanes, and one for each block of input channels
    and each result with input channels in lanes, whose lanes must be added at the end.
    """
    if shape.groups != 1 or shape.target.has_blocks or 2 * shape.k > shape.lanes:
        return False
    if isinstance(shape, ConvShape) and shape.is_plain:
        return False
    taps = shape.window.taps / (prod(shape.window.stride) if isinstance(shape, TransposedShape) else 1)
    return -(-shape.c // shape.lanes) * taps * shape.k + JOIN * (shape.k + 1) < shape.c * taps
