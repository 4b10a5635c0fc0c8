"""SqueezeNet 1.0 and 1.1. Source: Iandola et al. 2016, arXiv:1602.07360; 1.1 from the authors' repository."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.init import HE_NORMAL
from nn.layer import Layer, Weights, initialise
from nn.layers.container import Sequential
from nn.layers.conv import Conv2d
from nn.layers.function import Activation
from nn.layers.noise import Dropout
from nn.layers.pool import GlobalAvgPool, MaxPool2d
from nn.layers.shape import Input
from nn.mode import Mode


class Fire(Layer):
    """A 1×1 convolution to few channels, then in parallel a 1×1 and a 3×3 one to `wide` channels each."""

    inputs: int
    few: int
    wide: int
    squeeze: Conv2d = field(init=False)
    expand1: Conv2d = field(init=False)
    expand3: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        self.hold(squeeze=Conv2d(self.inputs, self.few, 1, start=HE_NORMAL))
        self.hold(expand1=Conv2d(self.few, self.wide, 1, start=HE_NORMAL))
        self.hold(expand3=Conv2d(self.few, self.wide, 3, pad=1, start=HE_NORMAL))

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = cg.relu(self.squeeze(*xs, mode=mode))
        return cg.concat([cg.relu(self.expand1(x, mode=mode)), cg.relu(self.expand3(x, mode=mode))], axis=1)


def squeezenet1_0(weights: Weights = 0, classes: int = 1000) -> Sequential:
    """Return SqueezeNet 1.0: images ``[n, 3, 224, 224]`` to class scores (logits) ``[n, classes]``."""
    body = (Conv2d(3, 96, 7, 2, start=HE_NORMAL), Activation(cg.relu), MaxPool2d(3, 2, ceil=True))
    fires = (Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), MaxPool2d(3, 2, ceil=True))
    more = (Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256))
    last = (MaxPool2d(3, 2, ceil=True), Fire(512, 64, 256))
    return initialise(Sequential(Input((3, 224, 224)), *body, *fires, *more, *last, *head(classes)), weights)


def squeezenet1_1(weights: Weights = 0, classes: int = 1000) -> Sequential:
    """Return SqueezeNet 1.1: as 1.0, with 2.4 times less work."""
    body = (Conv2d(3, 64, 3, 2, start=HE_NORMAL), Activation(cg.relu), MaxPool2d(3, 2, ceil=True))
    fires = (Fire(64, 16, 64), Fire(128, 16, 64), MaxPool2d(3, 2, ceil=True), Fire(128, 32, 128), Fire(256, 32, 128))
    more = (Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256))
    parts = (*body, *fires, MaxPool2d(3, 2, ceil=True), *more, *head(classes))
    return initialise(Sequential(Input((3, 224, 224)), *parts), weights)


def head(classes: int) -> tuple[Layer, ...]:
    """Return the layers after the fires."""
    return Dropout(0.5), Conv2d(512, classes, 1), Activation(cg.relu), GlobalAvgPool()
