"""The large networks: torchvision's two versions, and matterport's, which Owl uses too."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cgraph.formats.keras_h5 import read_keras
from cgraph.formats.torch_file import read_torch
from cgraph.record import replace
from cgraph.storage.cell import assign_all
from nn.layer import Layer, Weights, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.models.mask_rcnn.backbone import DEPTHS, ResNetTrunk
from nn.models.mask_rcnn.coco_names import in_a_row, with_gaps
from nn.models.mask_rcnn.config import Config, matterport_config, torchvision_config
from nn.models.mask_rcnn.heads import AnchorHead, BoxHead, MaskHead
from nn.models.mask_rcnn.names import matterport_arrays, torchvision_arrays
from nn.models.mask_rcnn.network import MaskRCNN
from nn.weights import set_values

CHANNELS = (256, 512, 1024, 2048)
WIDTH = 256


def mask_rcnn(
    depth: int = 50,
    weights: Weights = 0,
    config: Config | None = None,
    version: int = 1,
    eps: float = 1e-5,
    frozen: bool = True,
) -> MaskRCNN:
    """Return torchvision's network.

    Parameters
        depth: 50, 101 or 152
        weights: a seed, ``"zeros"``, or None for none
        version: 2 has norms in pyramid and heads, and deeper heads: ``maskrcnn_resnet50_fpn_v2``
        eps: eps of the backbone's norms; torchvision uses 0 for its COCO file of version 1
        frozen: the backbone's norms of version 1 do not change, which needs weights from a file
    """
    config = config or torchvision_config()
    deep = version == 2
    trunk = ResNetTrunk(DEPTHS[depth], eps=eps, frozen=frozen and not deep)
    lateral, smooth = pyramid(deep)
    box = BoxHead(WIDTH, config.cells, config.classes, (WIDTH,) * 4 if deep else (), (1024,) if deep else (1024, 1024))
    mask = MaskHead(WIDTH, config.classes, normal=deep)
    rpn = AnchorHead(WIDTH, WIDTH, len(config.ratios), 2 if deep else 1)
    return initialise(MaskRCNN(config, trunk, lateral, smooth, rpn, box, mask), weights)


def mask_rcnn_matterport(depth: int = 101, weights: Weights = 0, config: Config | None = None) -> MaskRCNN:
    """Return matterport's network: strides on first convolutions, norms in the heads, 512 channels for proposals."""
    config = config or matterport_config()
    trunk = ResNetTrunk(DEPTHS[depth], first_stride=True, eps=1e-3)
    lateral, smooth = pyramid(False)
    box = BoxHead(WIDTH, config.cells, config.classes, (), (1024, 1024), "batch")
    mask = MaskHead(WIDTH, config.classes, normal=True, eps=1e-3)
    rpn = AnchorHead(WIDTH, 512, len(config.ratios))
    return initialise(MaskRCNN(config, trunk, lateral, smooth, rpn, box, mask), weights)


def mask_rcnn_owl(weights: Weights = 0, side: int = 768) -> MaskRCNN:
    """Return Owl's network: matterport's for 768 pixels, with a minimum score of 0.75."""
    return mask_rcnn_matterport(101, weights, replace(matterport_config(side), least_score=0.75))


def from_file(path: Path, side: int | None = None) -> tuple[MaskRCNN, tuple[str, ...]]:
    """Return a network of 50 or 101 layers with the weights of a file, and the names of its classes.

    Parameters
        path: torchvision's ``.pth`` of version 1, with old or new names, or matterport's ``.h5``
        side: side of the input of matterport's network, 1024 pixels by default
    Raises
        FormatError: the file belongs to another network; the message names the missing arrays
    """
    if path.suffix == ".h5":
        layers = read_keras(path).weights
        model = mask_rcnn_matterport(101 if "res4w_branch2a" in layers else 50, None, matterport_config(side or 1024))
        set_values(model, matterport_arrays(layers, model), str(path))
        return model, in_a_row()
    arrays = read_torch(path)
    version = 2 if "rpn.head.conv.1.0.weight" in arrays else 1
    model = mask_rcnn(50, None, version=version, eps=0.0 if version == 1 else 1e-5)
    set_values(model, torchvision_arrays(arrays, model), str(path))
    return model, with_gaps()


def adopt(model: MaskRCNN, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Assign torchvision's weights to a network of other classes; return the paths of unchanged Parameters."""
    others = int(arrays["roi_heads.box_predictor.cls_score.bias"].shape[0])
    depth = next(depth for depth, blocks in DEPTHS.items() if blocks == model.trunk.depths)  # type: ignore[attr-defined]
    source = mask_rcnn(depth, None, replace(model.config, classes=others), eps=model.trunk.eps)  # type: ignore[attr-defined]
    by_path = torchvision_arrays(arrays, source)
    fits = {path: by_path[path].shape == x.shape for path, x in model.variables().items()}
    assign_all({x: by_path[path] for path, x in model.variables().items() if fits[path]})
    return [path for path, is_fitting in fits.items() if not is_fitting]


def pyramid(normal: bool) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return 1×1 convolutions of the backbone's maps, and 3×3 convolutions of the levels."""

    def layer(channels: int, window: int) -> Layer:
        if normal:
            return ConvNorm(channels, WIDTH, window, 1, window // 2, function="none")
        return Conv2d(channels, WIDTH, window, 1, window // 2)

    return tuple(layer(c, 1) for c in CHANNELS), tuple(layer(WIDTH, 3) for _ in CHANNELS)
