"""Form: sizes with unequal halos, a partial last block, filled halos, and rows of a band."""

import numpy as np
import pytest

from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.physical.form import Form
from cgraph.record import replace

FORM = Form(2, 5, 3, 4, 4, "f4", (1, 2, 3, 4))
X = np.arange(2 * 5 * 3 * 4, dtype="float32").reshape(2, 5, 3, 4) + 1


def test_shapes_count_the_halo_of_each_side_and_round_channels_up():
    assert FORM.logical == (2, 5, 3, 4) and FORM.shape == (2, 2, 7, 10, 4)
    assert FORM.spec == Spec((2, 2, 7, 10, 4), np.dtype("float32"))
    assert replace(FORM, c=4).shape[1] == 1 and replace(FORM, c=9, lanes=1).shape[1] == 9


@pytest.mark.parametrize("fill", [0, 7])
def test_each_element_is_at_its_block_and_lane_and_the_rest_is_filled(fill):
    form = replace(FORM, fill=fill)
    got, want = form.to_blocked(X), np.full(FORM.shape, fill, "float32")
    for n, c, i, j in np.ndindex(X.shape):
        want[n, c // 4, 1 + i, 2 + j, c % 4] = X[n, c, i, j]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(form.plain(got), X)


def test_a_view_has_its_steps_in_elements():
    view = View(Pointer("x", 64), FORM.shape, (8000, 2000, 400, 16, 4), "f4")
    at = FORM.at(view)
    assert (at.image, at.plane, at.row) == (2000, 500, 100)
    assert (at.n, at.c, at.h, at.w, at.lanes, at.halo, at.dtype) == (2, 5, 3, 4, 4, (1, 2, 3, 4), "f4")
    assert at.origin == Pointer("x", 64 + 400 + 2 * 16)
    assert replace(FORM, fill=9).at(view).fill == 9


@pytest.mark.parametrize("first, stop, h, above, below", [
    (0, 7, 3, 1, 3), (0, 2, 1, 1, 0), (1, 3, 2, 0, 0), (3, 7, 1, 0, 3), (2, 5, 2, 0, 1), (0, 1, 0, 1, 0),
])  # fmt: skip
def test_rows_keep_their_part_of_the_halo(first, stop, h, above, below):
    rows = FORM.rows(first, stop)
    assert (rows.h, rows.halo, rows.shape[2]) == (h, (above, 2, below, 4), stop - first)
    part = X[:, :, max(first - 1, 0) : max(first - 1, 0) + h]
    np.testing.assert_array_equal(rows.to_blocked(part), FORM.to_blocked(X)[:, :, first:stop])


def test_a_strip_has_no_halo_above_and_below():
    strip = FORM.strip(5)
    assert (strip.h, strip.halo, strip.w, strip.shape[2]) == (5, (0, 2, 0, 4), 4, 5)
