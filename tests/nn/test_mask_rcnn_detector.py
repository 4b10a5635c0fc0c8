"""Finder: objects that are likely enough, their names, and the drawing of a small picture."""

import numpy as np

from nn.models.mask_rcnn.detector import Finder, finder
from nn.models.mask_rcnn.shapes import NAMES, shapes_config
from nn.models.mask_rcnn.tools.synthetic import TEST, synthetic_images


def test_objects_of_a_few_pictures_are_found():
    finds, data = finder(), synthetic_images(TEST, 0, 8)
    for picture, classes in zip(data.pictures.transpose(0, 2, 3, 1), data.classes):
        found = {finds.names[one.kind] for one in finds(picture)}
        there = {finds.names[kind] for kind in classes if kind}
        assert found & there and len(found - there) <= 1


def predict(images, windows):
    """Three discs of scores 0.9, 0.6 and 0.59, whatever there is to see."""
    boxes = np.array([[[8, 8, 40, 40], [50, 8, 90, 40], [8, 60, 40, 90]]], "float32")
    return boxes, np.array([[0.9, 0.6, 0.59]]), np.array([[1, 1, 1]]), np.ones((1, 3, 28, 28), "f4"), np.array([3])


def finds(**fields):
    return Finder(predict, shapes_config(), NAMES, **fields)


def test_objects_have_at_least_the_score():
    picture = np.zeros((128, 128, 3), np.uint8)
    assert [x.score for x in finds()(picture)] == [0.9, 0.6]
    assert [x.score for x in finds(least=0.59)(picture)] == [0.9, 0.6, 0.59]
    assert finds(least=0.95)(picture) == []


def test_a_small_picture_is_drawn_larger_by_a_whole_factor():
    for rows, columns, pixels, factor in ((100, 150, 512, 5), (100, 150, 100, 1), (100, 150, 50, 1), (20, 30, 64, 3)):
        image, objects = finds().draw(np.zeros((rows, columns, 3), np.uint8), pixels)
        assert image.size == (columns * factor, rows * factor) and len(objects) == 2
    assert finds().draw(np.zeros((100, 150, 3), np.uint8))[0].size == (750, 500)


def test_options_are_those_of_compile():
    """In bands of few pixels the plan is smaller; the default are bands of 3136, for which these maps are too small."""
    small, bands, default = finder(least=0.25, bands=None), finder(bands=16), finder()
    assert (small.least, small.names, default.least) == (0.25, NAMES, 0.6) and small.config == shapes_config()
    assert bands.predict.function.nbytes < small.predict.function.nbytes == default.predict.function.nbytes
