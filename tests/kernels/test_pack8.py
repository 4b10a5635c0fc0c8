"""Matrices of bytes packed at run time: rows as pixels, columns as panels in groups of four rows, and their sums."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import GROUP, ByteShape
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pack8.calls import pack_columns_calls, pack_matrices_calls, pack_rows_calls
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.matrices import Operand
from tests.kernels.test_conv8 import FORMS, form
from tests.support.kernels import ORDERS, run_calls, view_of

every_form = pytest.mark.parametrize("name", FORMS)


def drawn(*shape):
    """Bytes whose sums are those of numbers without signs: half of them are 128 or more."""
    return np.random.default_rng(0).integers(0, 256, shape).astype("u1")


def sides(x):
    """Each matrix with its columns side by side, its rows side by side, and neither; read from the end to the start."""
    spread = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), "u1")
    spread[..., ::2] = x
    return [
        x,
        np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
        spread[..., ::2],
        np.flip(x).copy()[::-1, ::-1, ::-1],
    ]


def operand(x):
    return Operand(Pointer(x), *x.strides, "u1")


def pixels(target, n, c, w):
    """An image of one row of `w` pixels for each matrix, in bytes of no meaning."""
    lanes = target.lanes
    blocks = -(-c // lanes)
    return BlockedView(Pointer(np.full((n, blocks, 1, w, lanes), 77, "u1")), n, c, 1, w, lanes, dtype="u1")


@every_form
@pytest.mark.parametrize("factor", [None, -3])
def test_rows_are_pixels_and_zero_beyond_them(name, factor):
    target = form(name)
    for k in (1, target.lanes - 1, target.lanes, 2 * target.lanes + 3):
        for x in sides(drawn(2, 3, k)):
            out, terms = pixels(target, 2, k, 3), np.full((2, 3), 7, "i4")
            run_calls(pack_matrices_calls(out, operand(x), factor and Pointer(terms), factor or 0), target)
            rows = out.at.base[:, :, 0].transpose(0, 2, 1, 3).reshape(2, 3, -1)
            np.testing.assert_array_equal(rows[..., :k], x)
            assert not rows[..., k:].any()
            want = x.astype("i4").sum(2) * factor if factor else np.full((2, 3), 7)
            np.testing.assert_array_equal(terms, want)


def test_rows_of_any_leading_axes_are_one_picture():
    target, x = form("host"), drawn(2, 3, 21)
    out = pixels(target, 1, 21, 6)
    run_calls(pack_rows_calls(out, view_of(x)), target)
    rows = out.at.base[0, :, 0].transpose(1, 0, 2).reshape(6, -1)
    np.testing.assert_array_equal(rows[:, :21], x.reshape(6, 21))


def packed(target, y, order="all", factor=5, first=-9):
    """The panels ``[matrices, columns, groups, 4]`` as numbers, and the start sums ``[matrices, columns]``."""
    count, k, n = y.shape
    shape = ByteShape(k, 1, 8, n, target)
    groups = shape.panel_weights // (GROUP * shape.panel_channels)
    out = np.full((count, shape.panels, groups, shape.panel_channels, GROUP), 77, "i1")
    starts = np.full((count, shape.panels * shape.panel_channels), 99, "i4")
    calls = pack_columns_calls(shape, count, operand(y), Pointer(out), Pointer(starts), factor, first)
    run_calls(calls, target, order)
    assert groups * GROUP >= k
    return out.transpose(0, 1, 3, 2, 4).reshape(count, -1, groups * GROUP), starts


@every_form
def test_columns_are_panels_of_bytes_less_128(name):
    """Rows beyond the last count as zero, which is -128; of columns beyond the last nothing is said."""
    target = form(name)
    for k, n in ((1, 1), (GROUP + 1, target.lanes + 1), (4 * target.lanes + 3, 2 * target.lanes), (64, 5)):
        for y in sides(drawn(2, k, n)):
            panels, starts = packed(target, y)
            np.testing.assert_array_equal(panels[:, :n, :k], y.swapaxes(1, 2).astype("i2") - 128)
            assert (panels[:, :n, k:] == -128).all()
            np.testing.assert_array_equal(starts[:, :n], y.astype("i4").sum(1) * 5 - 9)


@pytest.mark.parametrize("order", ORDERS)
def test_tasks_in_any_order(order):
    target = form("host")
    for y in sides(drawn(3, 9, 5 * target.lanes)):
        panels, starts = packed(target, y, order, -1, 0)
        np.testing.assert_array_equal(panels[..., :9], y.swapaxes(1, 2).astype("i2") - 128)
        np.testing.assert_array_equal(starts, -y.astype("i4").sum(1))


@pytest.mark.parametrize("which, family", list(enumerate(["across", "along_k", "across", "across"])))
def test_the_kernel_is_that_of_the_bytes_side_by_side(which, family):
    y, target = sides(drawn(2, 9, 9))[which], form("host")
    (call,) = pack_columns_calls(ByteShape(9, 1, 8, 9, target), 2, operand(y), Pointer(y), Pointer(y), 1, 0)
    assert call.kernel.family == f"pack8.{family}"
    assert family == "along_k" or call.kernel.params[1] == (which == 0)


def test_no_matrices_are_no_calls():
    target = form("host")
    none = Operand(Pointer("x"), 0, 1, 1, "u1")
    assert pack_columns_calls(ByteShape(4, 1, 8, 4, target), 0, none, Pointer("y"), Pointer("z"), 1, 0) == []
    assert pack_matrices_calls(pixels(target, 0, 4, 3), none) == []
