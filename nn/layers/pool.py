"""Pooling over windows and over all pixels, upsampling, and padding."""

from typing import ClassVar

import cgraph as cg
from cgraph import Node
from nn.layer import Layer
from nn.layers.window import Pad, Sizes, pads, sizes
from nn.mode import Mode


class WindowPool(Layer):
    """Base of `MaxPool2d` and `AvgPool2d`, which document its fields."""

    axes: ClassVar[int] = 2
    window: Sizes = 2
    stride: Sizes | None = None
    pad: Pad = 0
    ceil: bool = False


class MaxPool2d(WindowPool):
    """The largest element of each window of ``[n, c, h, w]``.

    Fields
        window: height and width, or one number
        stride: pixels from one window to the next; the window by default
        pad: as in Conv2d; padding is never the maximum
        ceil: the last window may extend beyond the edge
    """

    def build(self, *xs: Node, mode: Mode) -> Node:
        window, stride, pad = geometry(self, xs[0])
        pool = (cg.max_pool1d, cg.max_pool2d, cg.max_pool3d)[self.axes - 1]
        return pool(xs[0], window, stride=stride, pad=pad, ceil=self.ceil)


class MaxPool1d(MaxPool2d):
    """The largest element of each window of ``[n, c, w]``; see MaxPool2d."""

    axes: ClassVar[int] = 1


class MaxPool3d(MaxPool2d):
    """The largest element of each window of ``[n, c, d, h, w]``; see MaxPool2d."""

    axes: ClassVar[int] = 3


class AvgPool2d(WindowPool):
    """The mean of each window of ``[n, c, h, w]``.

    Fields
        window, stride, pad, ceil: as in MaxPool2d
        count_pad: padding zeros count as elements of the window
    """

    count_pad: bool = False

    def build(self, *xs: Node, mode: Mode) -> Node:
        window, stride, pad = geometry(self, xs[0])
        pool = (cg.avg_pool1d, cg.avg_pool2d, cg.avg_pool3d)[self.axes - 1]
        return pool(xs[0], window, stride=stride, pad=pad, ceil=self.ceil, count_pad=self.count_pad)


class AvgPool1d(AvgPool2d):
    """The mean of each window of ``[n, c, w]``; see AvgPool2d."""

    axes: ClassVar[int] = 1


class AvgPool3d(AvgPool2d):
    """The mean of each window of ``[n, c, d, h, w]``; see AvgPool2d."""

    axes: ClassVar[int] = 3


class GlobalMaxPool(Layer):
    """The largest element of each channel of ``[n, c, ...]``: ``[n, c]``, or with `keep` ``[n, c, 1, ...]``."""

    keep: bool = False

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.max(xs[0], axis=tuple(range(2, xs[0].ndim)), keepdims=self.keep)


class GlobalAvgPool(Layer):
    """The mean of each channel of ``[n, c, ...]``: ``[n, c]``, or with `keep` ``[n, c, 1, ...]``."""

    keep: bool = False

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.mean(xs[0], axis=tuple(range(2, xs[0].ndim)), keepdims=self.keep)


class UpSampling(Layer):
    """Repeats every element of ``[n, c, ...]`` `factor` times along each axis after the channels."""

    factor: Sizes = 2

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        for axis, n in enumerate(sizes(self.factor, x.ndim - 2), start=2):
            x = cg.repeat(x, n, axis=axis)
        return x


class Padding(Layer):
    """Pads ``[n, c, ...]`` with a constant: `before` and `behind` per axis after the channels."""

    before: Sizes
    behind: Sizes
    value: float = 0.0

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        axes = x.ndim - 2
        widths = [(0, 0), (0, 0), *zip(sizes(self.before, axes), sizes(self.behind, axes))]
        return cg.pad(x, widths, constant_values=self.value)


def geometry(layer: MaxPool2d | AvgPool2d, x: Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return window, stride and padding of a pooling of `x`."""
    window = sizes(layer.window, layer.axes)
    stride = window if layer.stride is None else sizes(layer.stride, layer.axes)
    return window, stride, pads(layer.pad, x.shape[2:], window, stride, (1,) * layer.axes)
