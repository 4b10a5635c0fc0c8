"""Images of either layout as planes: which steps are whose, and which pairs are refused."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import is_plane_by_plane, planes_of, same_planes
from cgraph.record import replace
from tests.support.kernels import view_of

BLOCKED = BlockedView(Pointer("x"), 2, 20, 5, 6, 8, (1, 2, 3, 4))


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_a_plain_view_has_a_plane_for_each_channel_with_its_strides_in_elements(dtype):
    x = np.zeros((2, 3, 5, 14), dtype)[:, :, ::2, 1::3]
    planes = planes_of(view_of(x))
    assert (planes.n, planes.count, planes.rows, planes.columns) == x.shape
    assert (planes.image, planes.plane, planes.row, planes.column) == (210, 70, 28, 3)
    assert planes.at == view_of(x).at and is_plane_by_plane(view_of(x))


def test_a_blocked_view_has_a_plane_for_each_block_from_its_first_pixel_on():
    planes = planes_of(BLOCKED)
    assert (planes.n, planes.count, planes.rows, planes.columns) == (2, 3, 5, 6)
    assert (planes.image, planes.plane, planes.row, planes.column) == (3 * 9 * 12 * 8, 9 * 12 * 8, 12 * 8, 8)
    assert planes.at == BLOCKED.pixel(0, 0)
    assert not is_plane_by_plane(BLOCKED) and is_plane_by_plane(replace(BLOCKED, lanes=1))
    with pytest.raises(ValueError, match="do not fill whole blocks"):
        planes_of(BLOCKED.part(0, 5))


def test_both_sides_have_one_layout_and_as_many_images_and_planes():
    plain = view_of(np.zeros((2, 3, 4, 4), "f4"))
    small = replace(BLOCKED, h=2, w=3, halo=(0, 0, 0, 0))
    assert same_planes(small, BLOCKED) == (planes_of(small), planes_of(BLOCKED))
    for pair in ((plain, BLOCKED), (BLOCKED, plain)):
        with pytest.raises(ValueError, match="values of one layout are needed"):
            same_planes(*pair)
    for other in (replace(BLOCKED, n=3), replace(BLOCKED, c=8)):
        with pytest.raises(ValueError, match="numbers of images or planes differ"):
            same_planes(BLOCKED, other)
