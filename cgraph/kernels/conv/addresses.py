"""Addresses of convolutions: strides of pixels, taps and channels in elements."""

import numpy as np

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.record import Record


class Grid(Record):
    """Rows and columns of a result, as tiles cover them."""

    rows: int
    columns: int


class PixelSource(Record):
    """Addresses that tiles read, in elements.

    Fields
        at: first element of the first window
        n: images
        image, row, step: from one image, result row, result column to the next
        offsets: from a pixel to the operands of each step of the reduction
        panel_offsets: from an image to the channels of each panel
        is_flat: rows are adjacent
    """

    at: Pointer
    n: int
    image: int
    row: int
    step: int
    offsets: np.ndarray
    panel_offsets: np.ndarray
    is_flat: bool = False


class PixelPlace(Record):
    """Addresses of a result or a residual, in elements: strides of images, blocks, rows and pixels."""

    at: Pointer
    image: int
    plane: int
    row: int
    step: int


class Direct(Record):
    """A convolution with its addresses: ``out = program(activation(conv(source, weights) + bias + residual))``.

    Fields
        weights: in the layout of `pack_conv`; bias: in that of `pack_bias`, or None
        residual: it may be `out`
        activation, program: as of `cgraph.kernels.conv.epilogue`
        picks: the steps of the packed filters that the offsets of the source belong to; None for all in order
    """

    shape: ConvShape
    grid: Grid
    source: PixelSource
    weights: Pointer
    out: PixelPlace
    bias: Pointer | None = None
    residual: PixelPlace | None = None
    activation: BoundedActivation = NONE
    program: Program = ()
    picks: np.ndarray | None = None


class Images(Record):
    """Addresses of the images that the gradient of filters reads, in elements.

    Fields
        at: first element of the first tap
        tiles: from an image to the first channel of each tile
        image, row, step, channel: from one image, row, column and channel of a tile to the next
        plane: from one block of channels to the next
    """

    at: Pointer
    tiles: np.ndarray
    image: int
    row: int
    step: int
    channel: int
    plane: int
