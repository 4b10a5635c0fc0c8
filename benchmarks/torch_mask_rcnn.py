"""The dense part of Mask R-CNN in torch, with the weights of a network of ours: a lower bound of a peer's work.

Data-dependent parts are omitted: coding, selection and suppression of boxes, and in training matching, sampling and the
losses' targets. Boxes are inputs, and all read the finest level, by one `grid_sample` and a mean over 2 × 2 samples,
since some builds of torch lack torchvision's RoIAlign. So times and bytes are lower bounds of torch's. At inference
norms are folded into their convolutions beforehand, as in ours.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from nn.layer import Layer
from nn.layers.block import ConvNorm
from nn.layers.norm import BatchNorm
from nn.models.mask_rcnn.backbone import ResNetTrunk
from nn.models.mask_rcnn.heads import BoxHead, MaskHead
from nn.models.mask_rcnn.network import MaskRCNN

RATE, MOST = 0.0015, 5.0


class Peer:
    """A network of ours in torch.

    Fields
        model: our network
        training: norms follow the batch, and weights have gradients
        weights: a tensor for each Parameter
    """

    def __init__(self, model: MaskRCNN, training: bool) -> None:
        self.model, self.training = model, training
        found = model.variables().values()
        self.weights = {x: torch.from_numpy(x.value).requires_grad_(training and x.trained) for x in found}
        self.folded: dict[Layer, tuple[Any, Any]] = {}

    def __call__(self, image: Any, boxes: int, masks: int) -> list[Any]:
        """Return all results for all anchors, for `boxes` boxes and for `masks` masks."""
        model = self.model
        levels = self.pyramid(image)
        found = [self.anchor_head(x) for x in levels]
        config, finest = model.config, levels[0]
        found += self.box_head(model.box, seen(finest, boxes, config.cells))
        return [*found, self.mask_head(model.mask, seen(finest, masks, config.mask_cells))]

    def pyramid(self, image: Any) -> list[Any]:
        model, found = self.model, []
        for lateral, smooth, x in list(zip(model.lateral, model.smooth, self.trunk(image)))[::-1]:
            level = self.layer(lateral, x)
            if found:
                level = level + functional.interpolate(found[0][0], scale_factor=2)
            found.insert(0, (level, smooth))
        levels = [self.layer(smooth, level) for level, smooth in found]
        extra = [levels[-1][:, :, ::2, ::2]] if len(model.config.anchor_sides) > len(levels) else []
        return levels + extra

    def trunk(self, image: Any) -> list[Any]:
        trunk: Any = self.model.trunk
        x, maps = self.layer(trunk.stem, image), []
        if isinstance(trunk, ResNetTrunk):
            x = functional.max_pool2d(functional.pad(x, (0, 1, 0, 1)), 3, 2)
        for group in trunk.groups if isinstance(trunk, ResNetTrunk) else [(block,) for block in trunk.blocks]:
            for block in group:
                x = self.block(block, x)
            maps.append(x)
        return maps

    def block(self, block: Any, x: Any) -> Any:
        y = self.layer(block.second, self.layer(block.first, x))
        y = self.layer(block.third, y) if hasattr(block, "third") else y
        return torch.relu(y + (x if block.shortcut is None else self.layer(block.shortcut, x)))

    def anchor_head(self, x: Any) -> Any:
        head: Any = self.model.rpn
        for conv in head.conv:
            x = torch.relu(self.layer(conv, x))
        return self.layer(head.numbers, x)

    def box_head(self, head: Any, x: Any) -> list[Any]:
        assert isinstance(head, BoxHead)
        for conv in head.conv:
            x = self.layer(conv, x)
        x = x.flatten(1)
        for layer in head.full:
            x = torch.relu(self.normal(layer.normal, self.linear(layer.linear, x)))
        return [self.linear(head.scores, x), self.linear(head.deltas, x)]

    def mask_head(self, head: Any, x: Any) -> Any:
        assert isinstance(head, MaskHead)
        for conv in head.conv:
            x = torch.relu(self.layer(conv, x))
        up = head.enlarge
        x = functional.conv_transpose2d(x, self.weights[up.weight], self.weights[up.bias], 2)
        return self.layer(head.scores, torch.relu(x))

    def layer(self, layer: Any, x: Any) -> Any:
        """Return the torch layer of a Conv2d or a ConvNorm."""
        if not isinstance(layer, ConvNorm):
            bias = None if layer.bias is None else self.weights[layer.bias]
            return functional.conv2d(x, self.weights[layer.weight], bias, layer.stride, layer.pad)
        conv = layer.conv
        if self.training:
            x = functional.conv2d(x, self.weights[conv.weight], None, conv.stride, conv.pad)
            x = self.normal(layer.norm, x)
        else:
            if layer not in self.folded:
                self.folded[layer] = self.fold(layer)
            x = functional.conv2d(x, *self.folded[layer], conv.stride, conv.pad)
        return torch.relu(x) if layer.function == "relu" else x

    def fold(self, layer: Any) -> tuple[Any, Any]:
        norm = layer.norm
        scale = self.weights[norm.scale] / torch.sqrt(self.weights[norm.variance] + norm.eps)
        bias = self.weights[norm.shift] - self.weights[norm.mean] * scale
        return self.weights[layer.conv.weight] * scale[:, None, None, None], bias

    def normal(self, norm: Any, x: Any) -> Any:
        if norm is None:
            return x
        scale, shift = self.weights[norm.scale], self.weights[norm.shift]
        if isinstance(norm, BatchNorm):
            mean, variance = self.weights[norm.mean], self.weights[norm.variance]
            return functional.batch_norm(x, mean, variance, scale, shift, self.training, 1 - norm.decay, norm.eps)
        return functional.layer_norm(x, x.shape[-1:], scale, shift, norm.eps)

    def linear(self, layer: Any, x: Any) -> Any:
        return functional.linear(x, self.weights[layer.weight].T, self.weights[layer.bias])


def seen(x: Any, count: int, cells: int) -> Any:
    """Return the features of `count` random boxes, equally many in each picture: ``[count, c, cells, cells]``."""
    n, c, each = x.shape[0], x.shape[1], count // x.shape[0]
    corners = np.sort(np.random.default_rng(0).uniform(-1, 1, (n, each, 2, 2)), axis=2)  # low and high; x and y
    share = (np.arange(2 * cells) + 0.5) / (2 * cells)
    across, down = (corners[:, :, 0, i, None] + np.diff(corners[..., i], axis=2) * share for i in (0, 1))
    shape = (n, each, 2 * cells, 2 * cells)
    grid = np.stack([np.broadcast_to(across[:, :, None], shape), np.broadcast_to(down[..., None], shape)], -1)
    places = torch.from_numpy(grid.reshape(n, -1, 2 * cells, 2).astype(np.float32))
    found = functional.avg_pool2d(functional.grid_sample(x, places, align_corners=False), 2)
    return found.reshape(n, c, each, cells, cells).transpose(1, 2).reshape(count, c, cells, cells)


def inference(model: MaskRCNN, image: np.ndarray, boxes: int, masks: int, threads: int) -> Callable[[], Any]:
    torch.set_num_threads(threads)
    peer, x = Peer(model, False), torch.from_numpy(image)

    def run() -> Any:
        with torch.inference_mode():
            return peer(x, boxes, masks)

    return run


def training(model: MaskRCNN, image: np.ndarray, boxes: int, masks: int, threads: int) -> Callable[[], Any]:
    """Return a step of AdamW with clipped gradients; the loss is the mean square of all results."""
    torch.set_num_threads(threads)
    peer, x = Peer(model, True), torch.from_numpy(image)
    trained = [weight for weight in peer.weights.values() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, RATE)

    def run() -> float:
        optimiser.zero_grad()
        loss = sum(numbers.square().mean() for numbers in peer(x, boxes, masks))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, MOST)
        optimiser.step()
        return float(loss.detach())

    return run
