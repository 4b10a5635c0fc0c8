"""The gradient for filters on tiles: the bits of NumPy's formula, and what a convolution's gradient means."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_conv import filter_grad_calls
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad, tile_filter_grad_calls
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from tests.kernels.test_filter_grad import filter_grad64
from tests.support.emulated import TILES, tiles_on
from tests.support.images import aligned, laned
from tests.support.kernels import ORDERS, run_calls, view_of
from tests.support.tiles import STEP, bfloat16_bits, floats_of, products
from tests.support.tolerance import assert_near

SAME = Window((3, 3), pad=(1, 1, 1, 1))
CASES = {  # n, c, h, w, k, window
    "3x3": (2, 5, 6, 7, 7, SAME),
    "points": (3, 18, 4, 5, 33, Window()),
    "points with a stride": (2, 9, 7, 6, 20, Window((1, 1), (2, 2))),
    "stride": (2, 8, 9, 8, 16, Window((3, 3), (2, 2), (1, 1, 1, 1))),
    "stride and dilation": (1, 4, 13, 12, 6, Window((3, 2), (2, 3), (2, 1, 0, 1), (2, 1))),
    "one pixel": (3, 8, 1, 1, 30, Window()),
    "several parts": (5, 8, 6, 6, 8, SAME),
    "first layer": (3, 3, 12, 11, 16, Window((7, 7), (2, 2), (3, 3, 3, 3))),
    "padded beyond the image": (2, 2, 4, 3, 8, Window((3, 5), (2, 3), (0, 4, 1, 2), (2, 2))),
}


def operands(case):
    n, c, h, w, k, window = case
    rng = np.random.default_rng(6)
    return rng.standard_normal((n, c, h, w)).astype("f4"), rng.standard_normal((n, k, *window.result(h, w))).astype(
        "f4"
    )


def computed(case, name, is_plain, order="all", halo=None):
    n, c, h, w, k, window = case
    target = tiles_on(name)
    shape = ConvShape(c, h, w, k, target, window, 1, is_plain)
    plan = TileFilterGrad(shape, n)
    x, g = operands(case)
    out = np.full((c, k, *window.kernel), np.nan, "f4").swapaxes(0, 1)
    room = aligned(plan.nbytes)
    room[:] = 0xFF
    images = view_of(x) if is_plain else laned(x, shape.lanes, halo or window.halo(h, w))
    gradients = laned(g, shape.lanes, (1, 0, 0, 1))
    run_calls(tile_filter_grad_calls(target, plan, view_of(out), images, gradients, Pointer(room)), target, order)
    return plan, out


def formula(plan, x, g):
    """The bits of tile registers: each part's sums over its pixels, in steps of 32, then the sums of parts."""
    window, (rows, columns), (p, q), each = plan.shape.window, plan.raster, plan.shape.result, plan.cut.images
    top, left, bottom, right = window.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom + window.extent[0]), (left, right + window.extent[1])))

    def pixels(images):
        """The bits of channels by pixels, with zeros where there is no result."""
        wide = np.zeros((*images.shape[:2], rows, columns), "f4")
        wide[:, :, :p, :q] = images
        flat = wide.swapaxes(0, 1).reshape(images.shape[1], -1)
        return bfloat16_bits(np.pad(flat, ((0, 0), (0, -flat.shape[1] % STEP))))

    def tap(first, i, j):
        starts = i * window.dilation[0], j * window.dilation[1]
        images = padded[first : first + each, :, starts[0] :: window.stride[0], starts[1] :: window.stride[1]]
        return products(pixels(images[:, :, :p, :q]), pixels(g[first : first + each]).T)

    total = np.float32(0)
    for first in range(0, len(x), each):
        taps = np.stack([tap(first, i, j) for i, j in np.ndindex(window.kernel)])
        total = total + taps.reshape(*window.kernel, *taps.shape[1:]).transpose(3, 2, 0, 1)
    return total


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("is_plain", [False, True], ids=["blocked", "plain"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_have_the_bits_of_the_formula_in_any_order_of_tasks(case, is_plain, name, monkeypatch):
    monkeypatch.setattr("cgraph.kernels.filter_grad.calls.PART_NBYTES", 5000)
    window, results = case[5], []
    halo = tuple(side + 1 for side in window.halo(*case[2:4]))
    for order in ORDERS:
        plan, out = computed(case, name, is_plain, order, halo if order == "single" else None)
        results.append(out)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    x, g = operands(case)
    np.testing.assert_array_equal(results[0], formula(plan, x, g))
    exact = filter_grad64(*(floats_of(bfloat16_bits(y)) for y in (x, g)), window)
    assert_near(results[0], exact, "gradient of filters", (case[0] * np.prod(g.shape[2:])) ** 0.5)


def test_images_are_cut_into_parts_and_phases(monkeypatch):
    plan = TileFilterGrad(ConvShape(8, 6, 6, 8, target_named("host"), SAME), 5)
    assert plan.cut.parts == 1 and plan.phases == ((0, 0),) and plan.raster == (8, 8) and plan.pixels == 320
    monkeypatch.setattr("cgraph.kernels.filter_grad.calls.PART_NBYTES", 5000)
    assert (plan.cut.parts, plan.cut.images, plan.pixels) == (3, 2, 128)
    strided = TileFilterGrad(ConvShape(8, 9, 8, 16, target_named("host"), CASES["stride"][5]), 2)
    assert strided.phases == ((0, 0), (0, 1), (1, 0), (1, 1)) and strided.reach == (1, 1)
    assert TileFilterGrad(ConvShape(9, 7, 6, 20, target_named("host"), Window((1, 1), (2, 2))), 2).phases == ((0, 0),)


def test_taps_across_plain_images_are_channels():
    shape = ConvShape(3, 12, 11, 16, target_named("host"), CASES["first layer"][5], 1, True)
    plan = TileFilterGrad(shape, 2)
    assert plan.layer.c == 21 and plan.layer.window.kernel == (7, 1) and plan.layer.result == shape.result == (6, 6)
    assert plan.phases == ((0, 0), (1, 0)) and plan.raster == (9, 6) and plan.sums_shape == (7, 1, 1, 21, 16)


@pytest.mark.parametrize("added", [1, 2, 3])
@pytest.mark.parametrize("is_plain", [False, True], ids=["blocked", "plain"])
def test_sums_of_more_parts_than_are_added_at_once(is_plain, added, monkeypatch):
    """The same bits: from the first part to the last."""
    case = (7, *CASES["several parts"][1:])
    monkeypatch.setattr("cgraph.kernels.filter_grad.calls.PART_NBYTES", 5000)
    plan, whole = computed(case, "host", is_plain)
    assert plan.cut.parts > 3
    monkeypatch.setattr(filter_grad_calls, "ADDED", added)
    np.testing.assert_array_equal(computed(case, "host", is_plain)[1], whole)
