"""Computed filters of convolutions on tiles are packed as constant ones."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_conv.calls import TileLayer, pack_tile_filters
from cgraph.kernels.tile_conv.filter_calls import pack_filters_calls, pairs_nbytes
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from tests.support.images import aligned
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import bfloat16_bits

LAYERS = {  # channels, filters, kernel, plain
    "points": (32, 32, (1, 1), False),
    "3x3 of odd counts": (37, 33, (3, 3), False),
    "few": (5, 7, (2, 3), False),
    "a first layer": (3, 20, (7, 7), True),
    "a wide first layer": (4, 9, (3, 11), True),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", LAYERS.values(), ids=LAYERS)
def test_filters_have_the_bits_of_constants(case, name, order):
    c, k, kernel, is_plain = case
    target = target_named(name)
    layer = TileLayer(ConvShape(c, 12, 14, k, target, Window(kernel), 1, is_plain))
    f = np.random.default_rng(5).standard_normal((k, c, *kernel)).astype("f4")
    want = pack_tile_filters(layer, bfloat16_bits(f))
    for filters in (f, np.ascontiguousarray(f.swapaxes(0, 1)[:, :, ::-1, ::-1])[:, :, ::-1, ::-1].swapaxes(0, 1)):
        out, room = aligned(want.nbytes), aligned(pairs_nbytes(layer))
        out[:], room[:] = 0x77, 0x77
        calls = pack_filters_calls(target, layer, Pointer(out), view_of(filters), Pointer(room))
        run_calls(calls, target, order)
        np.testing.assert_array_equal(out.view("u2"), want.ravel())
