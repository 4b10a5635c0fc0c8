"""Training batches: objects, windows and owners move with the pixels, and what the loader holds stays as it is."""

import numpy as np
import pytest

from nn.models.mask_rcnn import matterport_config, torchvision_config
from nn.models.mask_rcnn.tools.batches import BOXES, as_operands, positions
from tests.support.tolerance import assert_near


def box_of(mask, far):
    rows, columns = np.nonzero(mask)
    return [columns.min(), rows.min(), columns.max() + 1 - far, rows.max() + 1 - far]


@pytest.mark.parametrize("far", [0, 1])
@pytest.mark.parametrize("step", BOXES, ids=lambda x: x.__name__)
def test_the_boxes_of_moved_pixels_are_the_moved_boxes(step, far):
    """In a picture with unequal sides, also of an object that touches its border."""
    masks = np.zeros((3, 5, 9), bool)
    masks[0, 1:3, 2:7], masks[1, 0:5, 0:1], masks[2, 4:, 8:] = True, True, True
    moved = step(masks)
    assert moved.shape == ((3, 9, 5) if step.__name__ == "transpose" else masks.shape)
    boxes = np.array([box_of(x, far) for x in masks])
    np.testing.assert_array_equal(BOXES[step](boxes, masks.shape[1:], far), [box_of(x, far) for x in moved])
    np.testing.assert_array_equal(step(moved), masks)


CONFIGS = {"torchvision": torchvision_config((8, 8), 4), "matterport": matterport_config(8, 4)}


def arrays_of(config, count=64):
    """Pictures with an object of two pixels by three and a window that leaves a border, other on each side."""
    pictures, owner = np.full((count, 3, 8, 8), 9, np.uint8), np.zeros((count, 8, 8), np.uint8)
    pictures[..., 2:4, 1:4], owner[:, 2:4, 1:4] = np.array([50, 100, 200])[:, None, None], 1
    boxes, classes = np.zeros((count, 2, 4), np.float32), np.tile([3, 0], (count, 1))
    boxes[:, 0] = box_of(owner[0], config.far)
    return pictures, np.tile([1, 0, 7, 5], (count, 1)), boxes, classes, owner


@pytest.mark.parametrize("rule", CONFIGS)
@pytest.mark.parametrize("turning", [False, True])
def test_everything_of_a_picture_is_moved_alike_and_each_picture_by_itself(rule, turning):
    config = CONFIGS[rule]
    arrays = arrays_of(config)
    before = [x.copy() for x in arrays]
    images, windows, boxes, classes, owner = positions(config, turning)(arrays, np.random.default_rng(0))
    for x, y in zip(arrays, before):
        np.testing.assert_array_equal(x, y)
    assert len({x.tobytes() for x in owner}) == (8 if turning else 2)
    assert images.dtype == np.float32 and (classes == [3, 0]).all() and not boxes[:, 1].any()
    inside = np.array([50, 100, 200]) - config.mean
    for image, window, box, own in zip(images, windows, boxes[:, 0], owner):
        np.testing.assert_array_equal(box, box_of(own, config.far))
        assert_near(image[:, own > 0], np.tile((inside / config.deviation)[:, None], 6), "float32 formulas")
        x0, y0, x1, y1 = window + [0, 0, config.far, config.far]
        assert x0 <= box[0] and y0 <= box[1] and (x1 - x0) * (y1 - y0) == 30
        if rule == "torchvision":
            assert np.count_nonzero(image) == 3 * 30


@pytest.mark.parametrize("rule", CONFIGS)
def test_operands_are_the_unmoved_pictures_in_the_range_of_the_network(rule):
    config = CONFIGS[rule]
    arrays = arrays_of(config, 2)
    images, windows, *truth = as_operands(config, arrays)
    assert windows.dtype == np.float32 and (windows == [1, 0, 7 - config.far, 5 - config.far]).all()
    assert all(x is y for x, y in zip(truth, arrays[2:]))
    want = (np.array([9, 9, 9]) - config.mean) / config.deviation
    assert_near(images[0, :, 4, 6], want, "float32 formulas")
    assert_near(images[0, :, 4, 7], 0 * want if rule == "torchvision" else want, "float32 formulas")


@pytest.mark.parametrize("rule", CONFIGS)
def test_a_window_moves_with_the_pixels_in_it(rule):
    """It is farther from one side than from the opposite one; its ends are those of the rule."""
    config = CONFIGS[rule]
    pictures, _, boxes, classes, owner = arrays_of(config)
    owner[:], owner[:, 2:7, 1:4] = 0, 1
    windows = np.tile([1, 2, 4, 7], (len(pictures), 1))
    _, moved, _, _, there = positions(config, True)(
        (pictures, windows, boxes, classes, owner), np.random.default_rng(0)
    )
    assert len({tuple(x) for x in moved.tolist()}) == 8
    np.testing.assert_array_equal(moved, [box_of(x, config.far) for x in there])
