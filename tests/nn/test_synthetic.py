"""Synthetic images: they follow from their number, their truth is what is visible, and films move."""

import numpy as np
import pytest

from nn.models.mask_rcnn.tools.synthetic import (
    LEAST_PIXELS,
    MOST,
    OBJECTS,
    SIDE,
    film,
    ground,
    paint,
    picture,
    shape_at,
    synthetic_images,
    truth,
)


def test_made_pictures_follow_from_their_number():
    first, again = synthetic_images(2, 5, 3), synthetic_images(2, 6, 1)
    np.testing.assert_array_equal(first.pictures[1], again.pictures[0])
    assert (synthetic_images(1, 6, 1).pictures != again.pictures).any()
    assert ((first.classes > 0).sum(1) <= MOST).all() and first.owner.max(axis=(1, 2)).tolist() == (
        first.classes > 0
    ).sum(1).tolist()


def test_boxes_are_those_of_the_visible_pixels():
    images = synthetic_images(0, 0, 12)
    for boxes, classes, owner in zip(images.boxes, images.classes, images.owner):
        count = int((classes > 0).sum())
        assert count and (classes[:count] > 0).all() and not boxes[count:].any()
        for i in range(count):
            rows, columns = np.nonzero(owner == i + 1)
            assert len(rows) >= LEAST_PIXELS
            assert boxes[i].tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_fields_have_their_shapes_and_dtypes():
    images = synthetic_images(0, 3, 2)
    assert [(x.shape, str(x.dtype)) for x in images] == [
        ((2, 3, SIDE, SIDE), "uint8"),
        ((2, 4), "int64"),
        ((2, OBJECTS, 4), "float32"),
        ((2, OBJECTS), "int64"),
        ((2, SIDE, SIDE), "uint8"),
    ]
    assert images.windows.tolist() == [[0, 0, SIDE, SIDE]] * 2 and MOST <= OBJECTS
    for field, alone in zip(images, picture(0, 4)):
        np.testing.assert_array_equal(field[1], alone)


@pytest.mark.parametrize("hidden", [39, 40])
def test_objects_with_few_visible_pixels_are_left_out_and_the_others_are_numbered_on(hidden):
    owner = np.zeros((SIDE, SIDE), np.uint8)
    owner[:10, :10] = 1
    owner[20, :hidden] = 2
    owner[30:40, 5:12] = 3
    boxes, classes, numbers = truth(owner, [3, 1, 2])
    if hidden < LEAST_PIXELS:
        assert classes.tolist() == [3, 2, *[0] * 6] and boxes[1].tolist() == [5, 30, 12, 40]
        np.testing.assert_array_equal(numbers, np.where(owner == 3, 2, np.where(owner == 2, 0, owner)))
    else:
        assert classes.tolist() == [3, 1, 2, *[0] * 5]
        np.testing.assert_array_equal(numbers, owner)


def test_a_disc_a_square_and_a_triangle():
    """Rows and columns at pixel centres around (64, 50): a disc of radius sqrt(0.8) * 20, a square of side 30."""
    disc, _ = shape_at(1, 20.0, 64.0, 50.0, 0.0)
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    np.testing.assert_array_equal(disc, (x - 64) ** 2 + (y - 50) ** 2 < 320)
    square, along = shape_at(2, 20.0, 64.0, 50.0, 0.0)
    assert square[35:65, 49:79].all() and square.sum() == 900
    np.testing.assert_array_equal(along, x - 64)
    triangle, _ = shape_at(3, 20.0, 64.0, 50.0, 0.0)
    widths = triangle.sum(1)
    assert not triangle[:40].any() and not triangle[70:].any()
    assert (np.diff(widths[40:70]) <= 0).all() and widths[40] > 30 and widths[69] <= 2


def test_shapes_turn():
    square, _ = shape_at(2, 20.0, 64.0, 64.0, np.pi / 4)
    assert square[64, 64 - 20] and not square[64 - 14, 64 - 14]
    up, down = (shape_at(3, 20.0, 64.0, 64.0, angle)[0] for angle in (0.0, np.pi))
    np.testing.assert_array_equal(up, down[::-1, ::-1])
    left, _ = shape_at(3, 20.0, 64.0, 64.0, np.pi / 2)
    columns = np.flatnonzero(left.any(0))
    assert (columns.min(), columns.max()) == (45, 73)


def test_an_object_differs_from_what_it_covers():
    """A colour near the background's becomes its opposite."""
    mask = np.zeros((SIDE, SIDE), bool)
    mask[:20, :20] = True
    image = np.full((3, SIDE, SIDE), 0.5)
    for seed in range(30):
        drawn = np.random.default_rng(seed).uniform(0, 1, 3)
        image[:] = drawn[:, None, None]
        stripes = paint(np.random.default_rng(seed), image, mask, np.zeros((SIDE, SIDE)))
        want = 1 - drawn
        assert (abs(stripes[:, 0, 0] - want) <= 0.0801).all()


def test_a_background_has_patches_of_16_pixels():
    image = ground(np.random.default_rng(0))
    assert image.shape == (3, SIDE, SIDE)
    steps = np.abs(np.diff(image, axis=2)).max((0, 1))
    assert set(np.argsort(-steps)[:7]) == {15, 31, 47, 63, 79, 95, 111}


def test_a_film_moves_and_follows_from_its_seed():
    frames = list(film(4, seed=5))
    assert [(x.shape, str(x.dtype)) for x in frames] == [((SIDE, SIDE, 3), "uint8")] * 4
    np.testing.assert_array_equal(frames, list(film(4, seed=5)))
    assert (frames[0] != next(film(4, seed=6))).any()
    still = np.abs(frames[0].astype(int) - frames[3]).max(2) < 60
    assert 0.5 < still.mean() < 1


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_films_of_other_lengths_have_other_objects(frames):
    assert (next(film(frames)) != next(film(frames + 1))).mean() > 0.1
