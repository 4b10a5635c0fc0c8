"""Convolutions over one, two and three axes: strided, dilated, grouped, depthwise and transposed.

A dilated convolution is `dilation` > 1, a depthwise one ``groups=inputs``.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import ClassVar

import cgraph as cg
from cgraph import Node
from nn.init import GLOROT_UNIFORM, ZEROS, Initialiser
from nn.layer import Layer, Parameter
from nn.layers.window import Pad, Sizes, pads, sizes
from nn.mode import Mode


class WindowLayer(Layer):
    """Base of layers with a convolution; the fields are those of Conv2d."""

    inputs: int
    outputs: int
    window: Sizes
    stride: Sizes = 1
    pad: Pad = 0
    dilation: Sizes = 1
    groups: int = 1


class FilterLayer(WindowLayer):
    """Base of convolutions and transposed ones, over `axes` axes: one op with filters, and a bias."""

    axes: ClassVar[int] = 2
    use_bias: bool = True
    start: Initialiser = GLOROT_UNIFORM
    weight: Parameter = field(init=False)
    bias: Parameter | None = field(init=False)

    def __post_init__(self) -> None:
        self.hold(weight=Parameter((*self.channels, *sizes(self.window, self.axes)), self.start))
        self.hold(bias=Parameter((self.outputs,), ZEROS) if self.use_bias else None)

    @property
    def channels(self) -> tuple[int, int]:
        """The first two lengths of the filters."""
        raise NotImplementedError

    @property
    def function(self) -> Callable[..., Node]:
        """The function that builds the op."""
        raise NotImplementedError

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        stride, dilation = sizes(self.stride, self.axes), sizes(self.dilation, self.axes)
        pad = pads(self.pad, x.shape[2:], sizes(self.window, self.axes), stride, dilation)
        y = self.function(x, self.weight, stride=stride, pad=pad, dilation=dilation, groups=self.groups)
        return y if self.bias is None else y + cg.reshape(self.bias, (-1, *[1] * self.axes))


class Conv2d(FilterLayer):
    """Cross-correlation of images with `outputs` filters.

    Operands
        x: ``[n, inputs, h, w]``
    Fields
        window: height and width of the filters, or one number for both
        stride: pixels from one window to the next, down and across
        pad: zero pixels around the image: ``"same"`` (as many results as pixels, divided by the stride; an odd
            pixel goes to the end), ``"valid"`` (none), one number, one per axis, or first all before and then all after
            the image: ``(top, left, bottom, right)``
        dilation: pixels from one element of a filter to the next
        groups: number of independent groups of channels and filters
    Result
        ``[n, outputs, p, q]``
    """

    @property
    def channels(self) -> tuple[int, int]:
        return self.outputs, self.inputs // self.groups

    @property
    def function(self) -> Callable[..., Node]:
        return (cg.conv1d, cg.conv2d, cg.conv3d)[self.axes - 1]


class Conv1d(Conv2d):
    """Cross-correlation of sequences ``[n, inputs, w]`` with filters; see Conv2d."""

    axes: ClassVar[int] = 1


class Conv3d(Conv2d):
    """Cross-correlation of volumes ``[n, inputs, d, h, w]`` with filters; see Conv2d."""

    axes: ClassVar[int] = 3


class TransposeConv2d(FilterLayer):
    """The adjoint of a convolution: every pixel spreads its filter over the result.

    Operands
        x: ``[n, inputs, h, w]``
    Fields
        window, stride, dilation, groups: as in the corresponding Conv2d
        pad: pixels to cut off the full result, as numbers
    Result
        ``[n, outputs, p, q]`` with ``p = (h - 1) * stride + dilation * (window - 1) + 1 - cut``
    """

    pad: int | Sequence[int] = 0

    @property
    def channels(self) -> tuple[int, int]:
        return self.inputs, self.outputs // self.groups

    @property
    def function(self) -> Callable[..., Node]:
        return (cg.conv_transpose1d, cg.conv_transpose2d, cg.conv_transpose3d)[self.axes - 1]


class TransposeConv1d(TransposeConv2d):
    """The adjoint of a Conv1d, for sequences ``[n, inputs, w]``."""

    axes: ClassVar[int] = 1


class TransposeConv3d(TransposeConv2d):
    """The adjoint of a Conv3d, for volumes ``[n, inputs, d, h, w]``."""

    axes: ClassVar[int] = 3
