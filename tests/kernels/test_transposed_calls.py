"""Transposed convolutions on tile registers: every stride, phase and tail against NumPy's formula, all bits."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.tile_conv.signature import CHANNELS
from cgraph.kernels.tile_conv.transposed_calls import (
    TileTransposed,
    pack_tile_transposed,
    pack_transposed_calls,
    suits_tile_transposed,
    tile_transposed_calls,
    unpack_tile_transposed,
)
from cgraph.kernels.tile_products.calls import TileSize, pack_columns
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.emulated import TILES, tiles_on
from tests.support.images import assert_zero_frame, empty_laned, laned, plain, workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import PADS, PAIRS, bfloat16_bits, layer_sizes, patch_products

every_target = pytest.mark.parametrize("name", TILES)
SAME = (1, 1, 1, 1)
LAYERS = {
    "one stride": ((33, 7, 9, 20), Window((3, 3), pad=SAME), (0, 0)),
    "halved": ((40, 5, 6, 33), Window((3, 3), (2, 2), SAME), (1, 1)),
    "phases without taps": ((64, 4, 5, 20), Window((1, 1), (3, 2)), (2, 1)),
    "wide": ((16, 2, 37, 40), Window((3, 3), (1, 2), SAME), (0, 1)),
    "flat": ((32, 7, 7, 64), Window((4, 4), (2, 2), SAME), (0, 0)),
    "apart": ((24, 6, 5, 8), Window((3, 3), (2, 2), (2, 2, 2, 2), (2, 2)), (0, 0)),
    "apart across phases": ((16, 6, 7, 17), Window((3, 4), (2, 3), (0, 1, 2, 0), (3, 2)), (1, 0)),
    "padded beyond the filter": ((20, 7, 8, 10), Window((3, 2), (2, 1), (4, 3, 4, 2)), (0, 0)),
    "one pixel": ((70, 1, 1, 40), Window((3, 3), (2, 2), SAME), (1, 1)),
}


def by_formula(shape, x, f):
    """The sums ``[n, k, rows, columns]`` by the formula: a convolution of images with zeros between their pixels, by
    the reversed filters, block of channels after block, tap after tap.
    """
    window, (rows, columns) = shape.window, shape.result
    (down, across), (r, s), (below, beside) = window.stride, window.kernel, window.dilation
    blocks, top, left = -(-shape.c // CHANNELS), r * below, s * beside
    wide = np.zeros((blocks * CHANNELS, shape.k, r, s), "u2")
    wide[: shape.c] = f
    height, width = max(window.pad[0] + rows, down * shape.h), max(window.pad[1] + columns, across * shape.w)
    spread = np.zeros((len(x), blocks * CHANNELS, top + height, left + width), "u2")
    spread[:, : shape.c, top::down, left::across][:, :, : shape.h, : shape.w] = x
    patches, sides = [], []
    for first, i, j in product(range(0, len(wide), CHANNELS), reversed(range(r)), reversed(range(s))):
        row, column = top + window.pad[0] - i * below, left + window.pad[1] - j * beside
        part = spread[:, first : first + CHANNELS, row : row + rows, column : column + columns]
        patches.append(part.transpose(0, 2, 3, 1))
        sides.append(wide[first : first + CHANNELS, :, i, j])
    return patch_products(patches, np.concatenate(sides))


def check(case, target, n=1, order="all", activation=NONE):
    (c, h, w, k), window, more = case
    shape, rng = TransposedShape(c, h, w, k, target, window, more), np.random.default_rng(c + h)
    layer = TileTransposed(shape)
    x, f = (bfloat16_bits(rng.standard_normal(size)) for size in ((n, c, h, w), (c, k, *window.kernel)))
    filters, bias = pack_tile_transposed(layer, f), rng.standard_normal(k).astype("f4")
    assert filters.nbytes == layer.filters_nbytes
    out = empty_laned((n, k, *shape.result), target.lanes, (1, 0, 2, 1))
    epilogue = Epilogue(Pointer(pack_columns(TileSize(c, k, 2), bias)), None, activation)
    calls = tile_transposed_calls(layer, out, laned(x, CHANNELS, layer.halo), Pointer(filters), epilogue)
    run_calls(calls.calls, target, order)
    assert_zero_frame(out)
    want = by_formula(shape, x, f) + bias[:, None, None]
    np.testing.assert_array_equal(plain(out), np.maximum(want, 0) if activation is RELU else want)


@every_target
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_stride_has_the_formulas_bits(layer, name):
    check(layer, tiles_on(name))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layer", ["halved", "flat", "phases without taps"])
def test_any_order_of_tasks(layer, order):
    check(LAYERS[layer], tiles_on("host"), 3, order, RELU)


@settings(max_examples=40, deadline=None)
@given(layer_sizes(6, 20), PAIRS, PAIRS, PADS, PAIRS, st.tuples(*[st.integers(0, 2)] * 2), st.sampled_from(TARGETS))
def test_any_layer(size, kernel, stride, pad, dilation, more, name):
    case = size, Window(kernel, stride, pad, dilation), more
    if min(TransposedShape(*size, tiles_on(name), *case[1:]).result):
        check(case, tiles_on(name))


@every_target
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_filters_are_packed_in_a_run_as_numpy_packs_them(layer, name):
    (c, h, w, k), window, more = layer
    target = tiles_on(name)
    shape = TileTransposed(TransposedShape(c, h, w, k, target, window, more))
    f = np.random.default_rng(3).standard_normal((c, k, *window.kernel)).astype("f4")
    want = pack_tile_transposed(shape, bfloat16_bits(f))
    got, place = np.full(want.shape, 7, "u2"), workspace(shape.pairs_nbytes)
    run_calls(pack_transposed_calls(target, shape, Pointer(got), view_of(f), place.at), target)
    np.testing.assert_array_equal(got, want)
    met = unpack_tile_transposed(shape, want)
    np.testing.assert_array_equal(met, np.where(met, bfloat16_bits(f), 0))
    assert met.all() or min(shape.shape.result) < max(window.stride)


def test_each_tap_belongs_to_one_phase_and_phases_without_taps_have_no_steps():
    (c, h, w, k), window, more = LAYERS["phases without taps"]
    layer = TileTransposed(TransposedShape(c, h, w, k, tiles_on("host"), window, more))
    assert [x.taps for x in layer.phases] == [1, 0, 0, 0, 0, 0] and len(layer.full_phases) == 1
    assert [x.size.steps for x in layer.phases] == [2, 0, 0, 0, 0, 0] and layer.filters_nbytes == 4 * 1024


def test_a_narrow_halo_and_a_residual_are_refused():
    shape = TransposedShape(32, 3, 3, 8, tiles_on("host"), Window((3, 3), (2, 2), SAME), (1, 1))
    layer, out = TileTransposed(shape), empty_laned((1, 8, 6, 6), shape.lanes)
    images = [laned(np.zeros((1, 32, 3, 3), "u2"), CHANNELS, halo) for halo in ((0, 0, 1, 0), layer.halo)]
    at = Pointer(np.zeros(layer.filters_nbytes, "u1"))
    with pytest.raises(ValueError, match=r"a halo of \(0, 0, 1, 0\) is narrower than \(0, 0, 1, 1\)"):
        tile_transposed_calls(layer, out, images[0], at, Epilogue())
    with pytest.raises(ValueError, match="adds no residual"):
        tile_transposed_calls(layer, out, images[1], at, Epilogue(at, out))


def test_layers_of_few_pixels_or_channels_of_groups_or_in_float64_use_no_tiles():
    window = Window((3, 3), (2, 2), SAME)
    shape = lambda *size, **more: TransposedShape(*size, tiles_on("host"), **{"window": window, **more})  # noqa: E731
    assert suits_tile_transposed(shape(4, 2, 3, 8)) and suits_tile_transposed(shape(16, 2, 2, 8, window=Window()))
    assert not suits_tile_transposed(shape(3, 4, 4, 8)) and not suits_tile_transposed(shape(64, 1, 3, 8))
    assert not suits_tile_transposed(shape(64, 4096, 4097, 64))  # tables of int32 number the elements
    assert not suits_tile_transposed(shape(15, 2, 2, 8, window=Window()))
    assert not suits_tile_transposed(shape(32, 4, 4, 32, groups=2))
    assert not suits_tile_transposed(shape(32, 4, 4, 32, dtype="f8"))
    assert not suits_tile_transposed(shape(32, 1, 4, 32, window=Window(pad=SAME)))


def test_the_bounds_at_which_tiles_begin_and_end():
    """By the pixels of the first phase, and by the taps of the phase that has most."""
    window = Window((2, 2), (2, 2))
    shape = lambda *size, **more: TransposedShape(*size, tiles_on("host"), **{"window": window, **more})  # noqa: E731
    assert suits_tile_transposed(shape(16, 2048, 2048, 8)) and not suits_tile_transposed(shape(16, 2048, 2049, 8))
    assert suits_tile_transposed(shape(16, 2, 2, 8)) and not suits_tile_transposed(shape(16, 1, 3, 8))
    assert not suits_tile_transposed(shape(15, 2, 2, 8))
    uneven = Window((3, 3), (2, 2), SAME)  # phases of one tap, of two, of two and of four
    assert suits_tile_transposed(shape(4, 4, 4, 8, window=uneven))
    assert not suits_tile_transposed(shape(3, 4, 4, 8, window=uneven))
    assert not suits_tile_transposed(shape(64, 0, 4, 8, window=Window((1, 1))))


def test_no_images_need_no_call():
    shape = TransposedShape(32, 3, 3, 8, tiles_on("host"), Window((3, 3), (2, 2), SAME), (1, 1))
    layer = TileTransposed(shape)
    out, x = empty_laned((1, 8, 6, 6), shape.lanes), laned(np.zeros((1, 32, 3, 3), "u2"), CHANNELS, layer.halo)
    at = Pointer(np.zeros(layer.filters_nbytes, "u1"))
    assert len(tile_transposed_calls(layer, out, x, at, Epilogue(at)).calls) == 4
    assert tile_transposed_calls(layer, replace(out, n=0), replace(x, n=0), at, Epilogue(at)).calls == ()


@pytest.mark.parametrize("near", [1, 100 << 10])
@pytest.mark.parametrize("layer", ["halved", "wide", "flat"])
def test_groups_of_tiles_in_several_blocks(layer, near, monkeypatch):
    monkeypatch.setattr("cgraph.kernels.tile_conv.calls.NEAR_INPUT", near)
    for order in ("all", "single"):
        check(LAYERS[layer], tiles_on("host"), 3, order)
