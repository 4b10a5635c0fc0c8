"""Heads on the pyramid: logits and coded boxes of anchors and of proposals, and masks."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d, TransposeConv2d
from nn.layers.linear import Linear
from nn.layers.norm import BatchNorm, LayerNorm
from nn.mode import Mode


class AnchorHead(Layer):
    """A level ``[n, c, h, w]`` to logits ``[n, anchors]`` and coded boxes ``[n, anchors, 4]``: rows, columns, ratios.

    Fields
        inputs, width: channels of the level and of the 3×3 convolutions
        ratios: number of anchors per pixel
        depth: number of 3×3 convolutions
        numbers: one convolution for the logits and then the coded boxes of all ratios
    """

    inputs: int
    width: int
    ratios: int = 3
    depth: int = 1
    conv: tuple[Conv2d, ...] = field(init=False)
    numbers: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        widths = [self.inputs] + [self.width] * self.depth
        self.hold(conv=tuple(Conv2d(c, k, 3, 1, 1) for c, k in zip(widths, widths[1:])))
        self.hold(numbers=Conv2d(self.width, 5 * self.ratios, 1))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, Node]:
        (x,) = xs
        for conv in self.conv:
            x = cg.relu(conv(x, mode=mode))
        numbers = cg.moveaxis(self.numbers(x, mode=mode), 1, -1)
        scores, deltas = numbers[..., : self.ratios], numbers[..., self.ratios :]
        return cg.reshape(scores, (x.shape[0], -1)), cg.reshape(deltas, (x.shape[0], -1, 4))


class Hidden(Layer):
    """A Linear, a norm and a relu.

    Fields
        norm: ``none``, ``layer`` or ``batch``
    """

    inputs: int
    outputs: int
    norm: str = "none"
    linear: Linear = field(init=False)
    normal: Layer | None = field(init=False)

    def __post_init__(self) -> None:
        self.hold(linear=Linear(self.inputs, self.outputs), normal=normal_of(self.norm, self.outputs))

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = self.linear(*xs, mode=mode)
        return cg.relu(x if self.normal is None else self.normal(x, mode=mode))


def normal_of(kind: str, width: int) -> Layer | None:
    """Return a norm by its name: ``none``, ``layer``, or ``batch`` as in Keras."""
    return {"none": None, "layer": LayerNorm(width), "batch": BatchNorm(width, 1e-3)}[kind]


class BoxHead(Layer):
    """Features of boxes ``[k, c, cells, cells]`` to class logits ``[k, classes]`` and coded boxes ``[k, 4 * classes]``.

    Fields
        convs: channels of the first layers, 3×3 convolutions with norms
        hidden: widths of the fully connected layers
        norm: norm of the fully connected layers, as in Hidden
    """

    inputs: int
    cells: int
    classes: int
    convs: tuple[int, ...] = ()
    hidden: tuple[int, ...] = (1024, 1024)
    norm: str = "none"
    conv: tuple[ConvNorm, ...] = field(init=False)
    full: tuple[Hidden, ...] = field(init=False)
    scores: Linear = field(init=False)
    deltas: Linear = field(init=False)

    def __post_init__(self) -> None:
        channels = (self.inputs, *self.convs)
        self.hold(conv=tuple(ConvNorm(c, k, 3, 1, 1) for c, k in zip(channels, channels[1:])))
        widths = (channels[-1] * self.cells**2, *self.hidden)
        self.hold(full=tuple(Hidden(c, k, self.norm) for c, k in zip(widths, widths[1:])))
        self.hold(scores=Linear(widths[-1], self.classes), deltas=Linear(widths[-1], 4 * self.classes))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, Node]:
        (x,) = xs
        for conv in self.conv:
            x = conv(x, mode=mode)
        x = cg.reshape(x, (x.shape[0], -1))
        for layer in self.full:
            x = layer(x, mode=mode)
        return self.scores(x, mode=mode), self.deltas(x, mode=mode)


class MaskHead(Layer):
    """Features of boxes ``[k, c, cells, cells]`` to mask logits of every class ``[k, classes, 2 cells, 2 cells]``.

    Fields
        convs: channels of the 3×3 convolutions
        up: channels of the transposed convolution
        normal: the convolutions have norms
        eps: eps of these norms
    """

    inputs: int
    classes: int
    convs: tuple[int, ...] = (256, 256, 256, 256)
    up: int = 256
    normal: bool = False
    eps: float = 1e-5
    conv: tuple[Layer, ...] = field(init=False)
    enlarge: TransposeConv2d = field(init=False)
    scores: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        pairs = list(zip((self.inputs, *self.convs), self.convs))
        if self.normal:
            self.hold(conv=tuple(ConvNorm(c, k, 3, 1, 1, eps=self.eps) for c, k in pairs))
        else:
            self.hold(conv=tuple(Conv2d(c, k, 3, 1, 1) for c, k in pairs))
        self.hold(enlarge=TransposeConv2d(self.convs[-1], self.up, 2, 2), scores=Conv2d(self.up, self.classes, 1))

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        for conv in self.conv:
            x = cg.relu(conv(x, mode=mode))
        return self.scores(cg.relu(self.enlarge(x, mode=mode)), mode=mode)
