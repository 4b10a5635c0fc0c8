"""Pixels a stride apart: each tap finds in the gathered images what it reads in the images, in any order of tasks."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.tile_conv.calls import TileLayer
from cgraph.kernels.tile_conv.stride_phases import AxisPhases, StridePhases
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from tests.support.emulated import TILES, tiles_on
from tests.support.kernels import ORDERS, run_calls

CHANNELS = 32
CASES = {  # n, c, h, w, window
    "three": (2, 40, 9, 8, Window((3, 3), (2, 2), (1, 1, 1, 1))),
    "a point": (1, 64, 7, 10, Window(stride=(2, 2))),
    "uneven": (3, 20, 13, 12, Window((2, 5), (3, 2), (1, 3, 0, 2), (2, 1))),
    "a stride beyond the window": (1, 32, 11, 12, Window((2, 1), (4, 5))),
    "one axis": (2, 33, 8, 9, Window((3, 3), (1, 2), (1, 1, 1, 1))),
    "taps of one phase": (1, 32, 12, 9, Window((3, 3), (2, 2), dilation=(2, 4))),
    "one pixel": (1, 32, 3, 3, Window((3, 3), (2, 2))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_tap_reads_its_pixels(case, name, order):
    n, c, h, w, window = case
    target = tiles_on(name)
    shape = ConvShape(c, h, w, 8, target, window)
    phases, layer = StridePhases(shape), TileLayer(shape)
    top, left, bottom, right = halo = tuple(side + 1 for side in layer.halo)
    blocks = -(-c // CHANNELS)
    x = np.random.default_rng(h).integers(0, 1 << 16, (n, blocks, h + top + bottom, w + left + right, CHANNELS), "u2")
    out = np.full(n * phases.image(blocks), 0xFF, "u1")
    images = BlockedView(Pointer(x), n, c, h, w, CHANNELS, halo, dtype="V2")
    run_calls(phases.calls(Pointer(out), images), target, order)
    bits, (rows, columns), (down, across) = out.view("u2"), shape.result, window.stride
    for image, (block, r, s) in ((image, step) for image in range(n) for step in layer.steps):
        start = image * phases.image(blocks) + phases.offset(blocks, (block, r, s))
        plane = np.lib.stride_tricks.as_strided(
            bits[start // 2 :], (rows, columns, CHANNELS), (phases.raster[1] * 64, 64, 2)
        )
        y, z = top - window.pad[0] + r * window.dilation[0], left - window.pad[1] + s * window.dilation[1]
        np.testing.assert_array_equal(plane, x[image, block, y:, z:][::down, ::across][:rows, :columns])


def test_phases_of_an_axis_are_the_remainders_of_its_taps():
    three = AxisPhases(kernel=3, stride=2, dilation=1, result=7)
    assert three.phases == (0, 1) and [three.place(tap) for tap in range(3)] == [(0, 0), (1, 0), (0, 1)]
    assert (three.count(0), three.count(1), three.length) == (8, 7, 8)
    assert AxisPhases(kernel=3, stride=2, dilation=2, result=4).phases == (0,)


@pytest.mark.parametrize(
    ("columns", "stride", "is_plain", "gathers"),
    [(31, (2, 2), False, True), (33, (2, 2), False, False), (16, (1, 1), False, False), (15, (2, 2), True, False)],
)
def test_narrow_results_of_strides_are_gathered(columns, stride, is_plain, gathers):
    c = 3 if is_plain else 64
    window = Window((3, 3), stride, (1, 1, 1, 1))
    layer = TileLayer(ConvShape(c, 20, columns, 8, tiles_on("host"), window, 1, is_plain))
    assert (layer.phases is not None) == gathers and (layer.nbytes(2) > 0) == gathers
    assert layer.nbytes(2) == (2 * layer.phases.image(2) if gathers else 0)
