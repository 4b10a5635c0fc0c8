"""A compiled network that is asked for the objects of one picture after the other."""

from pathlib import Path
from typing import Any

import numpy as np

from cgraph import Record
from nn.compile import Predictor
from nn.compile import compile as compile_model
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.objects import Detection, find
from nn.models.mask_rcnn.pretrained_configs import from_file
from nn.models.mask_rcnn.shapes import NAMES, mask_rcnn_shapes
from nn.models.mask_rcnn.tools.drawing import draw_detections

BANDS = 3136  # pixels; the large networks need a third less memory in bands of rows, and are as fast


class Finder(Record, eq=False):
    """Call it with a picture uint8 ``[rows, columns, 3]``: its objects, the likeliest first.

    Fields
        predict, config: the network, compiled, and its numbers
        names: of its classes, the background first
        least: the score that an object must have
    """

    predict: Predictor
    config: Config
    names: tuple[str, ...]
    least: float = 0.6

    def __call__(self, picture: np.ndarray) -> list[Detection]:
        return [one for one in find(self.predict, self.config, [picture])[0] if one.score >= self.least]

    def drawn(self, picture: np.ndarray, pixels: int = 512) -> tuple[Any, list[Detection]]:
        """The picture as a Pillow image with its objects, small ones enlarged to about `pixels`, and the objects."""
        detections = self(picture)
        return draw_detections(picture, detections, self.names, max(1, pixels // min(picture.shape[:2]))), detections


def finder(weights: Path | None = None, least: float = 0.6, **options: Any) -> Finder:
    """A network with weights from outside, as `from_file` reads them, or the small one that ships.

    Parameters
        options: for ``cgraph.compile``; in bands of rows by default, wherever that makes the plan smaller
    """
    model, names = from_file(weights) if weights else (mask_rcnn_shapes(), NAMES)
    return Finder(compile_model(model, **({"bands": BANDS} | options)), model.config, names, least)
