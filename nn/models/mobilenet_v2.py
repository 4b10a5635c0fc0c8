"""MobileNet v2. Source: Sandler et al. 2018, arXiv:1801.04381; TensorFlow's slim for padding and the 1×1 classifier."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.layers.pool import GlobalAvgPool
from nn.layers.window import Pad
from nn.mode import Mode

STEM, LAST = 32, 1280
GROUPS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, result channels, blocks, stride of the first block."""
EPS = 1e-3


class InvertedResidual(Layer):
    """1×1 expansion, 3×3 depthwise and linear 1×1 projection; adds x if the shapes are equal.

    Fields
        pad: padding of the depthwise convolution
        eps: eps of the norms
    """

    inputs: int
    outputs: int
    expansion: int
    stride: int = 1
    dilation: int = 1
    pad: Pad = "same"
    eps: float = EPS
    expand: ConvNorm | None = field(init=False)
    depthwise: ConvNorm = field(init=False)
    project: ConvNorm = field(init=False)

    def __post_init__(self) -> None:
        wide = self.inputs * self.expansion
        widen = ConvNorm(self.inputs, wide, 1, function="relu6", eps=self.eps) if self.expansion > 1 else None
        deep = ConvNorm(wide, wide, 3, self.stride, self.pad, self.dilation, wide, function="relu6", eps=self.eps)
        narrow = ConvNorm(wide, self.outputs, 1, function="none", eps=self.eps)
        self.hold(expand=widen, depthwise=deep, project=narrow)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        y = x if self.expand is None else self.expand(x, mode=mode)
        y = self.project(self.depthwise(y, mode=mode), mode=mode)
        return y + x if self.stride == 1 and self.inputs == self.outputs else y


def channels(count: int, width: float) -> int:
    """Return `count` times `width`, rounded to a multiple of 8 that is at least nine tenths of it."""
    exact = count * width
    multiple = max(8, int(exact + 4) // 8 * 8)
    return multiple + 8 if multiple < 0.9 * exact else multiple


def body(width: float, pad: Pad, eps: float) -> tuple[Layer, ...]:
    """Return the stem and the inverted residuals, without the last 1×1 convolution."""
    before = channels(STEM, width)
    parts: list[Layer] = [ConvNorm(3, before, 3, 2, pad, function="relu6", eps=eps)]
    for expansion, count, blocks, stride in GROUPS:
        for i in range(blocks):
            step = stride if i == 0 else 1
            parts.append(InvertedResidual(before, channels(count, width), expansion, step, pad=pad, eps=eps))
            before = channels(count, width)
    return tuple(parts)


class MobileNetV2(Layer):
    """Images ``[n, 3, h, w]`` to class probabilities ``[n, classes]``.

    Fields
        torch: as in torchvision: symmetric padding, and norms with an eps of 1e-5
    """

    classes: int = 1000
    width: float = 1.0
    torch: bool = False
    image: tuple[int, int, int] = (3, 224, 224)
    parts: tuple[Layer, ...] = field(init=False)
    last: ConvNorm = field(init=False)
    pool: GlobalAvgPool = field(init=False)
    classifier: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        wide = max(LAST, channels(LAST, self.width))
        pad: Pad = 1 if self.torch else "same"
        eps = 1e-5 if self.torch else EPS
        self.hold(parts=body(self.width, pad, eps))
        self.hold(last=ConvNorm(channels(GROUPS[-1][1], self.width), wide, 1, function="relu6", eps=eps))
        self.hold(pool=GlobalAvgPool(keep=True), classifier=Conv2d(wide, self.classes, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        for part in (*self.parts, self.last, self.pool, self.classifier):
            x = part(x, mode=mode)
        return cg.softmax(cg.reshape(x, (x.shape[0], self.classes)), axis=-1)


def mobilenet_v2(weights: Weights = 0, classes: int = 1000, width: float = 1.0, torch: bool = False) -> MobileNetV2:
    """Return MobileNet v2; `weights` as for `initialise`, `torch` as in MobileNetV2."""
    return initialise(MobileNetV2(classes, width, torch), weights)
