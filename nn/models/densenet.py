"""DenseNet-121 and -201. Source: Huang et al. 2016, arXiv:1608.06993 (with bottlenecks and compression one half)."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.init import HE_NORMAL
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.layers.linear import Linear
from nn.layers.norm import BatchNorm
from nn.layers.pool import AvgPool2d, GlobalAvgPool, MaxPool2d
from nn.mode import Mode

GROWTH = 32
BOTTLENECK = 4 * GROWTH


class NormConv(Layer):
    """BatchNorm, relu, then a convolution without bias: the order of dense blocks."""

    inputs: int
    outputs: int
    window: int
    norm: BatchNorm = field(init=False)
    conv: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        same = self.window // 2
        self.hold(norm=BatchNorm(self.inputs))
        self.hold(conv=Conv2d(self.inputs, self.outputs, self.window, pad=same, use_bias=False, start=HE_NORMAL))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return self.conv(cg.relu(self.norm(*xs, mode=mode)), mode=mode)


class Dense(Layer):
    """x, concatenated with GROWTH new channels."""

    inputs: int
    narrow: NormConv = field(init=False)
    grow: NormConv = field(init=False)

    def __post_init__(self) -> None:
        self.hold(narrow=NormConv(self.inputs, BOTTLENECK, 1), grow=NormConv(BOTTLENECK, GROWTH, 3))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.concat([xs[0], self.grow(self.narrow(*xs, mode=mode), mode=mode)], axis=1)


class DenseNet(Layer):
    """Images ``[n, 3, h, w]`` to class scores (logits) ``[n, classes]``."""

    depths: tuple[int, ...]
    classes: int = 1000
    image: tuple[int, int, int] = (3, 224, 224)
    stem: ConvNorm = field(init=False)
    parts: tuple[Layer, ...] = field(init=False)
    norm: BatchNorm = field(init=False)
    classifier: Linear = field(init=False)

    def __post_init__(self) -> None:
        parts: list[Layer] = []
        channels = 2 * GROWTH
        for i, depth in enumerate(self.depths):
            if i:
                parts += [NormConv(channels, channels // 2, 1), AvgPool2d(2)]
                channels //= 2
            for _ in range(depth):
                parts.append(Dense(channels))
                channels += GROWTH
        self.hold(stem=ConvNorm(3, 2 * GROWTH, 7, 2, 3), parts=tuple(parts), norm=BatchNorm(channels))
        self.hold(classifier=Linear(channels, self.classes))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = MaxPool2d(3, 2, 1)(self.stem(*xs, mode=mode), mode=mode)
        for part in self.parts:
            x = part(x, mode=mode)
        x = cg.relu(self.norm(x, mode=mode))
        return self.classifier(GlobalAvgPool()(x, mode=mode), mode=mode)


def densenet121(weights: Weights = 0, classes: int = 1000) -> DenseNet:
    """Return DenseNet-121; `weights` as for `initialise`."""
    return initialise(DenseNet((6, 12, 24, 16), classes), weights)


def densenet201(weights: Weights = 0, classes: int = 1000) -> DenseNet:
    """Return DenseNet-201; `weights` as for `initialise`."""
    return initialise(DenseNet((6, 12, 48, 32), classes), weights)
