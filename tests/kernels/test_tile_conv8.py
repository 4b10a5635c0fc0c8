"""Convolutions of bytes on tile registers against their meaning in int64: exact, in every layout of result and
residual.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, Join, Result
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.tile_conv.calls import (
    PIXEL,
    TileLayer,
    join_blocks_calls,
    pack_tile_filters,
    tile_conv8_calls,
    unpack_tile_filters,
)
from cgraph.kernels.tile_products.calls import pack_columns
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_conv8 import RESULTS, empty_laned_of, framed, interior_of, meaning, scales_of
from tests.support.emulated import TILES, tiles_on
from tests.support.images import buffer, conv64, empty_laned, interior, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls
from tests.support.tiles import room_for

every_target = pytest.mark.parametrize("name", TILES)
LANES = 64  # of a block of bytes
SAME = Window((3, 3), pad=(1, 1, 1, 1))
# c, h, w, k, window
LAYERS = {
    "point": (40, 6, 7, 33, Window()),
    "many channels": (130, 5, 5, 100, Window()),
    "three": (33, 7, 9, 20, SAME),
    "wide": (8, 3, 37, 40, SAME),
    "halved": (70, 9, 9, 32, Window((3, 3), (2, 2), (1, 1, 1, 1))),
    "uneven": (20, 9, 12, 10, Window((2, 5), (3, 1), (1, 3, 0, 2), (2, 1))),
    "one pixel": (96, 1, 1, 40, Window()),
}
FIRST = {
    "seven": (3, 20, 21, 40, Window((7, 7), (2, 2), (3, 3, 3, 3))),
    "one channel": (1, 9, 8, 16, Window((5, 5), pad=(2, 2, 2, 2))),
    "long": (4, 8, 40, 8, Window((2, 19), (1, 3), (1, 0, 0, 4), (2, 1))),
}
BYTES = Result("u1", 120)
JOINED = Result("u1", 7, 7, 255, Join(0.031, -90, 165, 0.0473, 0.029, 140))


def check(size, target, result=BYTES, lanes=LANES, beside_lanes=0, n=1, is_plain=False, order="all", in_place=False):
    """Compute a layer; a result or a residual has `lanes` channels in a block, which is a multiple of a vector's."""
    c, h, w, k, window = size
    rng, zero = np.random.default_rng(c + w), 131
    shape = ByteShape(c, h, w, k, target, window, 1, is_plain)
    layer = TileLayer(shape)
    x = rng.integers(0, 256, (n, c, h, w)).astype("u1")
    f = rng.integers(-128, 128, (k, c, *window.kernel)).astype("i1")
    packed = pack_tile_filters(layer, f)
    np.testing.assert_array_equal(unpack_tile_filters(layer, packed), f)
    bias = rng.integers(-1000, 1000, k).astype("i4")
    scale = scales_of(rng, k, f[0].size, result)
    sums = conv64(x.astype("i8") - zero, f, window).astype("i8") + bias[:, None, None]
    start = (bias - zero * f.astype("i8").sum((1, 2, 3))).astype("i4")
    residual = rng.integers(0, 256, sums.shape).astype("u1") if beside_lanes else None
    beside = None if residual is None else laned(residual, beside_lanes, (1, 0, 2, 1) if in_place else (0, 1, 1, 2))
    out = beside if in_place else empty_laned_of(sums.shape, lanes, result.dtype, (1, 0, 2, 1))
    before = buffer(out).copy()
    numbers = ByteWeights(*map(Pointer, (packed, pack_columns(layer.size, start), pack_columns(layer.size, scale))))
    images, place = framed(x, layer.lanes, layer.halo, zero), room_for(layer, n)
    calls = tile_conv8_calls(layer, out, images, numbers, result, beside, place)
    run_calls(calls.calls, target, order)
    np.testing.assert_array_equal(plain(out), meaning(sums, scale, result, residual))
    interior(out)[...] = interior_of(before, out)
    np.testing.assert_array_equal(buffer(out), before)  # the frame is as it was


@every_target
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_window(layer, name):
    check(layer, tiles_on(name))


@every_target
@pytest.mark.parametrize("layer", FIRST.values(), ids=FIRST)
def test_first_layers_read_neighbouring_pixels_of_four_channels(layer, name):
    check(layer, tiles_on(name), n=2, is_plain=True)


@every_target
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_results_are_those_of_other_convolutions(result, name):
    target = tiles_on(name)
    check(LAYERS["three"], target, replace(result, bounded=False), LANES if result.dtype == "u1" else target.lanes)


@every_target
@pytest.mark.parametrize("beside", ["wide", "narrow", "in place"])
def test_residuals_in_blocks_of_each_size(beside, name):
    target = tiles_on(name)
    for layer in ("three", "wide", "many channels"):
        lanes = target.lanes if beside == "narrow" else LANES
        check(LAYERS[layer], target, JOINED, LANES, lanes, 2, in_place=beside == "in place")
        check(LAYERS[layer], target, JOINED, target.lanes, lanes, 2, in_place=False)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layer", ["three", "wide", "many channels"])
def test_any_order_of_tasks(layer, order):
    check(LAYERS[layer], tiles_on("host"), n=3, order=order)
    check(LAYERS[layer], tiles_on("host"), JOINED, beside_lanes=LANES, n=3, order=order, in_place=True)


sizes = st.tuples(st.integers(1, 140), st.integers(1, 12), st.integers(1, 40), st.integers(1, 140))
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
pads = st.tuples(*[st.integers(0, 3)] * 4)


@settings(max_examples=40, deadline=None)
@given(sizes, pairs, pairs, pads, pairs, st.sampled_from(TARGETS), st.booleans())
def test_any_layer(size, kernel, stride, pad, dilation, name, is_plain):
    window = Window(kernel, stride, pad, (dilation[0], 1) if is_plain else dilation)
    size = (min(size[0], PIXEL), *size[1:]) if is_plain else size
    if min(window.result(*size[1:3])):
        check((*size, window), tiles_on(name), is_plain=is_plain)


@pytest.mark.parametrize("order", ORDERS)
@every_target
@pytest.mark.parametrize("c", [5, 64, 150])
def test_blocks_are_joined(c, name, order):
    target = tiles_on(name)
    numbers = np.random.default_rng(c).integers(0, 256, (2, c, 13, 14)).astype("u1")
    x, out = laned(numbers, target.lanes, (0, 1, 2, 0)), empty_laned(numbers.shape, LANES, (1, 1, 1, 1), "u1")
    before = buffer(out).copy()
    run_calls(join_blocks_calls(out, x).calls, target, order)
    np.testing.assert_array_equal(plain(out), numbers)
    interior(out)[...] = interior_of(before, out)
    np.testing.assert_array_equal(buffer(out), before)
