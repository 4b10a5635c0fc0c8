"""ResNet-101 with a feature pyramid and region-proposal heads: the convolutions of Mask R-CNN.

Source: Lin et al. 2016, arXiv:1612.03144; Ren et al. 2015, arXiv:1506.01497.
"""

from dataclasses import field

import cgraph as cg
import nn
from cgraph import Node
from nn.layer import Layer, Sample, initialise

WIDTH, ANCHORS = 256, 3
BEFORE = (256, 512, 1024, 2048)


class Pyramid(Layer):
    """Class scores and box offsets of all anchors on five levels of an image of `size` x `size` pixels."""

    size: int = 1024
    trunk: Layer = field(init=False)
    lateral: tuple[nn.Conv2d, ...] = field(init=False)
    smooth: tuple[nn.Conv2d, ...] = field(init=False)
    head: nn.Conv2d = field(init=False)
    scores: nn.Conv2d = field(init=False)
    boxes: nn.Conv2d = field(init=False)

    def __post_init__(self) -> None:
        self.hold(trunk=nn.models.ResNet((3, 4, 23, 3), bottleneck=True))
        self.hold(lateral=tuple(nn.Conv2d(c, WIDTH, 1) for c in BEFORE))
        self.hold(smooth=tuple(nn.Conv2d(WIDTH, WIDTH, 3, 1, 1) for _ in BEFORE))
        self.hold(head=nn.Conv2d(WIDTH, 512, 3, 1, 1), scores=nn.Conv2d(512, 2 * ANCHORS, 1))
        self.hold(boxes=nn.Conv2d(512, 4 * ANCHORS, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample((3, self.size, self.size)),)

    def build(self, *xs: Node, mode: nn.Mode) -> tuple[Node, ...]:
        x = nn.MaxPool2d(3, 2, 1)(self.trunk.stem(*xs, mode=mode), mode=mode)
        found = []
        for group in self.trunk.groups:
            for block in group:
                x = block(x, mode=mode)
            found.append(x)
        levels = [self.lateral[-1](found[-1], mode=mode)]
        for x, convolve in zip(found[-2::-1], self.lateral[-2::-1]):
            levels.insert(0, convolve(x, mode=mode) + nn.UpSampling(2)(levels[0], mode=mode))
        levels = [convolve(x, mode=mode) for x, convolve in zip(levels, self.smooth)]
        levels.append(nn.MaxPool2d(1, 2)(levels[-1], mode=mode))
        results = []
        for x in levels:
            shared = cg.relu(self.head(x, mode=mode))
            results += [self.scores(shared, mode=mode), self.boxes(shared, mode=mode)]
        return tuple(results)


def fpn(weights: int = 0) -> Pyramid:
    return initialise(Pyramid(), weights)
