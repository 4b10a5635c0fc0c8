"""Detections in the pixels of their picture: boxes, and masks that are resized one at a time.

A hundred masks of a large picture would take hundreds of megabytes, so each stays at the network's 28 × 28 numbers
until its pixels are computed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph import Record
from nn.compile import Predictor
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.pictures import NetworkView, network_view


class Detection(Record, eq=False):
    """An object in a picture.

    Fields
        box: ``(x0, y0, x1, y1)`` in the picture's pixels
        score, kind: probability and class
        mask: probabilities over the box ``[28, 28]``
        size: rows and columns of the picture
        rule: as in Config
    """

    box: tuple[float, float, float, float]
    score: float
    kind: int
    mask: np.ndarray
    size: tuple[int, int]
    rule: str = "torchvision"

    def pixels(self) -> np.ndarray:
        """Return its pixels in the picture, bool ``[rows, columns]``."""
        mask, corners = self.mask, np.array(self.box, np.float32)
        if self.rule == "torchvision":
            mask, corners = np.pad(mask, 1), enlarge_box(corners, (len(mask) + 2) / len(mask))
            left, top, right, bottom = corners.astype(np.int64) + np.array([0, 0, 1, 1])
        else:
            left, top, right, bottom = np.round(corners).astype(np.int64)
        canvas = np.zeros(self.size, bool)
        painted = enlarge_mask(mask, (max(bottom - top, 1), max(right - left, 1))) >= 0.5
        rows, columns = slice(max(top, 0), max(bottom, 0)), slice(max(left, 0), max(right, 0))
        place = canvas[rows, columns]
        place[...] = painted[max(-top, 0) :, max(-left, 0) :][: place.shape[0], : place.shape[1]]
        return canvas


def objects_of(results: Sequence[np.ndarray], which: int, picture: NetworkView, config: Config) -> list[Detection]:
    """Return the objects of one picture of a batch.

    Parameters
        results: boxes, scores, classes, masks and counts of `MaskRCNN`
        which: index of the picture in the batch
    """
    boxes, scores, kinds, masks, counts = results
    detections = []
    for i in range(int(counts[which])):
        box = in_picture(boxes[which, i], picture, config)
        if box[2] > box[0] and box[3] > box[1]:
            mask = masks[which, i]
            detections.append(
                Detection(box, float(scores[which, i]), int(kinds[which, i]), mask, picture.size, config.rule)
            )
    return detections


def find(predict: Predictor, config: Config, pictures: Sequence[np.ndarray]) -> list[list[Detection]]:
    """Return the objects of each picture uint8 ``[h, w, 3]``, the most likely first, by a compiled network."""
    views = [network_view(picture, config) for picture in pictures]
    images, windows = (np.stack(x) for x in zip(*(view.operands(config) for view in views)))
    results = predict(images, windows)
    return [objects_of(results, i, view, config) for i, view in enumerate(views)]


def in_picture(box: np.ndarray, picture: NetworkView, config: Config) -> tuple[float, float, float, float]:
    """Return a box of the network's input in the pixels of the picture."""
    (left, top, right, bottom), (rows, columns) = picture.window, picture.size
    x0, y0, x1, y1 = (float(v) for v in box)
    x0, x1 = ends_in_picture((x0, x1), (left, right), columns, config.far)
    y0, y1 = ends_in_picture((y0, y1), (top, bottom), rows, config.far)
    corners = x0, y0, x1, y1
    return corners if config.is_torchvision else tuple(float(round(v)) for v in corners)  # type: ignore[return-value]


def ends_in_picture(ends: tuple[float, float], window: tuple[int, int], size: int, far: int) -> tuple[float, float]:
    """Return both ends of a box along one axis in the pixels of the picture.

    Parameters
        window: first pixel of the picture in the network's input, and the end of its pixels
        size: number of the picture's pixels along the axis
        far: as in Config
    """
    first, end = window
    if end - first == far:  # far corners are one less, so the only pixel of a narrow picture has no extent
        return 0.0, float(size)
    scale = (size - far) / (end - first - far)
    return (ends[0] - first) * scale, (ends[1] - first) * scale + far


def enlarge_box(box: np.ndarray, factor: float) -> np.ndarray:
    """Return a box with the same centre and longer sides."""
    centre, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2 * np.float32(factor)
    return np.concatenate([centre - half, centre + half])


def enlarge_mask(mask: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return a mask resized bilinearly to rows and columns, with pixels as points at their centres."""
    down, across = (weights(n, m) for n, m in zip(mask.shape, shape))
    return down @ mask @ across.T


def weights(n: int, count: int) -> np.ndarray:
    """Return the weights ``[count, n]`` of a linear interpolation from `n` to `count` numbers."""
    at = np.clip((np.arange(count) + 0.5) * n / count - 0.5, 0, n - 1)
    return np.maximum(1 - np.abs(at[:, None] - np.arange(n)), 0).astype(np.float32)


def as_json(detections: Sequence[Detection], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return objects as JSON values: name, score, box, and number of pixels."""
    return [
        {
            "name": names[one.kind],
            "score": round(one.score, 4),
            "box": [round(v, 1) for v in one.box],
            "pixels": int(one.pixels().sum()),
        }
        for one in detections
    ]
