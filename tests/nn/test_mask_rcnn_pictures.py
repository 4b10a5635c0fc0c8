"""Pixels in the range of a network: mean and deviation of each colour, and what lies around a picture."""

import numpy as np
import pytest

from cgraph.errors import InputError
from nn.models.mask_rcnn import pictures
from nn.models.mask_rcnn.config import matterport_config, torchvision_config
from nn.models.mask_rcnn.pictures import as_box, network_view, normalise
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


SIZES = [(32, 32), (64, 64), (20, 64), (64, 20), (31, 64), (100, 3), (3, 100), (7, 5), (1000, 1), (1, 1000)]


@pytest.mark.parametrize(
    "config", [torchvision_config((32, 48)), matterport_config(64)], ids=["torchvision", "matterport"]
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_picture_of_any_size_fits_into_the_input_as_large_as_it_can(size, config, monkeypatch):
    """At the upper left by torchvision's rule, else in the middle; at least one pixel, and zeros around it."""
    asked = []

    def resized(images, shape):
        asked.append((images, shape))
        return np.broadcast_to(np.arange(1, 4, dtype="f4").reshape(1, 3, 1, 1), (1, 3, *shape))

    monkeypatch.setattr(pictures, "resize_images", resized)
    picture = np.random.default_rng(0).integers(1, 256, (*size, 3), np.uint8)
    view = network_view(picture, config)
    share = min(config.image[0] / size[0], config.image[1] / size[1])
    rows, columns = (max(1, round(n * share)) for n in size)
    top, left = (0, 0) if config.is_torchvision else ((64 - rows) // 2, (64 - columns) // 2)
    assert view.size == size and view.window == (left, top, left + columns, top + rows)
    assert view.pixels.shape == (3, *config.image) and view.pixels.dtype == np.float32
    channels = picture.transpose(2, 0, 1)
    for images, shape in asked:
        np.testing.assert_array_equal(images, channels[None])
        assert shape == (rows, columns) and images.dtype == np.float32
    assert len(asked) == ((rows, columns) != size)
    inside = view.pixels[:, top : top + rows, left : left + columns]
    np.testing.assert_array_equal(inside, np.broadcast_to([[[1]], [[2]], [[3]]], inside.shape) if asked else channels)
    assert np.count_nonzero(view.pixels) == inside.size == 3 * rows * columns


def test_a_resize_keeps_channels_and_corners_apart():
    images = np.zeros((1, 2, 2, 3), "f4")
    images[0, 0, 0, 0], images[0, 1, 1, 2] = 8, 16
    first, second = pictures.resize_images(images, (4, 6))[0]
    assert first.argmax() == 0 and second.argmax() == 4 * 6 - 1 and (first.max(), second.max()) == (8, 16)


@pytest.mark.parametrize(
    "picture",
    [np.zeros((0, 5, 3), "u1"), np.zeros((5, 0, 3), "u1"), np.zeros((5, 4, 4), "u1"), np.zeros((5, 4), "u1"),
     np.zeros((5, 4, 3), "f4"), np.zeros((1, 5, 4, 3), "u1")],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)  # fmt: skip
def test_other_arrays_than_pictures_are_named(picture):
    with pytest.raises(InputError) as error:
        network_view(picture, torchvision_config((32, 48)))
    assert str(error.value) == (f"a picture is {picture.dtype}{list(picture.shape)}. Pass uint8[rows, columns, 3].")
