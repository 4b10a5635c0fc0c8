"""The large networks: torchvision's two versions, and matterport's, which is Owl's."""

from cgraph.record import replace
from nn.layer import Layer, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.models.mask_rcnn.config import Config, matterport_config, torchvision_config
from nn.models.mask_rcnn.heads import AnchorHead, BoxHead, MaskHead
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.mask_rcnn.trunk import DEPTHS, ResNetTrunk

CHANNELS = (256, 512, 1024, 2048)
WIDTH = 256


def mask_rcnn(
    depth: int = 50,
    weights: int | str | None = 0,
    config: Config | None = None,
    version: int = 1,
    eps: float = 1e-5,
) -> MaskRCNN:
    """torchvision's network.

    Parameters
        depth: 50, 101 or 152
        weights: a seed, ``"zeros"``, or None for none
        version: 2 has norms in pyramid and heads, and deeper heads: ``maskrcnn_resnet50_fpn_v2``
        eps: of the trunk's norms; torchvision sets it to 0 for its COCO file of version 1
    """
    config = config or torchvision_config()
    deep = version == 2
    trunk = ResNetTrunk(DEPTHS[depth], eps=eps, frozen=not deep)
    lateral, smooth = pyramid(deep)
    box = BoxHead(WIDTH, config.cells, config.classes, (WIDTH,) * 4 if deep else (), (1024,) if deep else (1024, 1024))
    mask = MaskHead(WIDTH, config.classes, normal=deep)
    rpn = AnchorHead(WIDTH, WIDTH, len(config.ratios), 2 if deep else 1)
    return initialise(MaskRCNN(config, trunk, lateral, smooth, rpn, box, mask), weights)


def mask_rcnn_matterport(depth: int = 101, weights: int | str | None = 0, config: Config | None = None) -> MaskRCNN:
    """matterport's network: strides on the first convolutions, norms in the heads, 512 channels for proposals."""
    config = config or matterport_config()
    trunk = ResNetTrunk(DEPTHS[depth], first_stride=True, eps=1e-3)
    lateral, smooth = pyramid(False)
    box = BoxHead(WIDTH, config.cells, config.classes, (), (1024, 1024), "batch")
    mask = MaskHead(WIDTH, config.classes, normal=True, eps=1e-3)
    rpn = AnchorHead(WIDTH, 512, len(config.ratios))
    return initialise(MaskRCNN(config, trunk, lateral, smooth, rpn, box, mask), weights)


def mask_rcnn_owl(weights: int | str | None = 0, side: int = 768) -> MaskRCNN:
    """Owl's: matterport's network on pictures of 768 pixels, which keeps scores from 0.75."""
    return mask_rcnn_matterport(101, weights, replace(matterport_config(side), least_score=0.75))


def pyramid(normal: bool) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """1×1 convolutions of the trunk's maps, and 3×3 ones of the levels."""

    def layer(channels: int, window: int) -> Layer:
        if normal:
            return ConvNorm(channels, WIDTH, window, 1, window // 2, function="none")
        return Conv2d(channels, WIDTH, window, 1, window // 2)

    return tuple(layer(c, 1) for c in CHANNELS), tuple(layer(WIDTH, 3) for _ in CHANNELS)
