"""Drawings of detections: which pixels are tinted, where boxes and names stand, and who is on top."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from nn.models.mask_rcnn.objects import Detection
from nn.models.mask_rcnn.tools.drawing import COLOURS, draw_detections, inside, label, outline, tint


def test_drawing_tints_masks_and_names_every_object():
    picture = np.full((60, 80, 3), 40, np.uint8)
    one = Detection((10.0, 20.0, 50.0, 50.0), 0.93, 1, np.ones((28, 28), np.float32), (60, 80))
    image = np.asarray(draw_detections(picture, [one], ("background", "disc"), 4))
    assert image.shape == (240, 320, 3)
    inside, outside = image[140:180, 80:160], image[220:, 260:]
    assert (outside == 40).all() and (inside == inside[0, 0]).all() and (inside[0, 0] != 40).any()
    assert (image[:80, 40:120] != 40).any()  # the name stands above the box


def detection(box, kind=1, size=(20, 30), score=0.9):
    return Detection(box, score, kind, np.ones((2, 2), np.float32), size, "matterport")


def test_the_outline_are_pixels_of_the_mask_with_a_neighbour_outside():
    mask = np.zeros((6, 7), bool)
    mask[1:5, 2:6] = True
    want = mask.copy()
    want[2:4, 3:5] = False
    np.testing.assert_array_equal(outline(mask), want)
    whole = outline(np.ones((3, 3), bool))
    assert whole.sum() == 8 and not whole[1, 1]


def test_masks_are_mixed_with_the_colour_of_their_class_and_outlined_in_it():
    picture = np.full((20, 30, 3), 100, np.uint8)
    got = tint(picture, [detection((5.0, 5.0, 15.0, 15.0), kind=2)])
    colour = np.array(COLOURS[2])
    np.testing.assert_array_equal(got[10, 10], (0.6 * 100 + 0.4 * colour).astype(np.uint8))
    np.testing.assert_array_equal(got[5, 5], colour)
    np.testing.assert_array_equal(got[4, 4], [100] * 3)
    assert (picture == 100).all()


def test_the_most_likely_is_on_top_and_classes_share_ten_colours():
    picture = np.zeros((20, 30, 3), np.uint8)
    boxes = [detection((2.0, 2.0, 12.0, 12.0), kind=13), detection((2.0, 2.0, 12.0, 12.0), kind=4)]
    np.testing.assert_array_equal(tint(picture, boxes)[2, 2], COLOURS[3])
    np.testing.assert_array_equal(tint(picture, boxes[::-1])[2, 2], COLOURS[4])


@pytest.mark.parametrize(
    ("box", "want"),
    [
        ((2.0, 3.0, 9.0, 12.0), (2, 3, 8, 11)),
        ((-5.0, -6.0, 90.0, 80.0), (0, 0, 29, 19)),
        ((40.0, 50.0, 60.0, 70.0), (29, 19, 29, 19)),
        ((4.0, 4.0, 4.5, 4.5), (4, 4, 4, 4)),
    ],
)
def test_a_box_is_drawn_within_the_picture(box, want):
    assert inside(detection(box)) == want


def labelled(box, kind=1, size=(200, 300), scale=1):
    image = Image.new("RGB", (size[1] * scale, size[0] * scale))
    label(ImageDraw.Draw(image), detection(box, kind, size), "disc", scale, (size[0] * scale, size[1] * scale))
    rows, columns = np.nonzero((np.asarray(image) == COLOURS[kind]).all(2))
    return rows.min(), rows.max(), columns.min(), columns.max()


def test_a_name_stands_above_its_box_and_at_the_top_of_the_picture_inside_it():
    top, bottom, left, _ = labelled((50.0, 100.0, 150.0, 150.0))
    assert bottom == 100 and left == 50 and top < 90
    top, bottom, _, _ = labelled((50.0, 2.0, 150.0, 150.0))
    assert top == 2 and bottom > 10


def test_a_name_does_not_leave_the_picture_at_the_right_and_moves_with_the_scale():
    *_, first, last = labelled((50.0, 100.0, 150.0, 150.0))
    *_, left, right = labelled((290.0, 100.0, 299.0, 150.0))
    assert right == 299 and left == 300 - (last - first)
    _, bottom, left, _ = labelled((50.0, 50.0, 99.0, 99.0), size=(100, 100), scale=3)
    assert (left, bottom) == (150, 150)


@pytest.mark.parametrize(("kind", "is_dark"), [(1, True), (2, False)])
def test_the_letters_stand_out_from_the_colour(kind, is_dark):
    """White on blue, black on yellow; on a picture of that colour only letters differ."""
    image = Image.new("RGB", (300, 200), COLOURS[kind])
    label(ImageDraw.Draw(image), detection((50.0, 100.0, 90.0, 150.0), kind, (200, 300)), "disc", 1, (200, 300))
    change = np.asarray(image).astype(int).sum(2) - sum(COLOURS[kind])
    assert (change > 50).any() == is_dark and (change < -50).any() == (not is_dark)


def test_nothing_is_drawn_where_nothing_is_found():
    picture = np.random.default_rng(0).integers(0, 255, (4, 5, 3), dtype=np.uint8)
    got = np.asarray(draw_detections(picture, [], ("background",), 2))
    np.testing.assert_array_equal(got, picture.repeat(2, 0).repeat(2, 1))


def test_a_box_without_a_mask_is_drawn_at_the_scale():
    picture, mask = np.zeros((30, 40, 3), np.uint8), np.zeros((2, 2), np.float32)
    one = Detection((10.0, 20.0, 30.0, 29.0), 0.5, 1, mask, (30, 40), "matterport")
    image = np.asarray(draw_detections(picture, [one], ("background", "a"), 4))
    assert (image[80:113, [40, 41, 115, 116]] == COLOURS[1]).all() and (
        image[[80, 81, 111, 112], 40:117] == COLOURS[1]
    ).all()
    assert not image[84:109, 44:113].any() and not image[114:].any()
