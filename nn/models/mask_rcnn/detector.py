"""Finder: a compiled network that detects the objects of pictures, one after another."""

from pathlib import Path
from typing import Any

import numpy as np

from cgraph import Record
from nn.compile import Predictor
from nn.compile import compile as compile_model
from nn.deprecation import renamed_method
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.objects import Detection, find
from nn.models.mask_rcnn.pretrained_configs import from_file
from nn.models.mask_rcnn.shapes import NAMES, mask_rcnn_shapes
from nn.models.mask_rcnn.tools.drawing import draw_detections

BANDS = 3136  # pixels; bands of rows save the large networks a third of the memory, at equal speed


class Finder(Record, eq=False):
    """A detector: call it with a picture uint8 ``[rows, columns, 3]`` for its objects, the most likely first.

    Fields
        predict, config: the compiled network and its Config
        names: names of the classes, the background first
        least: minimum score of an object
    """

    predict: Predictor
    config: Config
    names: tuple[str, ...]
    least: float = 0.6

    def __call__(self, picture: np.ndarray) -> list[Detection]:
        return [one for one in find(self.predict, self.config, [picture])[0] if one.score >= self.least]

    def draw(self, picture: np.ndarray, pixels: int = 512) -> tuple[Any, list[Detection]]:
        """Return a Pillow image of the picture with its objects, enlarged to `pixels` if small, and the objects."""
        detections = self(picture)
        return draw_detections(picture, detections, self.names, max(1, pixels // min(picture.shape[:2]))), detections

    drawn = renamed_method("drawn", "draw")


def finder(weights: Path | None = None, least: float = 0.6, **options: Any) -> Finder:
    """Return a Finder for a weight file, as `from_file` reads it, or for the small network that ships.

    Parameters
        least: minimum score of an object
        options: for ``cgraph.compile``; by default it computes in bands of rows where that makes the plan smaller
    """
    model, names = from_file(weights) if weights else (mask_rcnn_shapes(), NAMES)
    return Finder(compile_model(model, **({"bands": BANDS} | options)), model.config, names, least)
