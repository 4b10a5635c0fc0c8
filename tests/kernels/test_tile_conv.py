"""Convolutions on tile registers: every window, tail and layout against NumPy's formula, all bits, in any order."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, leaky
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv8.calls import ByteWeights, Result
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.tile_conv import calls
from cgraph.kernels.tile_conv.calls import (
    MANY_WEIGHTS,
    PIXEL,
    TileLayer,
    join_blocks_calls,
    pack_tile_filters,
    pixel_tiles,
    round_pixels_calls,
    suits_tile_conv,
    tile_conv8_calls,
    tile_conv_calls,
    tiles_of_image,
    tiles_of_rows,
    unpack_tile_filters,
)
from cgraph.kernels.tile_conv.signature import CHANNELS
from cgraph.kernels.tile_products.calls import pack_columns, unpack_tiles
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.emulated import TILES, tiles_on
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import PADS, PAIRS, bfloat16_bits, floats_of, layer_sizes, patch_products, room_for

every_target = pytest.mark.parametrize("name", TILES)
SAME = (1, 1, 1, 1)
BYTES = Result("u1", 120)


class Images:
    """Images ``[n, c, h, w]`` in memory: float32 or bfloat16 numbers in blocks of channels, with a halo."""

    def __init__(self, x, lanes, dtype, halo, fill=0.0):
        n, c, h, w = x.shape
        top, left, bottom, right = halo
        shape = (n, -(-c // lanes), h + top + bottom, w + left + right, lanes)
        self.array = np.full(shape, fill, "f4")
        blocks = np.zeros((n, shape[1] * lanes, h, w), "f4")
        blocks[:, :c] = x
        self.inner = (slice(None), slice(None), slice(top, top + h), slice(left, left + w))
        self.array[self.inner] = blocks.reshape(n, -1, lanes, h, w).transpose(0, 1, 3, 4, 2)
        if dtype == "V2":
            self.array = bfloat16_bits(self.array)
        self.view = BlockedView(Pointer(self.array), n, c, h, w, lanes, halo, dtype=dtype)

    def plain(self):
        """All lanes of all blocks, as float32."""
        inside = self.array[self.inner]
        inside = floats_of(inside) if inside.dtype == "u2" else inside
        n, blocks, h, w, lanes = inside.shape
        return inside.transpose(0, 1, 4, 2, 3).reshape(n, blocks * lanes, h, w)

    def frame(self):
        """Everything but the pixels."""
        array = self.array.copy()
        array[self.inner] = 0
        return array


def windows_of(layer, bits, filters):
    """The sums ``[n, k, rows, columns]`` by the formula, for bits of padded images ``[n, blocks, h, w, lanes]``."""
    window, (rows, columns) = layer.shape.window, layer.shape.result
    patches = []
    for block, r, s in layer.steps:
        for tap in range(layer.taps):
            top = r * window.dilation[0]
            left = (s + tap) * window.dilation[1] if layer.taps == 1 else s + tap
            down = bits[:, block, top:, left:][:, :: window.stride[0], :: window.stride[1]]
            patches.append(down[:, :rows, :columns])
    return patch_products(patches, unpack_tiles(layer.size, filters))


def activated(y, activation):
    y = np.where(y < 0, y * np.float32(activation.slope), y)
    return np.maximum(np.minimum(y, np.float32(activation.high)), np.float32(activation.low))


class Case:
    """A layer with its operands and what it must store."""

    def __init__(
        self, size, window, target, n=1, result="f4", halo=(0,) * 4, residual="", activation=NONE, plain=False
    ):
        c, h, w, k = size
        rng = np.random.default_rng(c + h)
        numbers = lambda *shape: rng.standard_normal(shape).astype("f4")  # noqa: E731
        shape = ConvShape(c, h, w, k, target, window, 1, plain)
        self.layer = layer = TileLayer(shape)
        lanes = {"f4": target.lanes, "V2": CHANNELS}
        self.x = Images(numbers(n, c, h, w), layer.lanes, "V2", layer.halo)
        filters = bfloat16_bits(numbers(k, c, *window.kernel))
        self.filters, self.bias = pack_tile_filters(layer, filters), numbers(k)
        np.testing.assert_array_equal(unpack_tile_filters(layer, self.filters), filters)
        rows, columns = shape.result
        self.out = Images(np.full((n, k, rows, columns), 7, "f4"), lanes[result], result, halo, 7.0)
        self.beside = None
        if residual:
            beside = numbers(n, k, rows, columns)
            in_place = residual == "in place"
            dtype = result if in_place else residual
            self.beside = Images(beside, lanes[dtype], dtype, halo if in_place else SAME, 7.0 if in_place else 0.0)
            self.out = self.beside if in_place else self.out
        sums = windows_of(layer, self.x.array, self.filters)
        self.want = sums + self.bias[:, None, None]
        if self.beside:
            self.want = self.want + self.beside.plain()[:, :k]
        self.want = activated(self.want, activation)
        self.activation, self.target, self.result = activation, target, result

    def check(self, order="all"):
        frame = self.out.frame()
        bias = pack_columns(self.layer.size, self.bias)
        epilogue = Epilogue(Pointer(bias), self.beside and self.beside.view, self.activation)
        place = room_for(self.layer, len(self.x.array))
        made = tile_conv_calls(self.layer, self.out.view, self.x.view, Pointer(self.filters), epilogue, place)
        run_calls(made.calls, self.target, order)
        want = floats_of(bfloat16_bits(self.want)) if self.result == "V2" else self.want
        got = self.out.plain()
        np.testing.assert_array_equal(got[:, : want.shape[1]], want)
        np.testing.assert_array_equal(got[:, want.shape[1] :], activated(np.float32(0), self.activation))
        np.testing.assert_array_equal(self.out.frame(), frame)


THREE, HALVED = Window((3, 3), pad=SAME), Window((3, 3), (2, 2), SAME)
LAYERS = {
    "point": ((40, 6, 7, 33), Window()),
    "three": ((33, 7, 9, 20), THREE),
    "wide": ((8, 3, 37, 40), THREE),
    "flat": ((32, 7, 7, 64), THREE),
    "halved": ((40, 9, 9, 32), HALVED),
    "halved point": ((64, 8, 10, 16), Window(stride=(2, 2))),
    "apart": ((16, 12, 13, 24), Window((3, 3), pad=(2, 2, 2, 2), dilation=(2, 2))),
    "uneven": ((20, 9, 12, 10), Window((2, 5), (3, 1), (1, 3, 0, 2), (2, 1))),
    "one pixel": ((96, 1, 1, 40), Window()),
    "one column": ((32, 40, 1, 8), Window((3, 1), pad=(1, 0, 1, 0))),
}


@every_target
@pytest.mark.parametrize("result", ["f4", "V2"])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_window_has_the_formulas_bits(layer, result, name):
    Case(*layer, tiles_on(name), result=result).check()


FIRST = {
    "seven": ((3, 20, 21, 40), Window((7, 7), (2, 2), (3, 3, 3, 3))),
    "three": ((3, 11, 18, 33), Window((3, 3), (2, 2), (0, 1, 1, 0))),
    "one channel": ((1, 9, 8, 16), Window((5, 5), pad=(2, 2, 2, 2))),
    "long": ((4, 8, 30, 8), Window((2, 11), (1, 3), (1, 0, 0, 4), (2, 1))),
}


@every_target
@pytest.mark.parametrize("result", ["f4", "V2"])
@pytest.mark.parametrize("layer", FIRST.values(), ids=FIRST)
def test_first_layers_read_neighbouring_pixels_of_four_channels(layer, result, name):
    Case(*layer, tiles_on(name), n=2, result=result, halo=SAME, plain=True).check()


@every_target
@pytest.mark.parametrize("residual", ["f4", "V2", "in place"])
@pytest.mark.parametrize("result", ["f4", "V2"])
def test_residuals_of_each_dtype(result, residual, name):
    for layer in ("three", "flat", "wide"):
        Case(*LAYERS[layer], tiles_on(name), 2, result, (1, 0, 2, 1), residual, RELU).check()


@every_target
@pytest.mark.parametrize("activation", [NONE, RELU, RELU6, leaky(0.25)], ids=str)
def test_activations(activation, name):
    Case(*LAYERS["three"], tiles_on(name), result="V2", activation=activation).check()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layer", ["three", "flat", "wide"])
def test_any_order_of_tasks(layer, order):
    for residual in ("", "in place"):
        Case(*LAYERS[layer], tiles_on("host"), 3, "V2", SAME, residual).check(order)


@settings(max_examples=40, deadline=None)
@given(
    layer_sizes(12, 40),
    PAIRS,
    PAIRS,
    PADS,
    PAIRS,
    st.sampled_from(TARGETS),
    st.sampled_from(["f4", "V2"]),
    st.booleans(),
)
def test_any_layer(size, kernel, stride, pad, dilation, name, result, plain):
    window = Window(kernel, stride, pad, (dilation[0], 1) if plain else dilation)
    size = (min(size[0], PIXEL), *size[1:]) if plain else size
    if min(window.result(*size[1:3])):
        Case(size, window, tiles_on(name), 1, result, (0, 1, 0, 2), plain=plain).check()


@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 5))
def test_tiles_store_each_pixel_once(rows, columns, more):
    for tiles in (tiles_of_rows(rows, columns), tiles_of_image(rows, columns, columns + more)):
        assert tiles.height <= 16 and len(tiles.first) % tiles.group == 0
        stored = tiles.pixels[tiles.is_new]
        assert sorted(map(tuple, stored.tolist())) == [(r, c) for r in range(rows) for c in range(columns)]
        assert (tiles.pixels[:, 0] == tiles.first).all()
        places = tiles.pixels @ np.array([columns + more, 1])
        assert (np.diff(places, axis=1) == 1).all() and places.max() < (rows - 1) * (columns + more) + columns


def test_small_images_are_tiled_as_a_whole_and_wide_ones_by_rows():
    shape = lambda h, w, stride=1: ConvShape(64, h, w, 64, tiles_on("host"), Window((1, 1), (stride, stride)))  # noqa: E731
    assert len(pixel_tiles(shape(7, 7), 9).first) == 4
    assert len(pixel_tiles(shape(14, 14), 14).first) == 14
    assert len(pixel_tiles(shape(14, 14, 2), 14).first) == 8  # 7 rows and one for a group of two
    assert len(pixel_tiles(shape(7, 7), None).first) == 8


def test_a_narrow_halo_is_refused():
    case = Case(*LAYERS["three"], tiles_on("host"))
    x = Images(np.zeros((1, 33, 7, 9)), CHANNELS, "V2", (1, 0, 1, 1))
    with pytest.raises(ValueError, match=r"a halo of \(1, 0, 1, 1\) is narrower than \(1, 1, 1, 1\)"):
        tile_conv_calls(case.layer, case.out.view, x.view, Pointer(case.filters), Epilogue())


def test_no_images_need_no_call():
    case = Case(*LAYERS["three"], tiles_on("host"))
    for sizes in ({"n": 0}, {"h": 0}, {"w": 0}):
        out = replace(case.out.view, **sizes)
        numbers = tile_conv_calls(case.layer, out, case.x.view, Pointer(case.filters), Epilogue())
        bytes_ = tile_conv8_calls(case.layer, out, case.x.view, ByteWeights(*[Pointer(case.filters)] * 3), BYTES, None)
        assert numbers.calls == bytes_.calls == ()


def test_layers_of_few_pixels_channels_or_of_groups_use_no_tiles():
    target = tiles_on("host")
    suits = lambda *size, **more: suits_tile_conv(ConvShape(*size, target, **more))  # noqa: E731
    assert suits(16, 2, 2, 8) and suits(3, 9, 9, 8, window=THREE, is_plain=True)
    assert not suits(16, 1, 3, 8) and not suits(15, 9, 9, 8)
    assert not suits(32, 9, 9, 32, groups=2) and not suits(32, 9, 9, 32, groups=32)
    assert not suits(32, 9, 9, 32, dtype="f8")
    assert not suits(32, 4096, 4097, 32)  # tables of int32 number the elements
    assert not suits(3, 9, 9, 8, window=Window((3, 3), dilation=(1, 2)), is_plain=True)


@pytest.mark.parametrize("order", ORDERS)
@every_target
@pytest.mark.parametrize("c", [5, 32, 70])
def test_images_are_rounded_to_blocks_of_32_channels(c, name, order):
    target, rng = tiles_on(name), np.random.default_rng(c)
    numbers = rng.standard_normal((2, c, 13, 14)).astype("f4")
    numbers[0, 0, 0, :4] = np.nan, np.inf, -np.inf, 1e-40
    x = Images(numbers, target.lanes, "f4", (0, 1, 2, 0), np.nan)
    out = Images(np.ones_like(numbers), CHANNELS, "V2", SAME, 7.0)
    frame = out.frame()
    run_calls(join_blocks_calls(out.view, x.view).calls, target, order)
    np.testing.assert_array_equal(out.plain()[:, :c], floats_of(bfloat16_bits(numbers)))
    np.testing.assert_array_equal(out.plain()[:, c:], 0)
    np.testing.assert_array_equal(out.frame(), frame)


@pytest.mark.parametrize("order", ORDERS)
@every_target
@pytest.mark.parametrize("c", [1, 3, 4])
def test_plain_images_are_rounded_to_pixels_of_four_channels(c, name, order):
    numbers = np.random.default_rng(c).standard_normal((2, c, 13, 19)).astype("f4")
    out = Images(np.ones_like(numbers), PIXEL, "V2", SAME, 7.0)
    frame = out.frame()
    run_calls(round_pixels_calls(out.view, view_of(numbers)).calls, tiles_on(name), order)
    np.testing.assert_array_equal(out.plain()[:, :c], floats_of(bfloat16_bits(numbers)))
    np.testing.assert_array_equal(out.plain()[:, c:], 0)
    np.testing.assert_array_equal(out.frame(), frame)


@pytest.mark.parametrize("dtype", ["f4", "u1"])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (5, 4), (7, 7), (2, 9)], ids=str)
def test_a_halo_is_what_steps_read_beyond_an_image_and_no_more(kernel, plain, dtype):
    for (h, w), stride, pad in product([(7, 9), (9, 20)], [1, 2, 3], [(0, 0, 0, 0), (1, 2, 1, 2)]):
        if h + 2 * pad[0] < kernel[0] or w + 2 * pad[1] < kernel[1]:
            continue
        layer = TileLayer(
            ConvShape(3, h, w, 8, tiles_on("host"), Window(kernel, (stride, stride), pad), 1, plain, dtype)
        )
        rows, columns = layer.shape.result
        read = {
            (i * stride + row, j * stride + column + tap)
            for i, j in ((rows - 1, columns - 1), (0, 0))
            for _, row, column in layer.steps
            for tap in range(layer.taps)
        }
        bottom, right = (1 + max(at) - pad[axis] - n for axis, (at, n) in enumerate(zip(zip(*read), (h, w))))
        assert layer.halo == (*pad[:2], max(bottom, 0), max(right, 0))


def test_the_bounds_at_which_tiles_begin_and_end():
    target = tiles_on("host")
    suits = lambda *size, **more: suits_tile_conv(ConvShape(*size, target, **more))  # noqa: E731
    assert suits(32, 4096, 4096, 8) and not suits(32, 4096, 4096 + 1, 8)
    assert suits(16, 1, 4, 8) and not suits(16, 1, 3, 8)
    many = MANY_WEIGHTS // 512
    assert suits(512, 1, 1, many) and not suits(512, 1, 1, many - 1)  # filters are read from memory
    assert suits(512 // 9 + 1, 1, 1, MANY_WEIGHTS // 512, window=THREE)
    assert not suits(512, 1, 1, many, dtype="u1")
    assert not suits(512, 0, 5, many) and not suits(512, 5, 0, many)  # no pixels
    assert not suits(1, 9, 9, 1, window=Window((6, 6)))  # one channel by one filter is depthwise
    assert suits(1, 9, 9, 2, window=Window((6, 6)))
    assert suits(32, 9, 9, 8, dtype="u1") and not suits(31, 9, 9, 8, dtype="u1")


@pytest.mark.parametrize(
    ("columns", "tiles", "height"), [(15, 1, 15), (16, 1, 16), (17, 2, 9), (32, 2, 16), (33, 4, 9)]
)
def test_pixels_that_fit_one_tile_are_one(columns, tiles, height):
    made = tiles_of_image(1, columns, columns)
    assert (len(made.first), made.height, made.group) == (tiles, height, min(tiles, 2))


@every_target
@pytest.mark.parametrize("near", [1, 64 << 10])
@pytest.mark.parametrize("layer", ["three", "wide", "flat", "halved", "uneven"])
def test_groups_of_tiles_in_several_blocks(layer, near, name, monkeypatch):
    """As for images that are larger than the cache: the last block may have groups beyond the last one."""
    for nbytes in (near, 3 * near // 2):
        monkeypatch.setattr(calls, "NEAR_INPUT", nbytes)
        for order in ("all", "single"):
            Case(*LAYERS[layer], tiles_on(name), 3, "V2", SAME, "in place").check(order)


def test_blocks_have_as_many_groups_as_stay_in_cache(monkeypatch):
    layer = TileLayer(ConvShape(32, 40, 64, 40, tiles_on("host"), THREE))
    x = Images(np.zeros((1, 32, 40, 64)), CHANNELS, "V2", SAME)
    reads = calls.reads_of(layer, x.view)
    out, group = x.view, reads.nbytes * reads.tiles.height * reads.tiles.group
    assert reads.nbytes == 64  # a block of channels of a pixel, however many taps read it
    for near, block in ((0, 1), (group - 1, 1), (group, 1), (2 * group - 1, 1), (2 * group, 2), (7 * group, 7)):
        monkeypatch.setattr(calls, "NEAR_INPUT", near)
        shared = calls.product_args(layer.size, reads, out, 3, Pointer(None))
        blocks = -(-reads.tiles.groups // block)
        assert (shared.args["block"], shared.args["blocks"]) == (block, blocks)
        assert shared.tasks[0] == 3 * blocks * block * 2
    monkeypatch.setattr(calls, "NEAR_INPUT", 10**9)
    assert calls.product_args(layer.size, reads, out, 3, Pointer(None)).args["block"] == reads.tiles.groups


def test_gathered_pixels_need_a_workspace():
    case = Case(*LAYERS["halved"], tiles_on("host"))
    need = case.layer.nbytes(1)
    assert need > 0
    with pytest.raises(ValueError, match=rf"a stride of \(2, 2\) needs a workspace of {need} bytes"):
        tile_conv_calls(case.layer, case.out.view, case.x.view, Pointer(case.filters), Epilogue())


def test_no_pixels_are_rounded_without_a_call():
    full = Images(np.zeros((2, 3, 4, 5)), 8, "f4", SAME).view
    for sizes in ({"n": 0}, {"h": 0}):
        assert join_blocks_calls(replace(full, dtype="V2", lanes=CHANNELS, **sizes), replace(full, **sizes)).calls == ()
    out = replace(full, dtype="V2", lanes=PIXEL, n=0)
    assert round_pixels_calls(out, contiguous(Pointer(None), (0, 3, 4, 5), "f4")).calls == ()


def test_images_that_are_not_plain_are_refused():
    out = Images(np.zeros((2, 3, 4, 5)), PIXEL, "V2", SAME).view
    for x in (np.zeros((2, 3, 4, 6), "f4"), np.zeros((2, 3, 4, 10), "f4")[..., ::2]):
        with pytest.raises(ValueError, match="is not a plain image"):
            round_pixels_calls(out, view_of(x))
