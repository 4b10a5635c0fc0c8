"""Anchors of both rules by hand: corners, order, strides of both axes, rounding of halves."""

import numpy as np
import pytest

from cgraph.record import replace
from nn.models.mask_rcnn import matterport_config
from nn.models.mask_rcnn.anchors import anchors, level
from nn.models.mask_rcnn.config import Config
from tests.support.tolerance import assert_near


def test_anchors_lie_at_whole_strides_with_the_area_of_their_side():
    config = Config((64, 96), 2, anchor_sides=(32, 64))
    first, second = anchors(config, [(8, 12), (4, 6)])
    assert first.shape == (8 * 12 * 3, 4) and second.shape == (4 * 6 * 3, 4)
    np.testing.assert_array_equal(first[1], [-16, -16, 16, 16])  # ratio 1 at the first pixel
    np.testing.assert_array_equal(first[(2 * 12 + 5) * 3 + 1], [40 - 16, 16 - 16, 40 + 16, 16 + 16])
    sides = second[0, 2:] - second[0, :2]  # ratio 0.5 of height over width
    assert sides[0] > sides[1] and abs(sides.prod() - 64**2) < 64


def test_matterports_anchors_are_not_rounded_and_end_a_pixel_before():
    config = replace(matterport_config(128), anchor_sides=(32,))
    (found,) = anchors(config, [(16, 16)])
    wide = 32 * np.sqrt(2)
    assert_near(found[2], [-wide / 2, -wide / 4, wide / 2 - 1, wide / 4 - 1], "float32 formulas")


def test_the_stride_of_each_axis_is_its_own():
    """Maps of 4 rows and 3 columns over 64 x 96 pixels: 16 pixels down, 32 across."""
    config = Config((64, 96), 2, anchor_sides=(2,), ratios=(1.0,))
    (boxes,) = anchors(config, [(4, 3)])
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    want = [[32 * column, 16 * row] for row in range(4) for column in range(3)]
    np.testing.assert_array_equal(centres, want)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_what_is_left_of_a_division_is_dropped(shape):
    boxes = level(Config((17, 17), 2, ratios=(1.0,)), 2.0, shape)
    assert boxes[-1].tolist() == [
        (shape[1] - 1) * (17 // shape[1]) - 1,
        (shape[0] - 1) * (17 // shape[0]) - 1,
        (shape[1] - 1) * (17 // shape[1]) + 1,
        (shape[0] - 1) * (17 // shape[0]) + 1,
    ]


def test_a_ratio_is_height_by_width_for_torchvision_and_width_by_height_for_matterport():
    torchvision = level(Config((8, 8), 2, ratios=(4.0,)), 32.0, (1, 1))
    matterport = level(Config((8, 8), 2, "matterport", ratios=(4.0,)), 32.0, (1, 1))
    np.testing.assert_array_equal(torchvision, [[-8, -32, 8, 32]])
    np.testing.assert_array_equal(matterport, [[-32, -8, 31, 7]])


def test_corners_are_rounded_half_to_even_by_torchvisions_rule_alone():
    """Sides of 5 and 7 have halves of 2.5 and 3.5."""
    np.testing.assert_array_equal(level(Config((8, 8), 2, ratios=(1.0,)), 5.0, (1, 1)), [[-2, -2, 2, 2]])
    np.testing.assert_array_equal(level(Config((8, 8), 2, ratios=(1.0,)), 7.0, (1, 1)), [[-4, -4, 4, 4]])
    config = Config((8, 8), 2, "matterport", ratios=(1.0,))
    np.testing.assert_array_equal(level(config, 5.0, (1, 1)), [[-2.5, -2.5, 1.5, 1.5]])


def test_the_ratios_of_a_pixel_follow_one_another():
    boxes = level(Config((8, 8), 2, ratios=(0.25, 1.0, 4.0)), 8.0, (1, 2))
    assert boxes.dtype == np.float32 and boxes.shape == (6, 4)
    sides = boxes[:, 2:] - boxes[:, :2]
    np.testing.assert_array_equal(sides, [[16, 4], [8, 8], [4, 16]] * 2)
    np.testing.assert_array_equal(boxes[3:] - boxes[:3], [[4, 0, 4, 0]] * 3)


def test_every_level_has_a_side_and_a_map():
    with pytest.raises(ValueError, match="zip"):
        anchors(Config((64, 64), 2, anchor_sides=(8, 16)), [(4, 4)])
    assert [len(x) for x in anchors(Config((64, 64), 2, anchor_sides=(8, 16)), [(4, 4), (2, 2)])] == [48, 12]
