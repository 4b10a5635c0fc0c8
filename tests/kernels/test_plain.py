"""Plain images copied with padding, different on each side, from images with strides."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.plain.calls import pad_plain_calls, padded_plain
from cgraph.kernels.target import target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("pad", [(0, 0, 0, 0), (1, 2, 3, 4), (0, 5, 1, 0), (2, 0, 0, 0)])
def test_zeros_are_above_left_below_and_right(pad, dtype, target, order):
    x = np.arange(1, 1 + 2 * 3 * 4 * 5, dtype=dtype).reshape(2, 3, 4, 5)
    top, left, bottom, right = pad
    want = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    out = np.full(want.shape, 77, dtype)
    run_calls(pad_plain_calls(view_of(out), view_of(x), pad), target_named(target), order)
    np.testing.assert_array_equal(out, want)


def test_images_and_planes_may_lie_apart():
    wide = np.arange(4 * 6 * 8 * 5, dtype="f4").reshape(4, 6, 8, 5)
    x = wide[::2, 1::3, 2::2]
    out = np.full((2, 2, 4, 6), 9, "f4")
    run_calls(pad_plain_calls(view_of(out), view_of(x), (1, 1, 0, 0)))
    np.testing.assert_array_equal(out, np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0))))


def test_pixels_that_are_apart_are_refused():
    x = np.zeros((1, 1, 3, 8), "f4")[..., ::2]
    with pytest.raises(ValueError, match="pixels are 8 bytes apart; plain images need 4. Copy the image first"):
        pad_plain_calls(view_of(np.zeros((1, 1, 3, 4), "f4")), view_of(x), (0, 0, 0, 0))
    one = np.zeros((1, 1, 3, 8), "f4")[..., ::8]  # a single column has no neighbour
    assert pad_plain_calls(view_of(np.zeros((1, 1, 3, 1), "f4")), view_of(one), (0, 0, 0, 0))


def test_the_padded_image_lies_in_the_workspace():
    x, room = np.zeros((2, 3, 4, 5), "f4"), np.zeros(2 * 3 * 7 * 11, "f4")
    view = padded_plain(view_of(x), (1, 2, 2, 4), view_of(room))
    assert view.shape == (2, 3, 7, 11) and view.is_contiguous and view.at == Pointer(room) and view.dtype == "f4"
    with pytest.raises(ValueError):
        padded_plain(view_of(x), (1, 2, 2, 5), view_of(room))
