"""Calls of average pooling on channel-blocked bytes."""

import numpy as np

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pool.calls import inner_columns, tables_of
from cgraph.kernels.pool8.signature import WINDOW
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.window import Window
from cgraph.record import Record

LARGEST = 255
GROUP = 4  # vectors whose bytes are stored at once
UNIT = 2.0**-24  # largest relative error of a rounding to float32
OTHER_ROUNDINGS = 8  # the product, two divisions; the ratio, the factor, the sum, the product with it; one to spare


class Mean(Record):
    """Conversion of bytes ``(byte - x_zero) * scale`` to the bytes of their mean, ``mean / last + zero`` in bounds.

    Scales are from 2**-50 to 2**50, so no result between is too small for float32.
    """

    scale: float
    x_zero: int
    last: float
    zero: int
    low: int = 0
    high: int = LARGEST


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
    edge, slope = rounding_margin(mean, window.taps)
    call = WINDOW.call(
        (x.lanes, sum_dtype), tasks, chunk_of(tasks, to.columns * (window.taps * 0.2 + 3)),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane, x_step=source.column * window.stride[1],
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        out=to.at, o_image=to.image, o_plane=to.plane, o_row=to.row,
        inner=inner, inner_stop=stop, rows=to.rows, columns=to.columns, planes=to.count, band=band,
        scale=mean.scale, x_zero=mean.x_zero, last=mean.last, zero=mean.zero, low=mean.low, high=mean.high,
        ratio=float(np.float32(mean.scale / mean.last)), edge=edge, slope=slope,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)


def rounding_margin(mean: Mean, taps: int) -> tuple[float, float]:
    """Return float32 numbers, an edge and a slope: where ``distance + slope * abs(y) <= edge`` for the quotient y of a
    sum of integers and its distance to the nearest integer, the quotient of floats rounds to the same one.

    Both are computed with at most ``taps - 1 + OTHER_ROUNDINGS`` roundings in all, so they differ by less than
    ``gamma * sum(|byte - x_zero|) * scale / (taps * last)``, gamma being ``n * u / (1 - n * u)`` for n roundings. That
    sum is at most the largest term times the taps, and at most the absolute value of the sum of integers plus twice
    the terms of the rarer sign.
    Source: Higham 2002, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4.
    """
    roundings = (taps - 1 + OTHER_ROUNDINGS) * UNIT
    if roundings >= 0.5:
        return -1.0, 0.0
    gamma, ratio = roundings / (1 - roundings), mean.scale / mean.last
    largest, least = (f(mean.x_zero, LARGEST - mean.x_zero) for f in (max, min))
    terms, slope = (2 * least, gamma) if 4 * least < largest else (largest, 0.0)
    edge = 0.5 - gamma * terms * ratio - 2 * UNIT  # the comparison rounds, too
    return float(np.nextafter(np.float32(edge), np.float32(-np.inf))), float(
        np.nextafter(np.float32(slope), np.float32(1))
    )
