"""The backbone of the large networks: a ResNet without its classifier."""

from dataclasses import field

from cgraph import Node
from nn.layer import Layer
from nn.layers.block import ConvNorm
from nn.layers.pool import MaxPool2d
from nn.mode import Mode
from nn.models.resnet import Bottleneck

DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class ResNetTrunk(Layer):
    """Images ``[n, 3, h, w]`` to maps of 256, 512, 1024 and 2048 channels at strides 4, 8, 16 and 32.

    Fields
        depths: number of blocks in each group
        first_stride: as in Bottleneck; the stem's pool then has its padding at the end, as in Keras
        eps, frozen: as in BatchNorm
    """

    depths: tuple[int, ...]
    first_stride: bool = False
    eps: float = 1e-5
    frozen: bool = True
    stem: ConvNorm = field(init=False)
    groups: tuple[tuple[Bottleneck, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        how = (self.first_stride, self.eps, self.frozen)
        self.hold(stem=ConvNorm(3, 64, 7, 2, 3, eps=self.eps, frozen=self.frozen))
        groups, before = [], 64
        for i, depth in enumerate(self.depths):
            width, stride = 64 << i, 1 if i == 0 else 2
            blocks = [Bottleneck(before, width, stride, *how)]
            blocks += [Bottleneck(4 * width, width, 1, *how) for _ in range(depth - 1)]
            groups.append(tuple(blocks))
            before = 4 * width
        self.hold(groups=tuple(groups))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, ...]:
        pool = MaxPool2d(3, 2, "same" if self.first_stride else 1)
        x = pool(self.stem(*xs, mode=mode), mode=mode)
        maps = []
        for group in self.groups:
            for block in group:
                x = block(x, mode=mode)
            maps.append(x)
        return tuple(maps)
