"""Changes of layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.blocked_copy.calls import (
    concat_calls,
    copy_channels_calls,
    ends_buffer,
    fill_halo_calls,
    to_blocked_calls,
    to_plain_calls,
    with_long_rows,
)
from cgraph.kernels.blocked_copy.signature import CONVERT
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.blocked_views import BlockedView
from tests.support.images import assert_zero_frame, buffer, empty_laned, interior, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

pytestmark = pytest.mark.usefixtures("cuts")

LANES = target_named("host").lanes
SHAPES = [(1, 3, 5, 7), (2, 21, 4, LANES), (1, 64, 1, 17), (1, 85, 3, 65), (1, 1, 1, 1)]


def images(shape, dtype="f4"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_in_lanes_and_back(shape, dtype, target):
    target, x = target_named(target), images(shape, dtype)
    made = empty_laned(shape, target.lanes_of(dtype), (1, 2, 0, 1), dtype)
    run_calls(to_blocked_calls(target, made, view_of(x)), target)
    assert_zero_frame(made)
    np.testing.assert_array_equal(plain(made), x)
    out = np.full(shape, np.nan, dtype)
    run_calls(to_plain_calls(target, view_of(out), made), target)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(2, 21, 13, LANES - 1), (1, 3, 1, 2), (2, 37, 3, 3), (1, 40, 2, LANES)], ids=str)
def test_short_rows_without_gaps_are_copied_as_one_and_others_row_by_row(shape, target):
    """Bytes, since most images of few pixels between layers are bytes; beyond an odd view nothing is written."""
    target, (n, c, h, w) = target_named(target), shape
    x, made = np.random.default_rng(3).integers(0, 99, shape, "u1"), empty_laned(shape, target.lanes, dtype="u1")
    run_calls(to_blocked_calls(target, made, view_of(x)), target)
    np.testing.assert_array_equal(plain(made), x)
    assert_zero_frame(made)
    out, wide = np.full(shape, 99, "u1"), np.full((n, c, h + 1, w + 2), 99, "u1")
    (whole,), (apart,) = (to_plain_calls(target, view_of(to), made) for to in (out, wide[:, :, 1:, 1:-1]))
    run_calls([whole, apart], target)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(wide[:, :, 1:, 1:-1], x)
    assert (wide[:, :, 0] == 99).all() and (wide[..., [0, -1]] == 99).all()
    rows, columns = (whole.args[list(CONVERT).index(name)] for name in "hw")
    assert rows * columns == h * w and (rows < h or h == 1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [1, 4, 5, LANES - 1, LANES, LANES + 1, 3 * LANES + 2])
@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_bytes_in_blocks_of_four(channels, columns, target):
    """Pixels of first layers are words: several at once, the last ones overlapping, or one by one."""
    x = np.random.default_rng(4).integers(1, 256, (2, channels, 3, columns), "u1")
    made = empty_laned(x.shape, 4, (1, 2, 1, 3), "u1")
    run_calls(to_blocked_calls(target_named(target), made, view_of(x)), target_named(target))
    np.testing.assert_array_equal(plain(made), x)
    assert_zero_frame(made)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("halo", [(0, 0, 0, 0), (2, 0, 1, 0)], ids=str)
@pytest.mark.parametrize("h, w", [(12, 12), (7, 7), (3, 3), (2, 1), (1, 2), (40, 5), (13, 127), (36, 31)])
def test_rows_that_are_adjacent_are_copied_together(h, w, halo, target):
    """The same elements as of rows that are apart: of whole images and of parts of their channels and rows."""
    target, x = target_named(target), images((2, 21, h + 1, w))
    for part in (x[:, :, 1:], x[:, 2:20, :h], x[..., : w - 1 or 1][:, :, :h]):
        for dtype in ("f4", "f8"):
            made = empty_laned(part.shape, target.lanes_of(dtype), halo, dtype)
            run_calls(to_blocked_calls(target, made, view_of(x_of := part.astype(dtype, order="K"))), target)
            assert_zero_frame(made)
            np.testing.assert_array_equal(plain(made), x_of)
            wide = np.full((2, part.shape[1] + 2, h + 3, part.shape[3]), np.nan, dtype)
            run_calls(to_plain_calls(target, view_of(wide[:, 1:-1, 2:-1]), made), target)
            np.testing.assert_array_equal(wide[:, 1:-1, 2:-1], x_of)
            wide[:, 1:-1, 2:-1] = np.nan
            assert np.isnan(wide).all()


@pytest.mark.parametrize("order", ORDERS)
def test_strided_views_become_blocked(order):
    x = images((2, 40, 9, 2, 18))[:, ::-1, ::2, 1]
    made = empty_laned(x.shape, LANES, (0, 0, 1, 0))
    run_calls(to_blocked_calls(host_target(), made, view_of(x)), None, order)
    np.testing.assert_array_equal(plain(made), x)
    wide = np.full((2, 50, 9, 18), np.nan, "f4")
    run_calls(to_plain_calls(host_target(), view_of(wide[:, 4:44, ::2]), made), None, order)
    np.testing.assert_array_equal(wide[:, 4:44, ::2], x)
    assert np.isnan(wide[:, :4]).all() and np.isnan(wide[:, :, 1::2]).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("halo", [(1, 1, 1, 1), (0, 2, 3, 0), (2, 0, 0, 1)], ids=str)
def test_zero_halo_clears_the_frame_and_nothing_else(halo, target):
    target, x = target_named(target), images((2, 20, 4, 5))
    made = laned(x, target.lanes, halo)
    kept = interior(made).copy()
    buffer(made)[...] = np.nan
    interior(made)[...] = kept
    run_calls(fill_halo_calls(made), target)
    assert_zero_frame(made)
    np.testing.assert_array_equal(plain(made), x)


def test_no_halo_needs_no_call():
    assert fill_halo_calls(laned(images((1, 4, 2, 2)), LANES)) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("counts", [(24, 24), (3, 21, 85, 1), (16, LANES), (1, 2, 3, 4), (7,)], ids=str)
def test_concat_at_any_channel(counts, target):
    target = target_named(target)
    parts = [images((2, c, 3, 5)) + i for i, c in enumerate(counts)]
    out = empty_laned((2, sum(counts), 3, 5), target.lanes, (1, 0, 0, 1))
    sources = [laned(p, target.lanes, (0, i % 2, 0, 0)) for i, p in enumerate(parts)]
    run_calls(concat_calls(out, sources), target)
    np.testing.assert_array_equal(plain(out), np.concatenate(parts, 1))
    assert_zero_frame(out)


@settings(max_examples=30)
@given(st.integers(1, 60), st.data(), st.sampled_from(TARGETS), st.sampled_from(ORDERS))
def test_slices_of_channels(c, data, target, order):
    target, x = target_named(target), images((1, c, 2, 3))
    first = data.draw(st.integers(0, c - 1))
    count = data.draw(st.integers(1, c - first))
    out = empty_laned((1, count, 2, 3), target.lanes)
    run_calls(copy_channels_calls(out, laned(x, target.lanes).part(first, count), fill=True), target, order)
    np.testing.assert_array_equal(plain(out), x[:, first : first + count])
    assert_zero_frame(out)


def test_a_part_leaves_its_neighbours_alone():
    x = images((1, 50, 2, 3))
    out = laned(x, LANES)
    run_calls(copy_channels_calls(out.part(10, 21), laned(np.ones((1, 21, 2, 3), "f4"), LANES)))
    x[:, 10:31] = 1
    np.testing.assert_array_equal(plain(out), x)


def test_concat_refuses_parts_that_do_not_fill():
    with pytest.raises(ValueError, match="channels"):
        concat_calls(laned(images((1, 5, 2, 2)), LANES), [laned(images((1, 4, 2, 2)), LANES)])


@given(c=st.integers(1, 40), offset=st.integers(0, 40), more=st.integers(0, 20), lanes=st.sampled_from([1, 4, 8, 16]))
def test_a_buffer_has_blocks_for_every_channel_wherever_its_value_starts(c, offset, more, lanes):
    """`channels` left out means that the buffer ends with the value."""
    for channels in (0, offset + c + more):
        x = BlockedView(Pointer(None), 2, c, 3, 5, lanes, (1, 0, 2, 3), offset, channels)
        whole = channels or offset + c
        assert (x.buffer_blocks - 1) * lanes < whole <= x.buffer_blocks * lanes
        assert x.nbytes == 4 * 2 * x.buffer_blocks * (3 + 1 + 2) * (5 + 0 + 3) * lanes
        part = x.part(c // 2, c - c // 2)
        assert (part.channel_offset, part.nbytes) == (offset + c // 2, x.nbytes)
        assert x.ends_a_block == (whole == offset + c or (offset + c) % lanes == 0)
        assert x.starts_a_block == (offset % lanes == 0)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("dtype", "lanes"), [("V2", 32), ("V2", 4), ("u1", 4), ("u1", 64), ("f4", 8), ("i4", 8)])
def test_halos_of_every_dtype_are_filled_and_nothing_beyond_the_buffer(dtype, lanes, name):
    """A bfloat16 number is a float32 in a register, and two bytes in memory."""
    halo, size = (1, 2, 1, 3), int(dtype[1:])
    shape = (2, 3, 4 + 2, 5 + 5, lanes)
    raw = np.full(np.prod(shape) * size + 4096, 0x55, "u1")
    x = BlockedView(Pointer(raw), 2, 3 * lanes, 4, 5, lanes, halo, dtype=dtype, fill=0 if dtype == "V2" else 7)
    run_calls(fill_halo_calls(x), target_named(name))
    code = "u2" if dtype == "V2" else dtype
    images = raw[:-4096].view(code).reshape(shape)
    frame = np.ones(shape, bool)
    frame[:, :, 1:5, 2:7] = False
    assert (images[frame] == (0 if dtype == "V2" else 7)).all()
    assert (images[~frame].view("u1") == 0x55).all() and (raw[-4096:] == 0x55).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first, behind", [(0, 0), (0, 5), (7, 0), (7, 9), (LANES, 3)])
def test_parts_join_inside_a_larger_buffer(first, behind, target):
    """Only the last channel of the buffer is followed by zeros; others keep their neighbours."""
    target = target_named(target)
    parts = [images((2, c, 3, 5)) + c for c in (5, LANES + 1, 3)]
    count = sum(p.shape[1] for p in parts)
    x = images((2, first + count + behind, 3, 5))
    out = laned(x, target.lanes, (1, 0, 0, 1))
    if not behind:  # what is in lanes that no channel uses
        interior(out)[:, -1, :, :, (first + count - 1) % target.lanes + 1 :] = 77
    sources = [laned(p, target.lanes, (0, i, 0, 0)) for i, p in enumerate(parts)]
    run_calls(concat_calls(out.part(first, count), sources), target)
    x[:, first : first + count] = np.concatenate(parts, 1)
    np.testing.assert_array_equal(plain(out), x)
    assert_zero_frame(out)


def test_a_value_ends_its_buffer_if_no_channel_follows():
    whole = laned(images((1, 20, 2, 3)), LANES)
    assert ends_buffer(whole) and ends_buffer(whole.part(5, 15)) and not ends_buffer(whole.part(5, 14))
    assert ends_buffer(whole.part(5, 15).part(3, 12)) and not ends_buffer(whole.part(0, 19).part(0, 19))


@pytest.mark.parametrize("size", [(2, 3, 5, 7), (2, 3, 4, 8), (1, 3, 4, 7), (2, 4, 4, 7)], ids=str)
def test_plain_images_of_another_size_are_refused(size):
    x, wrong = laned(images((2, 3, 4, 7)), LANES), view_of(images(size))
    message = r"a view .* is not a plain image \(2, 3, 4, 7\) with contiguous pixels"
    with pytest.raises(ValueError, match=message):
        to_blocked_calls(host_target(), x, wrong)
    with pytest.raises(ValueError, match=message):
        to_plain_calls(host_target(), wrong, x)


def test_pixels_that_are_apart_are_refused_unless_there_is_one_in_a_row():
    x, apart = laned(images((2, 3, 4, 7)), LANES), np.zeros((2, 3, 4, 14), "f4")[..., ::2]
    with pytest.raises(ValueError, match="with contiguous pixels. Copy it first"):
        to_blocked_calls(host_target(), x, view_of(apart))
    column, source = empty_laned((2, 3, 4, 1), LANES), np.random.default_rng(0).random((2, 3, 4, 2), "f4")[..., :1]
    run_calls(to_blocked_calls(host_target(), column, view_of(source[:, :, :, ::2])))
    np.testing.assert_array_equal(plain(column), source)


@pytest.mark.parametrize(
    ("h", "w", "rows", "columns"),
    [
        (12, 12, 1, 144),
        (4, 32, 1, 128),
        (8, 32, 2, 128),
        (6, 50, 2, 150),
        (7, 50, 1, 350),
        (5, 128, 5, 128),
        (1, 9, 1, 9),
    ],
)
def test_rows_are_joined_up_to_a_long_one_that_divides_all(h, w, rows, columns):
    x, y = laned(images((1, 3, h, w)), LANES), np.zeros((1, 3, h, w), "f4")
    blocked, dense = with_long_rows(x, view_of(y))
    assert (blocked.h, blocked.w) == dense.shape[2:] == (rows, columns)
    for other in (laned(images((1, 3, h, w)), LANES, (0, 0, 0, 1)), laned(images((1, 3, h, w)), LANES, (1, 0, 0, 0))):
        assert with_long_rows(other, view_of(y)) == (other, view_of(y))
