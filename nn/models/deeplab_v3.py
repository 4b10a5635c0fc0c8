"""DeepLab v3 on MobileNet v2 at half width, output stride 8: the 257×257 network for phones.

Source: Chen et al. 2017, arXiv:1706.05587; the head has the 1×1 branch and the image pooling only, and channels are
not rounded to multiples of 8 but of 4, as in the published deeplabv3_257_mv_gpu.
"""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.layers.pool import GlobalAvgPool
from nn.mode import Mode
from nn.models.mobilenet_v2 import EPS, GROUPS, STEM, InvertedResidual

WIDTH, STRIDE, HEAD = 0.5, 8, 256


def atrous_body() -> tuple[Layer, ...]:
    """Return MobileNet v2's blocks; where the stride would exceed 8, the next blocks have dilated windows instead."""
    before = int(STEM * WIDTH)
    parts: list[Layer] = [ConvNorm(3, before, 3, 2, "same", function="relu6", eps=EPS)]
    total, rate = 2, 1
    for expansion, count, blocks, stride in GROUPS:
        for i in range(blocks):
            full_stride = stride if i == 0 else 1
            step = full_stride if total * full_stride <= STRIDE else 1
            parts.append(InvertedResidual(before, int(count * WIDTH), expansion, step, rate))
            total, rate = total * step, rate * (full_stride // step)
            before = int(count * WIDTH)
    return tuple(parts)


class DeepLabV3(Layer):
    """Images ``[n, 3, h, w]`` to class scores of every pixel ``[n, classes, h, w]``."""

    classes: int = 21
    image: tuple[int, int, int] = (3, 257, 257)
    parts: tuple[Layer, ...] = field(init=False)
    pool: GlobalAvgPool = field(init=False)
    pooled: ConvNorm = field(init=False)
    aspp: ConvNorm = field(init=False)
    projection: ConvNorm = field(init=False)
    logits: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        features = int(GROUPS[-1][1] * WIDTH)
        self.hold(parts=atrous_body(), pool=GlobalAvgPool(keep=True))
        self.hold(pooled=ConvNorm(features, HEAD, 1), aspp=ConvNorm(features, HEAD, 1))
        self.hold(projection=ConvNorm(2 * HEAD, HEAD, 1), logits=Conv2d(HEAD, self.classes, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        (image,) = xs
        x = image
        for part in self.parts:
            x = part(x, mode=mode)
        whole = self.pooled(self.pool(x, mode=mode), mode=mode)
        whole = resize_bilinear(whole, x.shape[2:])
        joined = cg.concat([whole, self.aspp(x, mode=mode)], axis=1)
        scores = self.logits(self.projection(joined, mode=mode), mode=mode)
        return resize_bilinear(scores, image.shape[2:])


def resize_bilinear(x: Node, shape: tuple[int, ...]) -> Node:
    """Return a bilinear resize with aligned corners."""
    return cg.resize(x, tuple(shape), mode="linear", coordinates="align_corners")


def deeplab_v3(weights: Weights = 0, classes: int = 21) -> DeepLabV3:
    """Return DeepLab v3; `weights` as for `initialise`."""
    return initialise(DeepLabV3(classes), weights)
