"""Depthwise convolution of bytes: exact, filters of any columns, unequal strides, shuffles shared by two results."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, Result, is_depthwise8
from cgraph.kernels.depthwise8.calls import (
    depthwise8_calls,
    few_pixels,
    halo8,
    has_planes,
    pack_depthwise8,
    row_words,
)
from cgraph.kernels.depthwise8.emit import Tile, shifts_of
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_conv8 import FORMS, JOINS, RESULTS, SAME, check, form
from tests.support.images import empty_laned, laned
from tests.support.kernels import ORDERS, TARGETS

pytestmark = pytest.mark.usefixtures("cuts")

DEPTHWISE = {
    "3x3": SAME,
    "3x3, stride 2": Window((3, 3), (2, 2), (1, 1, 1, 1)),
    "5x5": Window((5, 5), pad=(2, 2, 2, 2)),
    "7x4, stride 1 and 2": Window((7, 4), (1, 2), (3, 1, 3, 2)),
    "1x2": Window((1, 2), pad=(0, 0, 0, 1)),
    "dilated": Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("window", DEPTHWISE.values(), ids=DEPTHWISE.keys())
def test_a_filter_for_each_channel(window, name):
    for c, h, w in ((21, 9, 17), (64, 7, 7), (5, 4, 1)):
        if min(window.result(h, w)):
            check((2, c, h, w, c, window, c), form(name), added=True, result=RESULTS["twice"])
            check((2, c, h, w, c, window, c), form(name), result=Result("u1", 120, fixed="twice"))
            check((2, c, h, w, c, window, c), form(name), result=Result("u1", 9, 9, fixed="once", bounded=True))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS.keys())
def test_a_residual_whose_rows_are_longer_than_those_of_the_result(join, name):
    for window in (SAME, Window((7, 4), (1, 2), (3, 1, 3, 2))):
        check((2, 21, 9, 17, 21, window, 21), form(name), Result("u1", 7, 0, 255, join), added=True)


def test_tiles_of_processors_without_vectors_repeat_few_pixels():
    assert [few_pixels(columns, "halves") for columns in (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 48)] == [
        1,
        1,
        3,
        4,
        3,
        3,
        4,
        4,
        3,
        2,
        4,
    ]


def test_filters_for_halves_lie_row_by_row_with_the_channels_of_a_block_side_by_side():
    f = np.arange(5 * 2 * 3).reshape(5, 1, 2, 3).astype("i1")
    packed = pack_depthwise8(ByteShape(5, 9, 9, 5, form("halves"), Window((2, 3)), 5), f)
    assert packed.shape == (2, 2, 3, 4)
    assert packed[0].tolist() == f[:4, 0].transpose(1, 2, 0).tolist()
    assert packed[1, ..., 0].tolist() == f[4, 0].tolist() and not packed[1, ..., 1:].any()
    window = Window((2, 3), pad=(1, 2, 0, 3))
    assert halo8(ByteShape(5, 9, 9, 5, form("halves"), window, 5), window) == (1, 2, 0, 3)


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_tasks(order):
    c = 2 * host_target().lanes + 1
    check((2, c, 5, 6, c, Window((3, 2), (2, 1), (1, 0, 0, 1)), c), target_named("host"), order=order)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", range(1, 6))
@pytest.mark.parametrize("stride", [(1, 1), (1, 2), (2, 1)], ids=str)
def test_filters_of_every_number_of_columns(columns, stride, target):
    """Rows of 1 to 18 results: tiles of every width, of which the last overlaps its neighbour."""
    window = Window((2, columns), stride, (0, columns // 2, 1, columns - 1))
    for w in (columns, 9, 18):
        check((1, 3, 4, w, 3, window, 3), target_named(target), zero=7)


@pytest.mark.parametrize("target", TARGETS)
def test_the_largest_products_do_not_saturate(target):
    check((1, 9, 4, 5, 9, SAME, 9), target_named(target), Result("i4"), 0, extreme=True)


@pytest.mark.parametrize("s, stride, shifts", [(1, 1, 2), (3, 1, 2), (4, 1, 1), (5, 1, 1), (3, 2, 1), (1, 2, 1)])
def test_filters_with_a_free_column_and_stride_one_use_a_shuffle_twice(s, stride, shifts):
    assert shifts_of(s, stride) == shifts
    tile = Tile(4, 2, s, stride, "u1", "", False, False)
    assert (tile.shifts, tile.windows) == (shifts, 2 if s == 5 else 1)


def depthwise(window, c=6, groups=6):
    return ByteShape(c, 5, 9, c, host_target(), window, groups)


def test_the_halo_holds_whole_groups_of_columns_on_the_right():
    for columns, more in ((1, 3), (2, 2), (3, 1), (4, 0), (5, 3)):
        window = Window((2, columns), pad=(1, 2, 0, columns))
        assert halo8(depthwise(window), window) == (1, 2, 0, columns + more)
    assert halo8(depthwise(SAME, groups=2), SAME) == (1, 1, 1, 1)


def test_only_one_filter_for_each_channel_without_dilation_is_depthwise():
    assert is_depthwise8(depthwise(SAME))
    assert not is_depthwise8(depthwise(SAME, groups=3))
    assert not any(is_depthwise8(depthwise(Window((3, 3), dilation=x))) for x in ((1, 2), (2, 1)))


@pytest.mark.parametrize("s, stride", [(2, (1, 1)), (2, (1, 2)), (5, (1, 1))])
def test_filters_in_groups_of_four_columns_and_their_shifts(s, stride):
    """Of a shifted filter the taps are one column later, so that it meets the next result's pixels."""
    shape = depthwise(Window((3, s), stride))
    filters = np.random.default_rng(0).integers(-128, 128, (6, 1, 3, s)).astype("i1")
    packed = pack_depthwise8(shape, filters)
    blocks, _, groups, shifts, lanes, four = packed.shape
    assert (four, lanes, shifts) == (4, shape.lanes, 2 if (s, stride) == (2, (1, 1)) else 1)
    want = np.zeros_like(packed)
    for c in range(6):
        for column in range(s):
            for d in range(shifts):
                want[c // lanes, :, (column + d) // 4, d, c % lanes, (column + d) % 4] = filters[c, 0, :, column]
    np.testing.assert_array_equal(packed, want)


@pytest.mark.parametrize("size, halo, message", [
    ((1, 6, 5, 8), (1, 1, 1, 2), "are not those of"),
    ((1, 7, 5, 9), (1, 1, 1, 2), "are not those of"),
    ((2, 6, 5, 9), (1, 1, 1, 2), "are not those of"),
    ((1, 6, 5, 9), (1, 1, 1, 1), "narrower than"),
    ((1, 6, 5, 9), (0, 1, 1, 2), "narrower than"),
])  # fmt: skip
def test_images_of_another_size_and_narrow_halos_are_refused(size, halo, message):
    shape = depthwise(SAME)
    out, weights = laned(np.zeros((1, 6, 5, 9), "u1"), shape.lanes), ByteWeights(*[Pointer(None)] * 3)
    x = laned(np.zeros(size, "u1"), shape.lanes, halo)
    with pytest.raises(ValueError, match=message):
        depthwise8_calls(shape, out, x, weights, RESULTS["bytes"])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 9, 48])
def test_a_row_of_a_plane_has_words_for_an_even_number_of_results(columns, stride):
    pixels = {i * stride + tap for i in range(columns + columns % 2) for tap in range(3)}
    assert row_words(columns, stride) == -(-(max(pixels) + 1) // 2)


@pytest.mark.parametrize(("columns", "stride", "kernel", "dot", "unpacked"), [
    (2, (1, 1), (3, 3), "halves", True), (1, (1, 1), (3, 3), "halves", False), (9, (1, 1), (3, 2), "halves", False),
    (9, (1, 1), (2, 3), "halves", False), (9, (1, 1), (3, 3), "across", False), (9, (3, 1), (3, 3), "halves", True),
    (9, (4, 1), (3, 3), "halves", False), (9, (1, 2), (3, 3), "halves", True), (9, (1, 3), (3, 3), "halves", False),
    (98, (1, 1), (3, 3), "halves", True), (99, (1, 1), (3, 3), "halves", False), (48, (3, 2), (3, 3), "halves", True),
    (49, (3, 2), (3, 3), "halves", False),
])  # fmt: skip
def test_rows_are_unpacked_once_for_filters_of_three_and_rows_of_at_most_fifty_words(
    columns, stride, kernel, dot, unpacked
):
    target = replace(form("halves"), dot=dot)
    window = Window(kernel, stride)
    width = (columns - 1) * stride[1] + kernel[1]
    shape = ByteShape(8, 30, width, 8, target, window, 8)
    assert shape.result[1] == columns and has_planes(shape) is unpacked


@pytest.mark.parametrize(
    ("columns", "stride", "room"),
    [(25, 1, 14), (26, 1, 14), (27, 1, 26), (49, 1, 26), (50, 1, 26), (51, 1, 50), (12, 2, 14), (13, 2, 26),
     (98, 1, 50)],
)  # fmt: skip
def test_rows_of_planes_have_the_smallest_room_that_fits(columns, stride, room):
    width = (columns - 1) * stride + 3
    shape = replace(ByteShape(8, 9, width, 8, form("halves"), Window((3, 3), (1, stride)), 8), is_unpacked=True)
    x, out = (
        empty_laned((1, 8, 9, width), shape.lanes, dtype="u1"),
        empty_laned((1, 8, 7, columns), shape.lanes, dtype="u1"),
    )
    weights = ByteWeights(*[Pointer(None)] * 3)
    [call] = depthwise8_calls(shape, out, x, weights, Result("u1", fixed="twice", bounded=True)).calls
    assert row_words(columns, stride) <= room and call.kernel.params[:2] == (room, stride)


@pytest.mark.parametrize("name", ["host", "halves", "across", "planes"])
def test_no_images_need_no_call(name):
    target = form("halves" if name == "planes" else name)
    shape = replace(ByteShape(8, 9, 9, 8, target, Window((3, 3)), 8), is_unpacked=name == "planes")
    weights, result = ByteWeights(*[Pointer(None)] * 3), Result("u1", fixed="twice", bounded=True)
    x, out = (empty_laned((1, 8, side, side), shape.lanes, dtype="u1", halo=(0, 0, 0, 1)) for side in (9, 7))
    assert len(depthwise8_calls(shape, out, x, weights, result).calls) == 1
    assert depthwise8_calls(shape, replace(out, n=0), replace(x, n=0), weights, result).calls == ()
