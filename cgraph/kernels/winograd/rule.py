"""The choice of a layer's convolution: direct, F(2 x 2, 3 x 3) or F(4 x 4, 3 x 3).

Tiles whose estimated rounding error is more than `MOST_ERROR` times that of a direct convolution are not used
(`cgraph.kernels.winograd.error`).

A cost model of three terms decides: multiply-adds at the peak rate, values moved by the transforms, and bytes of
filters read (F(4 x 4) reads four times those of a direct convolution, which dominates for small images of many
channels). The constants were fitted to layers of 16 to 512 channels on images of 4 to 112 pixels, one thread of an
AVX-512 machine with a peak of 118 GF/s; ``python -m benchmarks.layers 3x3`` prints the times behind them.
"""

import numpy as np

from cgraph.kernels.conv.clipped import clipped_time
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.winograd.calls import Winograd, is_winograd
from cgraph.kernels.winograd.error import error_ratio
from cgraph.system.alignment import round_up

MULTIPLY_ADD_NS = 0.017
MOVE_NS = {2: 0.115, 4: 0.154}  # a value read or written by a transform
FILTER_BYTE_NS = 0.03
MOST_ERROR = 1.5  # of the estimated error of a direct convolution
LEAST_GAIN = 0.85  # a tie goes to the more exact: each step towards larger tiles must gain this much


def winograd_rule(shape: ConvShape, n: int, filters: np.ndarray | None = None) -> int:
    """Return the tile size for `n` images: 0 (direct), 2 or 4. Always 0 where Winograd does not apply.

    Parameters
        filters: ``[k, c, 3, 3]``, for the estimate of the error; without them only time decides
    """
    if not is_winograd(shape) or min(shape.result) == 0 or n == 0:
        return 0
    best, best_ns = 0, direct_ns(shape, n)
    for m in (2, 4):
        plan = Winograd(shape, n, m)
        nanoseconds = winograd_ns(plan)
        if nanoseconds < LEAST_GAIN * best_ns and is_exact(plan, filters):
            best, best_ns = m, nanoseconds
    return best


def is_exact(plan: Winograd, filters: np.ndarray | None) -> bool:
    """Return True if the estimated error is within the bound."""
    return filters is None or error_ratio(plan, filters) <= MOST_ERROR


def direct_ns(shape: ConvShape, n: int) -> float:
    rows, columns = shape.result
    pixels = shape.pixels(columns)
    computed = n * rows * round_up(columns, pixels) * shape.panels * shape.panel_weights
    return MULTIPLY_ADD_NS * computed * clipped_time(shape) + FILTER_BYTE_NS * shape.weights_nbytes


def winograd_ns(plan: Winograd) -> float:
    product, lanes = plan.product, plan.shape.lanes
    multiply_adds = plan.tiles * plan.points * product.panels * product.panel_weights
    moved = plan.tiles * plan.points * (plan.in_blocks + plan.shape.blocks) * lanes
    return MULTIPLY_ADD_NS * multiply_adds + MOVE_NS[plan.m] * moved + FILTER_BYTE_NS * plan.weights_nbytes
