"""MobileNet v1. Source: Howard et al. 2017, arXiv:1704.04861; TensorFlow's slim for padding and the 1×1 classifier."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.layers.pool import GlobalAvgPool
from nn.mode import Mode

STEM = 32
BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1),
    (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip
"""Result channels at width 1, and stride, of the depthwise-separable blocks."""
EPS = 1e-3


class Separable(Layer):
    """A 3×3 depthwise convolution, then a 1×1 one that mixes the channels."""

    inputs: int
    outputs: int
    stride: int = 1
    dilation: int = 1
    depthwise: ConvNorm = field(init=False)
    pointwise: ConvNorm = field(init=False)

    def __post_init__(self) -> None:
        c, k = self.inputs, self.outputs
        self.hold(depthwise=ConvNorm(c, c, 3, self.stride, "same", self.dilation, c, function="relu6", eps=EPS))
        self.hold(pointwise=ConvNorm(c, k, 1, function="relu6", eps=EPS))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return self.pointwise(self.depthwise(*xs, mode=mode), mode=mode)


def body(width: float, blocks: tuple[tuple[int, int], ...] = BLOCKS) -> tuple[Layer, ...]:
    """Return the stem and the separable blocks, with all channels multiplied by `width`."""
    stem = int(STEM * width)
    parts: list[Layer] = [ConvNorm(3, stem, 3, 2, "same", function="relu6", eps=EPS)]
    before = stem
    for channels, stride in blocks:
        parts.append(Separable(before, int(channels * width), stride))
        before = int(channels * width)
    return tuple(parts)


class MobileNetV1(Layer):
    """Images ``[n, 3, h, w]`` to class probabilities ``[n, classes]``."""

    classes: int = 1000
    width: float = 1.0
    image: tuple[int, int, int] = (3, 224, 224)
    parts: tuple[Layer, ...] = field(init=False)
    pool: GlobalAvgPool = field(init=False)
    classifier: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        features = int(BLOCKS[-1][0] * self.width)
        self.hold(parts=body(self.width), pool=GlobalAvgPool(keep=True))
        self.hold(classifier=Conv2d(features, self.classes, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        for part in self.parts:
            x = part(x, mode=mode)
        logits = self.classifier(self.pool(x, mode=mode), mode=mode)
        return cg.softmax(cg.reshape(logits, (x.shape[0], self.classes)), axis=-1)


def mobilenet_v1(weights: Weights = 0, classes: int = 1000, width: float = 1.0) -> MobileNetV1:
    """Return MobileNet v1; `weights` as for `initialise`."""
    return initialise(MobileNetV1(classes, width), weights)
