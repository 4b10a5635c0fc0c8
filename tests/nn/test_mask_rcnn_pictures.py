"""Pixels in the range of a network: mean and deviation of each colour, and what lies around a picture."""

import numpy as np
import pytest

from nn.models.mask_rcnn.config import matterport_config, torchvision_config
from nn.models.mask_rcnn.pictures import as_box, normalise
from tests.support.tolerance import assert_near

CONFIGS = [torchvision_config((32, 32)), matterport_config(64)]
WINDOWS = np.array([[1, 2, 4, 6], [0, 0, 7, 9], [3, 0, 5, 4]], "f4")  # left, top, right, bottom
PIXELS = np.arange(3 * 3 * 9 * 7).reshape(3, 3, 9, 7).astype("u1")


@pytest.mark.parametrize("config", CONFIGS, ids=["torchvision", "matterport"])
def test_only_torchvisions_rule_clears_all_four_sides_around_a_picture(config):
    want = (PIXELS - np.array(config.mean)[:, None, None]) / np.array(config.deviation)[:, None, None]
    if config.is_torchvision:
        rows, columns = np.ogrid[:9, :7]
        for image, (left, top, right, bottom) in zip(want, WINDOWS):
            image[:, ~((rows >= top) & (rows < bottom) & (columns >= left) & (columns < right))] = 0
    assert_near(normalise(PIXELS, WINDOWS, config), want, "float32")


def test_a_window_is_a_box_whose_far_corner_belongs_to_the_rule():
    assert [as_box(WINDOWS[0], config).tolist() for config in CONFIGS] == [[1, 2, 4, 6], [1, 2, 3, 5]]
