"""Networks measured with 8-bit values: EfficientNet-B0, and a small UNet.

Sources: Tan and Le 2019, arXiv:1905.11946 (table 1; squeeze-and-excitation of a quarter of a block's inputs);
Ronneberger et al. 2015, arXiv:1505.04597, with padded convolutions and batch norms.
"""

from dataclasses import field

import cgraph as cg
import nn
from cgraph import Node
from nn.layer import Layer, Sample, initialise

STEM, LAST = 32, 1280
GROUPS = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
"""Expansion, result channels, blocks, stride of the first block, window."""


class SqueezeExcite(Layer):
    """Each channel times a number computed from the means of all channels."""

    channels: int
    squeezed: int
    pool: nn.GlobalAvgPool = field(init=False)
    down: nn.Conv2d = field(init=False)
    up: nn.Conv2d = field(init=False)

    def __post_init__(self) -> None:
        self.hold(pool=nn.GlobalAvgPool(keep=True))
        self.hold(down=nn.Conv2d(self.channels, self.squeezed, 1), up=nn.Conv2d(self.squeezed, self.channels, 1))

    def build(self, *xs: Node, mode: nn.Mode) -> Node:
        (x,) = xs
        return x * cg.sigmoid(self.up(cg.swish(self.down(self.pool(x, mode=mode), mode=mode)), mode=mode))


class Block(Layer):
    """MBConv: a widening 1×1, depthwise, squeeze-and-excitation, a narrowing 1×1; adds x if the shapes agree."""

    inputs: int
    outputs: int
    expansion: int
    stride: int
    window: int
    parts: tuple[Layer, ...] = field(init=False)

    def __post_init__(self) -> None:
        wide, pad = self.inputs * self.expansion, self.window // 2
        widen = [nn.ConvNorm(self.inputs, wide, 1, function="swish")] if self.expansion > 1 else []
        deep = nn.ConvNorm(wide, wide, self.window, self.stride, pad, groups=wide, function="swish")
        excite = SqueezeExcite(wide, max(1, self.inputs // 4))
        self.hold(parts=(*widen, deep, excite, nn.ConvNorm(wide, self.outputs, 1, function="none")))

    def build(self, *xs: Node, mode: nn.Mode) -> Node:
        (x,) = xs
        y = x
        for part in self.parts:
            y = part(y, mode=mode)
        return y + x if self.stride == 1 and self.inputs == self.outputs else y


class EfficientNet(Layer):
    """Images ``[n, 3, h, w]`` to scores ``[n, classes]``."""

    classes: int = 1000
    image: tuple[int, int, int] = (3, 224, 224)
    parts: tuple[Layer, ...] = field(init=False)

    def __post_init__(self) -> None:
        before, parts = STEM, list[Layer]([nn.ConvNorm(3, STEM, 3, 2, 1, function="swish")])
        for expansion, outputs, blocks, stride, window in GROUPS:
            for i in range(blocks):
                parts.append(Block(before, outputs, expansion, 1 if i else stride, window))
                before = outputs
        last = nn.ConvNorm(before, LAST, 1, function="swish")
        self.hold(parts=(*parts, last, nn.GlobalAvgPool(keep=True), nn.Conv2d(LAST, self.classes, 1)))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: nn.Mode) -> Node:
        (x,) = xs
        for part in self.parts:
            x = part(x, mode=mode)
        return cg.reshape(x, (x.shape[0], self.classes))


class Pair(Layer):
    """Two 3×3 convolutions with norms and relus."""

    inputs: int
    outputs: int
    first: nn.ConvNorm = field(init=False)
    second: nn.ConvNorm = field(init=False)

    def __post_init__(self) -> None:
        self.hold(first=nn.ConvNorm(self.inputs, self.outputs, 3, 1, 1))
        self.hold(second=nn.ConvNorm(self.outputs, self.outputs, 3, 1, 1))

    def build(self, *xs: Node, mode: nn.Mode) -> Node:
        return self.second(self.first(*xs, mode=mode), mode=mode)


class UNet(Layer):
    """Images ``[n, 3, size, size]`` to scores ``[n, classes, size, size]``.

    Fields
        width: channels at full size, twice as many at each of `depth` halvings
    """

    classes: int = 2
    width: int = 32
    depth: int = 4
    size: int = 128
    down: tuple[Pair, ...] = field(init=False)
    spread: tuple[nn.TransposeConv2d, ...] = field(init=False)
    up: tuple[Pair, ...] = field(init=False)
    scores: nn.Conv2d = field(init=False)

    def __post_init__(self) -> None:
        counts = [self.width << i for i in range(self.depth + 1)]
        self.hold(down=tuple(Pair(c, k) for c, k in zip([3, *counts], counts)))
        self.hold(spread=tuple(nn.TransposeConv2d(2 * c, c, 2, 2, use_bias=False) for c in counts[-2::-1]))
        self.hold(up=tuple(Pair(2 * c, c) for c in counts[-2::-1]))
        self.hold(scores=nn.Conv2d(self.width, self.classes, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample((3, self.size, self.size)),)

    def build(self, *xs: Node, mode: nn.Mode) -> Node:
        found = [self.down[0](*xs, mode=mode)]
        for pair in self.down[1:]:
            found.append(pair(nn.MaxPool2d(2, 2)(found[-1], mode=mode), mode=mode))
        x = found.pop()
        for spread, pair in zip(self.spread, self.up):
            x = pair(cg.concat([found.pop(), spread(x, mode=mode)], 1), mode=mode)
        return self.scores(x, mode=mode)


def efficientnet_b0(weights: int | None = 0) -> EfficientNet:
    return initialise(EfficientNet(), weights)


def unet(weights: int | None = 0) -> UNet:
    return initialise(UNet(), weights)
