"""Calls of average pooling on channel-blocked bytes."""

import numpy as np

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pool.calls import MOST_TAPS, inner_columns, tables_of
from cgraph.kernels.pool8.fixed_mean import FixedMean, fixed_mean
from cgraph.kernels.pool8.rounding_margin import LARGEST, Mean, rounding_margin
from cgraph.kernels.pool8.signature import WINDOW
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.window import Window

GROUP = 4  # vectors whose bytes are stored at once


def average_pool8_calls(
    target: Target, out: BlockedView, x: BlockedView, window: Window, mean: Mean, count_include_pad: bool = False
) -> KernelCalls:
    """Compute the bytes of the mean of each window over the image, or with `count_include_pad` over image and padding.

    Raises
        ValueError: layouts, images or channels differ
    """
    to, source = same_planes(out, x)
    tables = tables_of(to, source, window, count_include_pad)
    band = band_of(to.rows, to.columns)
    tasks = banded_tasks(to.n, to.count, to.rows, band)
    inner, stop = inner_columns(tables[1], window)
    if stop - inner < GROUP * target.lanes // x.lanes:
        inner = stop = 0
    sum_dtype = "i2" if window.taps * LARGEST < 1 << 15 else "i4"
    is_contiguous = window.stride[1] == 1 or x.lanes % (GROUP * target.lanes) == 0
    is_short = is_contiguous and stop > inner and window.taps <= MOST_TAPS and not target.is_small
    fixed = fixed_mean(mean, window.taps) if is_short else None
    whole, numbers = (window.kernel, fixed) if fixed else ((0, 0), FixedMean(0, 0, 0, 0, 0))
    edge, slope = rounding_margin(mean, window.taps)
    call = WINDOW.call(
        (x.lanes, sum_dtype, *whole), tasks, chunk_of(tasks, to.columns * (window.taps * 0.2 + 3)),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane, x_step=source.column * window.stride[1],
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        out=to.at, o_image=to.image, o_plane=to.plane, o_row=to.row,
        inner=inner, inner_stop=stop, rows=to.rows, columns=to.columns, planes=to.count, band=band,
        scale=mean.scale, x_zero=mean.x_zero, last=mean.last, zero=mean.zero, low=mean.low, high=mean.high,
        ratio=float(np.float32(mean.scale / mean.last)), edge=edge, slope=slope,
        has_halves=int(mean.scale == mean.last),
        shift=numbers.shift, factor=numbers.factor, plus=numbers.plus, minus=numbers.minus, fraction=numbers.fraction,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)
