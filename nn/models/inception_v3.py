"""Inception v3. Source: Szegedy et al. 2015, arXiv:1512.00567; names and sizes as in TensorFlow's slim.

Each block has one concatenation of all its branches, including the forks inside a branch.
"""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.container import Branches, Sequential
from nn.layers.conv import Conv2d
from nn.layers.merge import Concatenate
from nn.layers.pool import AvgPool2d, GlobalAvgPool, MaxPool2d
from nn.layers.window import Pad, Sizes
from nn.mode import Mode

EPS = 1e-3


class Forked(Layer):
    """A 1×3 and a 3×1 convolution of the result of `stem`."""

    stem: Sequential
    inputs: int
    outputs: int
    wide: ConvNorm = field(init=False)
    tall: ConvNorm = field(init=False)

    def __post_init__(self) -> None:
        wide = conv(self.inputs, self.outputs, (1, 3), pad="same")
        self.hold(wide=wide, tall=conv(self.inputs, self.outputs, (3, 1), pad="same"))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, Node]:
        x = self.stem(*xs, mode=mode)
        return self.wide(x, mode=mode), self.tall(x, mode=mode)


class Flat(Layer):
    """All results of all branches, concatenated along the channels."""

    parts: tuple[Layer, ...]

    def build(self, *xs: Node, mode: Mode) -> Node:
        results: list[Node] = []
        for part in self.parts:
            result = part(*xs, mode=mode)
            results.extend(result if isinstance(result, tuple) else (result,))
        return cg.concat(results, axis=1)


def conv(inputs: int, outputs: int, window: Sizes, stride: int = 1, pad: Pad = "valid") -> ConvNorm:
    """Return a ConvNorm with this network's eps."""
    return ConvNorm(inputs, outputs, window, stride, pad, eps=EPS)


def chain(inputs: int, *steps: tuple) -> Sequential:
    """Return convolutions ``(outputs, window)`` of unchanged size, or ``(outputs, window, stride)`` without padding."""
    parts = []
    for outputs, window, *rest in steps:
        parts.append(conv(inputs, outputs, window, rest[0] if rest else 1, "valid" if rest else "same"))
        inputs = outputs
    return Sequential(*parts)


def pooling_branch(inputs: int, outputs: int, torch: bool) -> Sequential:
    """Return the branch of average pooling and a 1×1 convolution."""
    return Sequential(AvgPool2d(3, 1, "same", count_pad=torch), conv(inputs, outputs, 1))


def concatenate_branches(*parts: Layer) -> Branches:
    """Return branches whose results are concatenated."""
    return Branches(parts, Concatenate(1))


def block_35(inputs: int, outputs: int, torch: bool) -> Branches:
    """Return a block at 35×35 pixels."""
    return concatenate_branches(
        chain(inputs, (64, 1)),
        chain(inputs, (48, 1), (64, 5)),
        chain(inputs, (64, 1), (96, 3), (96, 3)),
        pooling_branch(inputs, outputs, torch),
    )


def block_17(c: int, torch: bool) -> Branches:
    """Return a block at 17×17 pixels: four branches of 192 channels, `c` inside the 1×7 and 7×1 chains."""
    w, t = (1, 7), (7, 1)
    return concatenate_branches(
        chain(768, (192, 1)),
        chain(768, (c, 1), (c, w), (192, t)),
        chain(768, (c, 1), (c, t), (c, w), (c, t), (192, w)),
        pooling_branch(768, 192, torch),
    )


def block_8(inputs: int, torch: bool) -> Flat:
    """Return a block at 8×8 pixels."""
    return Flat(
        (
            chain(inputs, (320, 1)),
            Forked(chain(inputs, (384, 1)), 384, 384),
            Forked(chain(inputs, (448, 1), (384, 3)), 384, 384),
            pooling_branch(inputs, 192, torch),
        )
    )


def blocks(torch: bool) -> tuple[Layer, ...]:
    """Return all blocks after the stem."""
    down_17 = concatenate_branches(chain(288, (384, 3, 2)), chain(288, (64, 1), (96, 3), (96, 3, 2)), MaxPool2d(3, 2))
    down_8 = concatenate_branches(
        chain(768, (192, 1), (320, 3, 2)),
        chain(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2)),
        MaxPool2d(3, 2),
    )
    return (
        *(block_35(192, 32, torch), block_35(256, 64, torch), block_35(288, 64, torch)),
        *(down_17, *(block_17(c, torch) for c in (128, 160, 160, 192))),
        *(down_8, block_8(1280, torch), block_8(2048, torch)),
    )


class InceptionV3(Layer):
    """Images ``[n, 3, 299, 299]`` to class probabilities ``[n, classes]``.

    Fields
        torch: as in torchvision: padding zeros count in the means of average pooling
    """

    classes: int = 1000
    torch: bool = False
    image: tuple[int, int, int] = (3, 299, 299)
    stem: Sequential = field(init=False)
    parts: tuple[Layer, ...] = field(init=False)
    pool: GlobalAvgPool = field(init=False)
    classifier: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        first = (conv(3, 32, 3, 2), conv(32, 32, 3), conv(32, 64, 3, pad="same"), MaxPool2d(3, 2))
        self.hold(stem=Sequential(*first, conv(64, 80, 1), conv(80, 192, 3), MaxPool2d(3, 2)))
        self.hold(parts=blocks(self.torch), pool=GlobalAvgPool(keep=True), classifier=Conv2d(2048, self.classes, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = self.stem(*xs, mode=mode)
        for part in self.parts:
            x = part(x, mode=mode)
        logits = self.classifier(self.pool(x, mode=mode), mode=mode)
        return cg.softmax(cg.reshape(logits, (x.shape[0], self.classes)), axis=-1)


def inception_v3(weights: Weights = 0, classes: int = 1000, torch: bool = False) -> InceptionV3:
    """Return Inception v3; `weights` as for `initialise`, `torch` as in InceptionV3."""
    return initialise(InceptionV3(classes, torch), weights)
