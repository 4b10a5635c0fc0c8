"""A small Mask R-CNN that ships trained: it detects discs, squares and triangles in synthetic images.

`nn.models.mask_rcnn.tools.train_shapes` trains it and measures its precision.
"""

from dataclasses import field
from pathlib import Path

from cgraph import Node
from nn.layer import Layer, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.mode import Mode
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.heads import AnchorHead, BoxHead, MaskHead
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.resnet import Basic
from nn.weights import load_weights

NAMES = ("background", "disc", "square", "triangle")
WIDTHS = (24, 48, 96, 128)
PYRAMID = 64
"""Channels of the pyramid."""
WEIGHTS = Path(__file__).with_name("shapes.safetensors")


class SmallTrunk(Layer):
    """Images ``[n, 3, h, w]`` to maps at strides 4, 8 and 16."""

    stem: ConvNorm = field(init=False)
    blocks: tuple[Basic, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.hold(stem=ConvNorm(3, WIDTHS[0], 3, 2, 1))
        self.hold(blocks=tuple(Basic(c, k, 2) for c, k in zip(WIDTHS, WIDTHS[1:])))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, ...]:
        x = self.stem(*xs, mode=mode)
        maps = []
        for block in self.blocks:
            x = block(x, mode=mode)
            maps.append(x)
        return tuple(maps)


def shapes_config() -> Config:
    """Return the Config of the small network."""
    return Config(
        (128, 128), len(NAMES), anchor_sides=(16, 32, 64), level_side=32.0, level=1, before=200, after=64,
        training_before=200, training_after=64, detections=16, sampled_anchors=128, sampled_boxes=32, positive_boxes=8,
        mean=(127.5, 127.5, 127.5), deviation=(127.5, 127.5, 127.5), portions=1,
    )  # fmt: skip


def shapes_network(weights: Weights = 0) -> MaskRCNN:
    """Return the small network without its trained weights."""
    config = shapes_config()
    lateral = tuple(Conv2d(c, PYRAMID, 1) for c in WIDTHS[1:])
    smooth = tuple(Conv2d(PYRAMID, PYRAMID, 3, 1, 1) for _ in lateral)
    box = BoxHead(PYRAMID, config.cells, config.classes, (PYRAMID, PYRAMID), (96, 96), "layer")
    mask = MaskHead(PYRAMID, config.classes, (32, 32), 32)
    model = MaskRCNN(config, SmallTrunk(), lateral, smooth, AnchorHead(PYRAMID, PYRAMID), box, mask)
    return initialise(model, weights)


def mask_rcnn_shapes() -> MaskRCNN:
    """Return the small network with the weights that ship."""
    return load_weights(WEIGHTS, shapes_network(None))
