"""Detections in a picture: boxes by both rules, masks pasted pixel by pixel, objects of a batch, and their JSON."""

import numpy as np
import pytest

from cgraph.record import replace
from nn.models.mask_rcnn import matterport_config, torchvision_config
from nn.models.mask_rcnn.objects import (
    Detection,
    as_json,
    ends_in_picture,
    enlarge_box,
    enlarge_mask,
    find,
    in_picture,
    objects_of,
    weights,
)
from nn.models.mask_rcnn.pictures import network_view
from nn.models.mask_rcnn.shapes import NAMES, shapes_config
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("rule", ["torchvision", "matterport"])
def test_boxes_find_their_way_back_into_the_picture(rule):
    config = replace(shapes_config(), rule=rule)
    view = network_view(np.full((60, 200, 3), 200, np.uint8), config)
    left, top, right, bottom = view.window
    assert (right - left, bottom - top) == (128, 38)
    assert (left, top) == ((0, 0) if rule == "torchvision" else (0, 45))
    assert (view.pixels[:, top:bottom, left:right] > 190).all() and view.pixels[:, bottom:].max() == 0
    whole = np.array([left, top, right - config.far, bottom - config.far], "float32")
    assert_near(in_picture(whole, view, config), [0, 0, 200, 60], "float32 coordinates")


@pytest.mark.parametrize("rule", ["torchvision", "matterport"])
@pytest.mark.parametrize("box", [(10.0, 5.0, 38.0, 33.0), (-14.0, -9.0, 14.0, 19.0), (40.0, 20.0, 68.0, 48.0)])
def test_a_mask_is_pasted_where_its_box_is_and_cut_off_at_the_border(box, rule):
    mask = np.zeros((28, 28), np.float32)
    mask[7:21] = 1
    pixels = Detection(box, 0.9, 1, mask, (40, 60), rule).pixels()
    rows, columns = np.mgrid[:40, :60] + 0.5
    x0, y0, x1, y1 = box
    want = (columns > x0) & (columns < x1) & (rows > y0 + 7) & (rows < y0 + 21)
    assert (pixels != want).sum() <= 2 * (want.any(0).sum() + want.any(1).sum())  # the outline, by half a pixel
    assert pixels.sum() > 0.8 * want.sum()


def test_objects_of_a_batch_and_their_json():
    config, view = shapes_config(), network_view(np.zeros((64, 64, 3), np.uint8), shapes_config())
    boxes = np.array([[[0, 0, 64, 64], [5, 5, 5, 9]]], "float32")
    results = boxes, np.array([[0.9, 0.8]]), np.array([[2, 1]]), np.ones((1, 2, 28, 28), "float32"), np.array([2])
    (found,) = objects_of(results, 0, view, config)
    assert as_json([found], NAMES) == [{"name": "square", "score": 0.9, "box": [0, 0, 32, 32], "pixels": 33 * 33}]


@pytest.mark.parametrize(
    ("far", "want"),
    [(0, (-5.0, 45.0)), (1, (-1 / 19 * 49, 9 / 19 * 49 + 1))],
)
def test_ends_are_scaled_from_the_window_to_the_picture(far, want):
    """A window from 10 to 30 of 50 pixels; by matterport's rule the last pixel is at 29."""
    got = ends_in_picture((8.0, 28.0) if far == 0 else (9.0, 19.0), (10, 30), 50, far)
    assert_near(got, want, "float64 formulas")


@pytest.mark.parametrize("size", [(200, 1), (1, 200), (1000, 2), (1, 1)])
@pytest.mark.parametrize("rule", ["torchvision", "matterport"])
def test_a_picture_that_is_one_pixel_wide_in_the_network_has_its_whole_width(size, rule):
    config = torchvision_config((64, 64), 3) if rule == "torchvision" else matterport_config(64, 3)
    view = network_view(np.full((*size, 3), 9, np.uint8), config)
    left, top, right, bottom = view.window
    whole = np.array([left, top, right - config.far, bottom - config.far], "float32")
    assert_near(in_picture(whole, view, config), [0, 0, size[1], size[0]], "float32 coordinates")


def test_matterports_boxes_are_whole_pixels():
    config = matterport_config(64, 3)
    view = network_view(np.zeros((32, 64, 3), np.uint8), config)
    assert view.window == (0, 16, 64, 48)
    assert in_picture(np.array([1.4, 17.6, 3.6, 20.2]), view, config) == (1, 2, 5, 5)
    far = replace(config, rule="torchvision")
    assert in_picture(np.array([1.5, 17.5, 3.5, 20.5]), network_view(np.zeros((32, 64, 3), np.uint8), far), far) == (
        *(1.5, 17.5),
        *(3.5, 20.5),
    )


def test_a_longer_box_has_the_same_centre():
    got = enlarge_box(np.array([2, 10, 6, 30], np.float32), 1.5)
    np.testing.assert_array_equal(got, [1, 5, 7, 35])


def test_weights_of_an_interpolation():
    np.testing.assert_array_equal(weights(2, 4), [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]])
    np.testing.assert_array_equal(weights(4, 2), [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    np.testing.assert_array_equal(weights(3, 3), np.eye(3))
    np.testing.assert_array_equal(weights(1, 3), np.ones((3, 1)))


def test_rows_and_columns_of_a_mask_are_resized_apart():
    mask = np.array([[0, 4], [8, 12]], np.float32)
    got = enlarge_mask(mask, (4, 2))
    np.testing.assert_array_equal(got, [[0, 4], [2, 6], [6, 10], [8, 12]])
    np.testing.assert_array_equal(enlarge_mask(mask, (2, 4)), [[0, 1, 3, 4], [8, 9, 11, 12]])


def pixels_of(box, mask, size, rule):
    return Detection(box, 0.9, 1, np.asarray(mask, np.float32), size, rule).pixels()


def test_matterports_mask_fills_its_rounded_box():
    got = pixels_of((1.4, 0.6, 4.4, 2.6), np.ones((2, 2)), (4, 6), "matterport")
    want = np.zeros((4, 6), bool)
    want[1:3, 1:4] = True
    np.testing.assert_array_equal(got, want)


def test_torchvisions_mask_has_a_border_of_zeros_that_the_threshold_takes_away():
    """A mask of 2 x 2 in a box of 4 x 4 is padded to 4 x 4 in 8 x 8 and one, whose ends are -2 and 6 around 0 to 4."""
    got = pixels_of((2.0, 2.0, 6.0, 6.0), np.ones((2, 2)), (9, 9), "torchvision")
    padded = np.zeros((4, 4), np.float32)
    padded[1:3, 1:3] = 1
    want = np.zeros((9, 9), bool)
    want[:, :] = enlarge_mask(padded, (9, 9)) >= 0.5
    np.testing.assert_array_equal(got, want)
    assert got.any() and not got[:2].any() and not got[:, :2].any()


def test_upper_and_lower_left_and_right_of_a_mask_are_told_apart():
    got = pixels_of((0.0, 0.0, 4.0, 2.0), [[1, 0], [0, 0]], (3, 5), "matterport")
    assert np.argwhere(got).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("rule", ["torchvision", "matterport"])
@pytest.mark.parametrize(
    "box", [(-30.0, 2.0, -10.0, 9.0), (50.0, 2.0, 70.0, 9.0), (2.0, -30.0, 9.0, -10.0), (2.0, 50.0, 9.0, 70.0)]
)
def test_a_box_beside_the_picture_has_no_pixels(rule, box):
    assert not pixels_of(box, np.ones((28, 28)), (20, 30), rule).any()


def test_a_mask_is_cut_at_the_upper_left_not_moved():
    """Of two columns the second is set, of which two pixels are left in the picture."""
    got = pixels_of((-2.0, -1.0, 2.0, 1.0), [[0, 1], [0, 1]], (3, 4), "matterport")
    want = np.zeros((3, 4), bool)
    want[0, :2] = True
    np.testing.assert_array_equal(got, want)


def results_of(boxes, counts):
    n, k = np.shape(boxes)[:2]
    scores = np.linspace(0.9, 0.5, k) * np.ones((n, 1))
    return (
        np.array(boxes, "float32"), scores, np.tile(np.arange(k) + 1, (n, 1)), np.ones((n, k, 28, 28), "f4"),
        np.array(counts),
    )  # fmt: skip


def test_of_each_picture_as_many_objects_as_its_count_without_those_of_no_area():
    view = network_view(np.zeros((128, 128, 3), np.uint8), shapes_config())
    boxes = [[[1, 1, 9, 9], [5, 5, 5, 9], [7, 7, 9, 9], [3, 9, 9, 9], [0, 0, 9, 9]], [[0, 0, 2, 2]] * 5]
    results = results_of(boxes, [4, 1])
    first, second = (objects_of(results, i, view, shapes_config()) for i in range(2))
    assert [x.box for x in first] == [(1, 1, 9, 9), (7, 7, 9, 9)] and [x.kind for x in first] == [1, 3]
    assert [x.box for x in second] == [(0, 0, 2, 2)]
    assert (first[0].score, type(first[0].score), first[0].size) == (0.9, float, (128, 128))


def test_pictures_of_any_size_are_one_batch_and_each_has_its_own_view():
    config = shapes_config()
    calls = []

    def predict(images, windows):
        calls.append((images.shape, windows.tolist()))
        return results_of([[[0, 0, 64, 128]]] * 2, [1, 1])

    pictures = [np.zeros((64, 32, 3), np.uint8), np.zeros((256, 256, 3), np.uint8)]
    (one,), (two,) = find(predict, config, pictures)
    assert calls == [((2, 3, 128, 128), [[0, 0, 64, 128], [0, 0, 128, 128]])]
    assert (one.box, one.size) == ((0, 0, 32, 64), (64, 32)) and (two.box, two.size) == ((0, 0, 128, 256), (256, 256))
    assert find(lambda *_: results_of([[[0, 0, 0, 0]]], [0]), config, pictures[:1]) == [[]]


def test_json_has_rounded_numbers():
    mask = np.ones((2, 2), np.float32)
    one = Detection((1.04, 2.06, 5.0, 7.0), 0.123456, 2, mask, (10, 10), "matterport")
    assert as_json([one], NAMES) == [
        {"name": "square", "score": 0.1235, "box": [1.0, 2.1, 5.0, 7.0], "pixels": 20},
    ]
    assert as_json([], NAMES) == []


@pytest.mark.parametrize(("value", "count"), [(0.5, 12), (0.49, 0), (1.0, 12)])
def test_a_pixel_belongs_to_an_object_from_one_half_on(value, count):
    mask = np.full((4, 4), value, np.float32)
    assert pixels_of((1, 2, 4, 6), mask, (9, 9), "matterport").sum() == count


@pytest.mark.parametrize("box", [(2, 1, 2.4, 6), (1, 2, 6, 2.4), (2, 2, 2.3, 2.3)], ids=str)
def test_a_box_whose_sides_are_rounded_to_nothing_has_no_pixels(box):
    assert not pixels_of(box, np.ones((4, 4), np.float32), (9, 9), "matterport").any()
