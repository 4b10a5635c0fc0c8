"""The small network that ships trained finds what is in pictures that it never saw."""

import numpy as np
import pytest

from nn.models.mask_rcnn.finder import finder
from nn.models.mask_rcnn.made import TEST, made
from nn.models.mask_rcnn.precision import precision
from nn.models.mask_rcnn.shapes import WEIGHTS, mask_rcnn_shapes, measured, wanted


def test_the_file_is_small():
    assert WEIGHTS.stat().st_size <= 4_000_000


def test_objects_of_a_few_pictures_are_found():
    finds, data = finder(), made(TEST, 0, 8)
    for picture, classes in zip(data.pictures.transpose(0, 2, 3, 1), data.classes):
        found = {finds.names[one.kind] for one in finds(picture)}
        there = {finds.names[kind] for kind in classes if kind}
        assert found & there and len(found - there) <= 1


def test_the_truth_itself_has_a_precision_of_one():
    pytest.importorskip("pycocotools")
    data = made(TEST, 0, 4)
    truth = [wanted(data, i) for i in range(4)]
    found = [[Exactly(*row) for row in zip(*one)] for one in truth]
    assert precision(found, truth, 4)["boxes"].mean == precision(found, truth, 4)["masks"].mean == 1
    assert precision([[] for _ in truth], truth, 4)["boxes"].mean == 0


class Exactly:
    """An object as it is."""

    def __init__(self, box: np.ndarray, kind: int, mask: np.ndarray) -> None:
        self.box, self.kind, self.score, self.mask = box, int(kind), 1.0, mask

    def pixels(self) -> np.ndarray:
        return self.mask


@pytest.mark.slow
def test_its_average_precision_is_the_published_one():
    pytest.importorskip("pycocotools")
    found = measured(mask_rcnn_shapes(), 100)
    assert found["boxes"].mean >= 0.75 and found["masks"].mean >= 0.7
    assert min(kind.at_50 for kind in found.values()) >= 0.9
