"""ResNet. Source: He et al. 2015, arXiv:1512.03385; the 3×3 convolution has the stride, as in torchvision.

The networks for CIFAR-10 have 3 groups of 16, 32 and 64 channels and shortcuts without weights (option A).
"""

from dataclasses import field
from typing import Any

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.linear import Linear
from nn.layers.pool import GlobalAvgPool, MaxPool2d
from nn.mode import Mode

CHANNELS = (64, 128, 256, 512)


class Basic(Layer):
    """Two 3×3 convolutions and a shortcut.

    Fields
        subsampled: the shortcut subsamples pixels and pads channels with zeros, instead of a 1×1 convolution
    """

    inputs: int
    outputs: int
    stride: int = 1
    subsampled: bool = False
    first: ConvNorm = field(init=False)
    second: ConvNorm = field(init=False)
    shortcut: ConvNorm | None = field(init=False)

    def __post_init__(self) -> None:
        c, k = self.inputs, self.outputs
        self.hold(first=ConvNorm(c, k, 3, self.stride, 1), second=ConvNorm(k, k, 3, 1, 1, function="none"))
        self.hold(shortcut=None if self.subsampled else shortcut(c, k, self.stride))

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        y = self.second(self.first(x, mode=mode), mode=mode)
        if self.shortcut is not None:
            x = self.shortcut(x, mode=mode)
        elif self.inputs != self.outputs:
            x = subsample(x, self.stride, self.outputs - self.inputs)
        return cg.relu(y + x)


class Bottleneck(Layer):
    """1×1, 3×3 and 1×1 convolution and a shortcut; the result has four times `width` channels.

    Fields
        first_stride: the first 1×1 convolution has the stride, as in the paper and in Keras
        eps, frozen: as in ConvNorm
    """

    inputs: int
    width: int
    stride: int = 1
    first_stride: bool = False
    eps: float = 1e-5
    frozen: bool = False
    first: ConvNorm = field(init=False)
    second: ConvNorm = field(init=False)
    third: ConvNorm = field(init=False)
    shortcut: ConvNorm | None = field(init=False)

    def __post_init__(self) -> None:
        c, w, k = self.inputs, self.width, 4 * self.width
        before, after = (self.stride, 1) if self.first_stride else (1, self.stride)
        how: dict[str, Any] = {"eps": self.eps, "frozen": self.frozen}
        self.hold(first=ConvNorm(c, w, 1, before, **how), second=ConvNorm(w, w, 3, after, 1, **how))
        self.hold(third=ConvNorm(w, k, 1, function="none", **how), shortcut=shortcut(c, k, self.stride, **how))

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        y = self.third(self.second(self.first(x, mode=mode), mode=mode), mode=mode)
        return cg.relu(y + (x if self.shortcut is None else self.shortcut(x, mode=mode)))


def shortcut(inputs: int, outputs: int, stride: int, **how: Any) -> ConvNorm | None:
    """Return a 1×1 convolution if the shapes differ, else None."""
    same = inputs == outputs and stride == 1
    return None if same else ConvNorm(inputs, outputs, 1, stride, function="none", **how)


def subsample(x: Node, stride: int, missing: int) -> Node:
    """Return every `stride`-th pixel, with zero channels, half of them before and half after."""
    return cg.pad(x[:, :, ::stride, ::stride], [(0, 0), (missing // 2, missing - missing // 2), (0, 0), (0, 0)])


class ResNet(Layer):
    """Images ``[n, 3, h, w]`` to class scores (logits) ``[n, classes]``.

    Fields
        depths: number of blocks in each group
        bottleneck: Bottleneck blocks, else Basic ones
        small: for CIFAR-10: 3×3 stem without pooling, 16 first channels, option A shortcuts
    """

    depths: tuple[int, ...]
    bottleneck: bool = False
    small: bool = False
    classes: int = 1000
    image: tuple[int, int, int] = (3, 224, 224)
    stem: ConvNorm = field(init=False)
    groups: tuple[tuple[Layer, ...], ...] = field(init=False)
    pool: GlobalAvgPool = field(init=False)
    classifier: Linear = field(init=False)

    def __post_init__(self) -> None:
        first = 16 if self.small else CHANNELS[0]
        self.hold(stem=ConvNorm(3, first, 3, 1, 1) if self.small else ConvNorm(3, first, 7, 2, 3))
        groups, before = [], first
        for i, depth in enumerate(self.depths):
            group, before = self._group(before, first << i, depth, 1 if i == 0 else 2)
            groups.append(group)
        self.hold(groups=tuple(groups), pool=GlobalAvgPool(), classifier=Linear(before, self.classes))

    def _group(self, before: int, width: int, depth: int, stride: int) -> tuple[tuple[Layer, ...], int]:
        blocks: list[Layer] = []
        for i in range(depth):
            step = stride if i == 0 else 1
            block = Bottleneck(before, width, step) if self.bottleneck else Basic(before, width, step, self.small)
            blocks.append(block)
            before = 4 * width if self.bottleneck else width
        return tuple(blocks), before

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = self.stem(*xs, mode=mode)
        if not self.small:
            x = MaxPool2d(3, 2, 1)(x, mode=mode)
        for group in self.groups:
            for block in group:
                x = block(x, mode=mode)
        return self.classifier(self.pool(x, mode=mode), mode=mode)


def resnet18(weights: Weights = 0, classes: int = 1000) -> ResNet:
    return initialise(ResNet((2, 2, 2, 2), classes=classes), weights)


def resnet34(weights: Weights = 0, classes: int = 1000) -> ResNet:
    return initialise(ResNet((3, 4, 6, 3), classes=classes), weights)


def resnet50(weights: Weights = 0, classes: int = 1000) -> ResNet:
    return initialise(ResNet((3, 4, 6, 3), bottleneck=True, classes=classes), weights)


def resnet101(weights: Weights = 0, classes: int = 1000) -> ResNet:
    return initialise(ResNet((3, 4, 23, 3), bottleneck=True, classes=classes), weights)


def resnet152(weights: Weights = 0, classes: int = 1000) -> ResNet:
    return initialise(ResNet((3, 8, 36, 3), bottleneck=True, classes=classes), weights)


def resnet20(weights: Weights = 0) -> ResNet:
    return initialise(cifar(3), weights)


def resnet56(weights: Weights = 0) -> ResNet:
    return initialise(cifar(9), weights)


def cifar(depth: int) -> ResNet:
    return ResNet((depth,) * 3, small=True, classes=10, image=(3, 32, 32))
