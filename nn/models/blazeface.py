"""BlazeFace: a detector of faces with six points on each. The front camera's network takes 128×128 pixels and detects
large faces, the back camera's takes 256×256 and detects smaller ones too.

Source: Bazarevsky et al. 2019, arXiv:1907.05047; MediaPipe's face_detection_front and face_detection_back for sizes.
"""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.conv import Conv2d
from nn.layers.pool import MaxPool2d
from nn.mode import Mode

FIRST = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (80, 1), (88, 1))
SECOND = ((96, 2), (96, 1), (96, 1), (96, 1), (96, 1))
BACK_FIRST = (*((24, 1),) * 7, (24, 2), *((24, 1),) * 7, (48, 2), *((48, 1),) * 7, (96, 2), *((96, 1),) * 7)
BACK_SECOND = ((96, 2),)
"""Result channels and stride of the blocks before and after the first heads."""
NUMBERS = 16
"""Numbers per anchor: centre, size, and six points."""


class BlazeBlock(Layer):
    """Depthwise 3×3 and pointwise convolution, plus x, whose channels are padded with zeros.

    Fields
        residual: add x
    """

    inputs: int
    outputs: int
    stride: int = 1
    residual: bool = True
    depthwise: Conv2d = field(init=False)
    pointwise: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        c = self.inputs
        self.hold(depthwise=Conv2d(c, c, 3, self.stride, "same", groups=c), pointwise=Conv2d(c, self.outputs, 1))

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        y = self.pointwise(self.depthwise(x, mode=mode), mode=mode)
        if not self.residual:
            return cg.relu(y)
        if self.stride == 2:
            x = MaxPool2d(2)(x, mode=mode)
        missing = self.outputs - self.inputs
        if missing:
            x = cg.pad(x, [(0, 0), (0, missing), (0, 0), (0, 0)])
        return cg.relu(y + x)


def blocks(before: int, sizes: tuple[tuple[int, int], ...], residual: bool = True) -> tuple[BlazeBlock, ...]:
    """Return a chain of blocks, one for each pair of result channels and stride in `sizes`."""
    parts = []
    for channels, stride in sizes:
        parts.append(BlazeBlock(before, channels, stride, residual))
        before = channels
    return tuple(parts)


class BlazeFace(Layer):
    """Images ``[n, 3, h, w]`` with values from -1 to 1 to raw boxes ``[n, 896, 16]`` and scores ``[n, 896, 1]``.

    Boxes are in pixels relative to their anchor; the sigmoid of a score is a probability.

    Fields
        back: the back camera's network
    """

    back: bool = False
    stem: Conv2d = field(init=False)
    first: tuple[BlazeBlock, ...] = field(init=False)
    second: tuple[BlazeBlock, ...] = field(init=False)
    scores_8: Conv2d = field(init=False)
    scores_16: Conv2d = field(init=False)
    boxes_8: Conv2d = field(init=False)
    boxes_16: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        first, second = (BACK_FIRST, BACK_SECOND) if self.back else (FIRST, SECOND)
        stem, c, d = first[0][0], first[-1][0], second[-1][0]
        self.hold(stem=Conv2d(3, stem, 5, 2, "same"), first=blocks(stem, first))
        self.hold(second=blocks(c, second, residual=not self.back))
        self.hold(scores_8=Conv2d(c, 2, 1), scores_16=Conv2d(d, 6, 1))
        self.hold(boxes_8=Conv2d(c, 2 * NUMBERS, 1), boxes_16=Conv2d(d, 6 * NUMBERS, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample((3, 256, 256) if self.back else (3, 128, 128)),)

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, Node]:
        x = cg.relu(self.stem(*xs, mode=mode))
        for block in self.first:
            x = block(x, mode=mode)
        y = x
        for block in self.second:
            y = block(y, mode=mode)
        scores = cg.concat([per_anchor(self.scores_8(x, mode=mode), 1), per_anchor(self.scores_16(y, mode=mode), 1)], 1)
        boxes = [per_anchor(self.boxes_8(x, mode=mode), NUMBERS), per_anchor(self.boxes_16(y, mode=mode), NUMBERS)]
        return cg.concat(boxes, axis=1), scores


def per_anchor(x: Node, numbers: int) -> Node:
    """Return maps ``[n, anchors * numbers, h, w]`` as rows ``[n, h * w * anchors, numbers]``."""
    return cg.reshape(cg.transpose(x, (0, 2, 3, 1)), (x.shape[0], -1, numbers))


def blazeface(weights: Weights = 0, back: bool = False) -> BlazeFace:
    """Return BlazeFace; `weights` as for `initialise`."""
    return initialise(BlazeFace(back), weights)
