"""Convolutions whose filters reach far into the padding, by the taps that meet the images.

Rows of the result that meet the same rows of a filter are a band, and so are columns. Bands of both axes cut the result
into rectangles, each of which is a direct convolution by some taps. The others would multiply zeros: a filter of 3 x 3
of dilation 12 on 14 x 14 pixels meets padding with 82 % of its products.
"""

from collections.abc import Iterator
from itertools import groupby
from math import prod

import numpy as np

from cgraph.kernels.conv.addresses import Direct, Grid
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import table
from cgraph.record import Record, replace

CLIPPED = 1.4  # time of a product that remains: rectangles are small, and weights do not follow one another
MOST_TIME = 0.9  # of the whole layer, up to which it is cut


class TapBand(Record):
    """Rows or columns ``first .. first + count`` of a result, which the taps ``low .. high`` (excluded) meet."""

    first: int
    count: int
    low: int
    high: int


def bands_of(shape: ConvShape, axis: int) -> list[TapBand]:
    """Return the bands of one axis; a band that no tap meets has one tap, which reads padding."""
    window, size = shape.window, (shape.h, shape.w)[axis]
    meets = []
    for i in range(shape.result[axis]):
        start = i * window.stride[axis] - window.pad[axis]
        live = [t for t in range(window.kernel[axis]) if 0 <= start + t * window.dilation[axis] < size]
        meets.append((live[0], live[-1] + 1) if live else (0, 1))
    bands, first = [], 0
    for (low, high), run in groupby(meets):
        count = len(list(run))
        bands.append(TapBand(first, count, low, high))
        first += count
    return bands


def halo_read(shape: ConvShape) -> tuple[int, int, int, int]:
    """Return the halo that a layer reads: none if it is cut and a tap meets each row and each column."""
    every = shape.is_clipped and all(meets_taps(shape, axis) for axis in (0, 1))
    return (0, 0, 0, 0) if every else shape.window.halo(shape.h, shape.w)


def meets_taps(shape: ConvShape, axis: int) -> bool:
    """Return True if a tap of each window is inside the images."""
    window, size = shape.window, (shape.h, shape.w)[axis]
    starts = np.arange(shape.result[axis]) * window.stride[axis] - window.pad[axis]
    places = starts[:, None] + np.arange(window.kernel[axis]) * window.dilation[axis]
    return bool(((places >= 0) & (places < size)).any(1).all())


def clipped_time(shape: ConvShape) -> float:
    """Return the time of the layer, cut, over that of the whole layer; 1 if it is not cut.

    Windows without dilation meet padding at the border of small images only, whose rectangles are too small.
    """
    if shape.is_plain or shape.groups != 1 or shape.target.has_blocks or not prod(shape.result):
        return 1.0
    if max(shape.window.dilation) == 1:
        return 1.0
    rows, columns = bands_of(shape, 0), bands_of(shape, 1)
    products = prod(sum(band.count * (band.high - band.low) for band in bands) for bands in (rows, columns))
    time = CLIPPED * products / (prod(shape.result) * shape.window.taps)
    return time if time <= MOST_TIME else 1.0


def clipped_parts(conv: Direct) -> Iterator[Direct]:
    """Yield a convolution for each rectangle, with the same packed filters."""
    shape, source = conv.shape, conv.source
    _, r, s = np.array(shape.steps).T
    for down in bands_of(shape, 0):
        for across in bands_of(shape, 1):
            picks = np.flatnonzero((r >= down.low) & (r < down.high) & (s >= across.low) & (s < across.high))
            at = source.at + (down.first * source.row + across.first * source.step) * int(shape.dtype[1:])
            images = replace(source, at=at, offsets=table(source.offsets[picks]), is_flat=False)
            places = []
            for place in (conv.out, conv.residual):
                if place is not None:
                    offset = (down.first * place.row + across.first * place.step) * int(shape.dtype[1:])
                    place = replace(place, at=place.at + offset)
                places.append(place)
            out, residual = places
            grid = Grid(down.count, across.count)
            yield replace(conv, grid=grid, source=images, out=out, residual=residual, picks=table(picks))
