"""Pixels that are unpacked once for all filters: exact for all windows, first layers, odd rows, rows of matrices."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import ROOMS, ByteShape, ByteWeights, MatrixRows, Result, conv8_calls, turns_of
from cgraph.kernels.conv8.columns_emit import Tile
from cgraph.kernels.conv8.columns_signature import ROWS as COLUMN_ROWS
from cgraph.kernels.conv8.packed_weights import (
    column_numbers,
    join_halves,
    pack_conv8,
)
from cgraph.kernels.depthwise8.calls import halo8
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_conv8 import SAME, empty_laned_of, form, framed, interior_of, meaning, scales_of
from tests.support.images import buffer, conv64, empty_laned, interior, plain
from tests.support.kernels import ORDERS, run_calls

pytestmark = pytest.mark.usefixtures("cuts")

HALVES = form("halves")
# n, c, h, w, k, window, is_plain
CASES = {
    "point, even row": (2, 8, 1, 4, 12, Window(), False),
    "point, odd rows, unused channels": (2, 21, 5, 3, 9, Window(), False),
    "3x3, odd columns": (1, 16, 7, 9, 8, SAME, False),
    "3x3 with strides": (1, 6, 9, 8, 10, Window((3, 3), (2, 1), (1, 0, 1, 1)), False),
    "dilated": (1, 12, 9, 9, 5, Window((3, 2), (1, 2), (2, 2, 2, 2), (2, 3)), False),
    "long rows of a window": (1, 4, 3, 13, 7, Window((1, 9), pad=(0, 4, 0, 4)), False),
    "one channel, four taps in a word": (2, 1, 9, 7, 16, Window((10, 4), (2, 2), (4, 1, 5, 1)), True),
    "one channel, words of seven taps": (1, 1, 8, 9, 6, Window((3, 7), (1, 1), (1, 3, 1, 3)), True),
    "one channel, dilated": (1, 1, 8, 9, 6, Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2)), True),
    "three channels": (1, 3, 8, 8, 8, Window((3, 3), (2, 2), (0, 0, 1, 1)), True),
}
RESULTS = {
    "twice": Result("u1", 120, fixed="twice", bounded=True),
    "once, clipped": Result("u1", 20, 20, 240, fixed="once", bounded=True),
    "twice, clipped": Result("u1", 200, 9, 220, fixed="twice", bounded=True),
}


def drawn(rng, case, extreme):
    """Images, filters without -128, and biases."""
    n, c, h, w, k, window, _ = case
    x = rng.integers(0, 256, (n, c, h, w)).astype("u1")
    f = rng.integers(-127, 128, (k, c, *window.kernel)).astype("i1")
    f[0, :] = -127
    if extreme:
        x[:], f[::2], f[1::2] = 255, 127, -127
    return x, f, rng.integers(-1000, 1000, k).astype("i4")


def check(case, result, zero=131, order="all", extreme=False):
    rng = np.random.default_rng(3)
    _, c, h, w, k, window, is_plain = case
    x, f, bias = drawn(rng, case, extreme)
    shape = replace(ByteShape(c, h, w, k, HALVES, window, 1, is_plain), is_unpacked=True)
    assert shape.has_columns
    scale = scales_of(rng, k, f[0].size, result)
    sums = conv64(x.astype("i8") - zero, f, window, 1).astype("i8") + bias[:, None, None]
    assert (np.abs(sums) < 1 << 23).all() or extreme
    start = (bias - zero * f.astype("i8").sum((1, 2, 3))).astype("i4")
    numbers = column_numbers(shape, f, start, scale, result.fixed == "once")
    out = empty_laned_of(sums.shape, shape.lanes, "u1", (1, 0, 2, 1))
    before = buffer(out).copy()
    weights = ByteWeights(*map(Pointer, (join_halves(pack_conv8(shape, f)), numbers, numbers)))
    lowered = conv8_calls(shape, out, framed(x, shape.source_lanes, halo8(shape, window), zero), weights, result)
    run_calls(lowered.calls, HALVES, order)
    np.testing.assert_array_equal(plain(out), meaning(sums, scale, result))
    interior(out)[...] = interior_of(before, out)
    np.testing.assert_array_equal(buffer(out), before)  # the frame is as it was


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sums_are_those_of_int64(case, result):
    check(case, result)


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_strips(order):
    check(CASES["3x3, odd columns"], RESULTS["twice"], order=order)


@pytest.mark.parametrize("zero", [0, 255])
def test_the_largest_sums_wrap_to_the_right_ones(zero):
    check((1, 256, 1, 4, 8, Window(), False), RESULTS["twice"], zero, extreme=True)


@pytest.mark.parametrize("m", [2, 5])
def test_rows_of_a_matrix_end_at_the_last_channel(m):
    rng, k, n = np.random.default_rng(4), 20, 7
    shape, result = replace(ByteShape(k, 1, m, n, HALVES), is_unpacked=True), RESULTS["twice"]
    x, w = rng.integers(0, 256, (m, k)).astype("u1"), rng.integers(-127, 128, (n, k, 1, 1)).astype("i1")
    scale, start = scales_of(rng, n, k, result), np.zeros(n, "i4")
    numbers = column_numbers(shape, w, start, scale, False)
    weights = ByteWeights(*map(Pointer, (join_halves(pack_conv8(shape, w)), numbers, numbers)))
    out = np.full((m, n + 3), 9, "u1")
    pixels = framed(x.T.reshape(1, k, 1, m), shape.lanes, (0, 0, 0, 0), 0)
    run_calls(conv8_calls(shape, MatrixRows(Pointer(out), 0, n + 3), pixels, weights, result).calls, HALVES)
    sums = x.astype("i8") @ w[:, :, 0, 0].T.astype("i8")
    np.testing.assert_array_equal(out[:, :n], meaning(sums.T[None, :, None], scale, result)[0, :, 0].T)
    assert (out[:, n:] == 9).all()


def test_few_words_and_several_of_both_sides_are_unpacked():
    def has_columns(c=8, w=4, k=8, groups=1, target=HALVES):
        return ByteShape(c, 1, w, k, target, Window(), groups).has_columns

    assert has_columns() and has_columns(4 * ROOMS[-1])
    assert not any((has_columns(4 * ROOMS[-1] + 1), has_columns(w=1), has_columns(k=4), has_columns(groups=2)))
    assert not has_columns(target=form("across")) and not has_columns(target=form("portable"))
    assert [turns_of(words) for words in (1, 2, 3, 5, 6, 8, 9, 10, 14)] == [1, 2, 3, 5, 3, 4, 3, 5, 2]
    assert Tile(16, 1, 4, 4, 4, "once", False, False, True).room == 16


@pytest.mark.parametrize(("c", "w", "k", "groups", "dot", "fits"), [
    (64, 9, 8, 1, "halves", True), (68, 9, 8, 1, "halves", False), (64, 9, 5, 1, "halves", True),
    (64, 9, 4, 1, "halves", False), (64, 4, 8, 1, "halves", True), (64, 3, 8, 1, "halves", False),
    (8, 9, 8, 2, "halves", False), (8, 9, 8, 1, "across", False), (8, 9, 8, 1, "plain", False),
])  # fmt: skip
def test_pixels_of_at_most_144_words_are_unpacked_once_for_several_results_and_filters(c, w, k, groups, dot, fits):
    shape = ByteShape(c, 9, w, k, replace(HALVES, dot=dot), Window((3, 3)), groups)
    assert shape.has_columns is fits and (shape.words == c // 4 * 9 or groups > 1)


@pytest.mark.parametrize(("words", "room"), [(1, 16), (16, 16), (17, 72), (72, 72), (73, 144), (144, 144)])
@pytest.mark.parametrize(("rows", "columns", "height"), [(5, 3, 2), (5, 4, 1), (1, 3, 1), (2, 3, 2)])
def test_pixels_have_the_smallest_room_that_fits_and_odd_rows_go_in_pairs(words, room, rows, columns, height):
    shape = replace(ByteShape(4 * words, rows + 1, columns, 8, HALVES, Window((2, 1))), is_unpacked=True)
    shape = replace(shape, window=Window(), h=rows)
    x = empty_laned((3, 4 * words, rows, columns), shape.lanes, (0, 0, 1, 0), "u1")
    out = empty_laned((3, 8, rows, columns), shape.lanes, (0, 0, 1, 0), "u1")
    [call] = conv8_calls(shape, out, x, ByteWeights(*[Pointer(None)] * 3), RESULTS["twice"]).calls
    assert shape.words == words and call.kernel.params[0] == room
    assert call.tasks == 3 * -(-rows // height)
    args = dict(zip(COLUMN_ROWS.args, call.args))
    assert (args["height"], args["strips"]) == (height, -(-rows // height))
