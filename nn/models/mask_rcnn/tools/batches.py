"""Training batches: normalised pictures, randomly mirrored and rotated.

Each function is a `change` of `nn.Loader`: it takes pictures uint8 ``[n, 3, h, w]``, windows, boxes, classes and
owners, and returns the operands of `nn.models.mask_rcnn.losses.Training`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.pictures import as_box, normalise

if TYPE_CHECKING:
    from numpy.random import Generator

Arrays = tuple[np.ndarray, ...]
Change = Callable[[Arrays, "Generator"], Arrays]


def positions(config: Config, turning: bool = False) -> Change:
    """Return a `change` that mirrors pictures at random; with `turning` it uses all eight symmetries of a square."""

    def change(arrays: Arrays, rng: "Generator") -> Arrays:
        pictures, windows, boxes, classes, owner = (x.copy() for x in arrays)
        steps = (mirror, flip, transpose) if turning else (mirror,)
        for i, draws in enumerate(rng.integers(0, 2, (len(pictures), len(steps)))):
            there = classes[i] > 0
            for step, is_drawn in zip(steps, draws):
                if is_drawn:
                    pictures[i], owner[i] = step(pictures[i]), step(owner[i])
                    boxes[i, there] = BOXES[step](boxes[i, there], owner.shape[1:], config.far)
                    windows[i] = BOXES[step](windows[i : i + 1], owner.shape[1:], 0)[0]
        return as_operands(config, (pictures, windows, boxes, classes, owner))

    return change


def as_operands(config: Config, arrays: Arrays) -> Arrays:
    """Return unchanged pictures in the network's range."""
    pictures, windows, *truth = arrays
    return normalise(pictures, windows, config), as_box(windows, config), *truth


def mirror(x: np.ndarray) -> np.ndarray:
    """Return ``[..., h, w]`` mirrored left to right."""
    return x[..., ::-1]


def flip(x: np.ndarray) -> np.ndarray:
    """Return ``[..., h, w]`` upside down."""
    return x[..., ::-1, :]


def transpose(x: np.ndarray) -> np.ndarray:
    """Return ``[..., h, w]`` with rows and columns exchanged."""
    return x.swapaxes(-1, -2).copy()


def mirror_boxes(boxes: np.ndarray, shape: tuple[int, ...], far: int) -> np.ndarray:
    width = shape[1] - far
    return np.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], 1)


def flip_boxes(boxes: np.ndarray, shape: tuple[int, ...], far: int) -> np.ndarray:
    height = shape[0] - far
    return np.stack([boxes[:, 0], height - boxes[:, 3], boxes[:, 2], height - boxes[:, 1]], 1)


def transpose_boxes(boxes: np.ndarray, shape: tuple[int, ...], far: int) -> np.ndarray:
    return boxes[:, [1, 0, 3, 2]]


BOXES = {mirror: mirror_boxes, flip: flip_boxes, transpose: transpose_boxes}
