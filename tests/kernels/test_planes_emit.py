"""Depthwise convolutions by planes of unpacked rows: exact for both strides, odd rows, any order."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import ByteShape, ByteWeights
from cgraph.kernels.conv8.packed_weights import pack_scale, pack_start
from cgraph.kernels.depthwise8.calls import ROOMS, depthwise8_calls, halo8, has_planes, pack_depthwise8, row_words
from cgraph.kernels.depthwise8.planes_emit import Tile
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_columns_emit import RESULTS
from tests.kernels.test_conv8 import SAME, empty_laned_of, form, framed, interior_of, meaning, scales_of
from tests.support.images import buffer, conv64, interior, plain
from tests.support.kernels import ORDERS, run_calls

pytestmark = pytest.mark.usefixtures("cuts")

HALVES = form("halves")
WINDOWS = {
    "stride 1": SAME,
    "stride 2": Window((3, 3), (2, 2), (0, 0, 1, 1)),
    "stride 3 and 1": Window((3, 3), (3, 1), (1, 2, 0, 1)),
    "stride 1 and 2": Window((3, 3), (1, 2), (2, 1, 2, 1)),
}


def check(c, h, w, window, result, order="all"):
    rng = np.random.default_rng(7)
    shape = replace(ByteShape(c, h, w, c, HALVES, window, c), is_unpacked=True)
    assert has_planes(shape)
    x, f = rng.integers(0, 256, (2, c, h, w)).astype("u1"), rng.integers(-128, 128, (c, 1, 3, 3)).astype("i1")
    bias, zero = rng.integers(-1000, 1000, c).astype("i4"), 131
    scale = scales_of(rng, c, 9, result)
    sums = conv64(x.astype("i8") - zero, f, window, c).astype("i8") + bias[:, None, None]
    start = (bias - zero * f.astype("i8").sum((1, 2, 3))).astype("i4")
    out = empty_laned_of(sums.shape, shape.lanes, "u1", (1, 0, 2, 1))
    before = buffer(out).copy()
    arrays = pack_depthwise8(shape, f), pack_start(shape, start, scale, result), pack_scale(shape, scale, result)
    source = framed(x, shape.lanes, halo8(shape, window), zero)
    run_calls(depthwise8_calls(shape, out, source, ByteWeights(*map(Pointer, arrays)), result).calls, HALVES, order)
    np.testing.assert_array_equal(plain(out), meaning(sums, scale, result))
    interior(out)[...] = interior_of(before, out)
    np.testing.assert_array_equal(buffer(out), before)  # the frame is as it was


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS.keys())
def test_sums_are_those_of_int64(window, result):
    for c, h, w in ((5, 7, 8), (8, 3, 7), (1, 4, 5), (4, 9, 30)):
        check(c, h, w, window, result)


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_blocks(order):
    check(10, 6, 7, SAME, RESULTS["twice"], order)


def test_the_stack_has_room_for_the_words_that_two_neighbouring_results_read():
    assert [row_words(columns, 1) for columns in (2, 3, 5, 6)] == [2, 3, 4, 4]
    assert [row_words(columns, 2) for columns in (2, 3, 4)] == [3, 5, 5]

    def planes(w, window=SAME, target=HALVES):
        return has_planes(ByteShape(4, 9, w, 4, target, window, 4))

    assert planes(2) and planes(2 * ROOMS[-1] - 2) and not planes(2 * ROOMS[-1]) and not planes(1)
    assert not any(planes(20, window) for window in (Window((3, 5)), Window((3, 3), (4, 1)), Window((3, 3), (1, 3))))
    assert not planes(20, target=form("across"))


def test_filters_are_packed_without_gaps():
    f = np.arange(5 * 9).reshape(5, 1, 3, 3).astype("i1")
    packed = pack_depthwise8(replace(ByteShape(5, 9, 9, 5, HALVES, SAME, 5), is_unpacked=True), f)
    assert packed.shape == (8, 3, 3) and packed[:5].ravel().tolist() == f.ravel().tolist() and not packed[5:].any()
    assert Tile(14, 2, False, "once", False, True).plane == 3 * 14
