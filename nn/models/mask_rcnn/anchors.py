"""Anchors: the reference boxes of proposals, for every pixel of every level of the pyramid."""

from collections.abc import Sequence

import numpy as np

from nn.models.mask_rcnn.config import Config


def anchors(config: Config, maps: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Return the anchors of each level, float32 ``[rows * columns * ratios, 4]``, by rows, columns, ratios.

    Parameters
        maps: rows and columns of each level, the finest first
    """
    return [level(config, side, shape) for side, shape in zip(config.anchor_sides, maps, strict=True)]


def level(config: Config, side: float, shape: tuple[int, int]) -> np.ndarray:
    """Return the anchors of one level; their centres are at multiples of the stride, without half a pixel."""
    root = np.sqrt(np.asarray(config.ratios))
    if config.is_torchvision:
        half = np.stack([side / root, side * root], 1) / 2
        corners = np.round(np.concatenate([-half, half], 1))
    else:
        half = np.stack([side * root, side / root], 1) / 2
        corners = np.concatenate([-half, half - config.far], 1)
    down, across = (whole // n for whole, n in zip(config.image, shape))
    y, x = np.mgrid[: shape[0], : shape[1]]
    centres = np.stack([x * across, y * down] * 2, -1).reshape(-1, 1, 4)
    return (centres + corners).reshape(-1, 4).astype(np.float32)
