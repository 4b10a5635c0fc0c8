"""What calls of convolutions decide: rows that become one, tiles and blocks, workspaces, lines prefetched, refusals."""

from itertools import product

import numpy as np
import pytest

from cgraph.kernels.conv import calls as conv
from cgraph.kernels.conv.addresses import Grid
from cgraph.kernels.conv.calls import (
    NEAR_INPUT,
    blocked_source,
    conv_calls,
    conv_nbytes,
    conv_overwrites_residual,
    conv_rooms,
    early_steps,
    extend_offsets,
    grid_of,
    in_channel_pairs,
    lines_ahead,
    plain_source,
    tiling_of,
)
from cgraph.kernels.conv.clipped import MOST_TIME, clipped_time
from cgraph.kernels.conv.lanes_rule import gains_by_lanes
from cgraph.kernels.conv.signature import TILE
from cgraph.kernels.conv8 import calls as conv8
from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, Join, MatrixRows, Result, conv8_calls
from cgraph.kernels.isa.x86 import AVX512
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.target import target_named
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.gpu import BLOCKS
from tests.support.tolerance import near

HOST = AVX512
LANES = HOST.lanes
AT = Pointer(None)
SAME = Window((3, 3), pad=(1, 1, 1, 1))


def images(n, c, h, w, halo=(0, 0, 0, 0), **more):
    return BlockedView(AT, n, c, h, w, more.pop("lanes", LANES), halo, **more)


def test_pixels_without_neighbours_are_one_row_where_no_image_has_a_halo():
    shape, flat, framed = ConvShape(20, 5, 7, 8, HOST), images(2, 20, 5, 7), images(2, 20, 5, 7, (0, 0, 1, 0))
    out, framed_out = images(2, 8, 5, 7), images(2, 8, 5, 7, (0, 1, 0, 0))
    one, apart = Grid(1, 35), Grid(5, 7)
    source = blocked_source(shape, flat)
    assert grid_of(shape, source, out, None) == grid_of(shape, source, out, out) == one
    assert grid_of(shape, blocked_source(shape, framed), out, None) == apart
    assert grid_of(shape, source, framed_out, None) == grid_of(shape, source, out, framed_out) == apart
    halved = replace(shape, window=Window(stride=(1, 2)))
    assert grid_of(halved, blocked_source(halved, flat), images(2, 8, 5, 4), None) == Grid(5, 4)
    plain = ConvShape(3, 5, 7, 8, HOST, is_plain=True)
    assert grid_of(plain, plain_source(plain, contiguous(AT, (2, 3, 5, 7), "f4")), out, None) == apart


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_offsets_of_steps_are_those_of_their_channels_and_taps(dtype):
    """Against the addresses of NumPy's arrays: blocked images with a halo, and plain ones."""
    lanes = HOST.channels_of(dtype)
    window = Window((2, 3), (2, 3), (1, 2, 1, 2), (3, 2))
    shape = ConvShape(2 * lanes + 3, 14, 15, 8, HOST, window, dtype=dtype)
    x = images(2, shape.c, 14, 15, (2, 3, 6, 5), lanes=lanes, dtype=dtype)
    source = blocked_source(shape, x)
    numbers = np.arange(2 * x.image).reshape(2, x.blocks, 14 + 8, 15 + 8, lanes)
    first = source.at.offset // int(dtype[1:])
    assert len(source.offsets) == len(shape.steps) and source.n == 2 and not source.is_flat
    for (c, r, s), offset in zip(shape.steps, source.offsets):
        for n, row, column in ((0, 0, 0), (1, 2, 1)):
            at = first + n * source.image + row * source.row + column * source.step + offset
            top, left = 2 - 1 + 2 * row + 3 * r, 3 - 2 + 3 * column + 2 * s
            assert at == numbers[n, c // lanes, top, left, c % lanes]
    plain = ConvShape(3, 14, 15, 8, HOST, replace(window, pad=(0, 0, 0, 0)), is_plain=True, dtype=dtype)
    memory = np.arange(2 * 5 * 16 * 20).reshape(2, 5, 16, 20)
    size = int(dtype[1:])
    view = View(AT, (2, 3, 14, 15), tuple(size * s // 8 for s in memory.strides), dtype)
    source = plain_source(plain, view)
    assert len(source.panel_offsets) == plain.panels and not source.panel_offsets.any()
    for (c, r, s), offset in zip(plain.steps, source.offsets):
        at = source.image + 2 * source.row + source.step + offset
        assert at == memory[1, c, 2 * 2 + 3 * r, 3 + 2 * s]


def test_pairs_of_channels_are_counted_as_one_element():
    source = blocked_source(ConvShape(2 * LANES, 5, 7, 8, HOST), images(2, 2 * LANES, 5, 7))
    pairs = in_channel_pairs(source)
    for name in ("image", "row", "step"):
        assert getattr(pairs, name) * 2 == getattr(source, name) > 0
    assert (pairs.offsets == source.offsets // 2).all() and pairs.at == source.at and pairs.n == 2


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_padded_copies_of_plain_images_need_a_workspace(dtype):
    size, window = int(dtype[1:]), Window((3, 3), pad=(1, 2, 3, 4))
    shape = ConvShape(3, 10, 20, 8, HOST, window, is_plain=True, dtype=dtype)
    padded = 5 * 3 * (10 + 4) * (20 + 6) * size
    assert conv_rooms(shape, 5) == (padded, 0) and conv_nbytes(shape, 5) == -(-padded // 64) * 64
    assert conv_rooms(replace(shape, window=Window((3, 3))), 5) == (0, 0)
    assert conv_rooms(replace(shape, is_plain=False), 5) == (0, 0)
    for pad in ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)):
        one = 3 * (10 + pad[0] + pad[2]) * (20 + pad[1] + pad[3]) * size
        assert conv_rooms(replace(shape, window=Window((3, 3), pad=pad)), 1) == (one, 0)
    few = ConvShape(64, 6, 6, 8, BLOCKS, SAME)
    assert conv_rooms(few, 1)[1] > 0 and conv_rooms(few, 0) == (0, 0)


def test_a_residual_is_overwritten_where_no_tiles_overlap():
    for h, w, has_halo, is_plain, window in product(
        (1, 4, 5), (1, 3, 13, 24, 29), (False, True), (False, True), (Window(), SAME, Window(stride=(2, 2)))
    ):
        shape = ConvShape(3, h, w, 2 * LANES, HOST, window, is_plain=is_plain)
        rows, columns = shape.result
        joined = shape.is_column or (window == Window() and not has_halo and not is_plain)
        length = rows * columns if joined else columns
        assert conv_overwrites_residual(shape, has_halo) == (length % shape.pixels(length) == 0)
    clipped = ConvShape(3, 8, 8, LANES, HOST, Window((3, 3), pad=(6, 6, 6, 6), dilation=(6, 6)), is_clipped=True)
    assert not conv_overwrites_residual(clipped, False)
    assert conv_overwrites_residual(replace(clipped, is_clipped=False), False)


def test_a_plain_image_of_one_row_of_pixels_is_not_joined_with_the_next():
    """Rows of 13 pixels overlap their last tile, or not, whatever all pixels together would."""
    widths = [w for w in range(1, 60) if (w % ConvShape(3, 4, w, LANES, HOST).pixels(w) == 0)]
    for w in range(1, 60):
        shape = ConvShape(3, 4, w, LANES, HOST, is_plain=True)
        assert conv_overwrites_residual(shape, False) == (w in widths or shape.is_column)


@pytest.mark.parametrize(("tiles", "lines"), [(1, 8), (3, 8), (4, 4), (6, 4), (7, 2), (199, 2), (200, 0), (900, 0)])
def test_more_tiles_prefetch_fewer_lines_each(tiles, lines):
    assert lines_ahead(tiles) == lines


def test_tables_go_on_with_the_pixels_of_the_next_tiles():
    offsets = np.array([5, 9, 20])
    assert extend_offsets(offsets, 0, 100).tolist() == [5, 9, 20]
    assert extend_offsets(offsets, 4, 100).tolist() == [5, 9, 20, 105, 109, 120, 205]


def test_only_pixels_that_no_step_has_read_are_prefetched():
    point = ConvShape(20, 5, 7, 8, HOST)
    assert early_steps(point) == early_steps(replace(point, window=Window(stride=(2, 1)))) == 4
    others = replace(point, window=SAME), ConvShape(3, 5, 7, 8, HOST, is_plain=True), replace(point, target=BLOCKS)
    assert [early_steps(x) for x in others] == [0, 0, 0]


def test_blocks_of_tiles_are_bands_or_what_the_cache_holds():
    def tiled(c, side, k, n=1, weights=None):
        shape = ConvShape(c, side, side, k, HOST, SAME)
        t = tiling_of(shape, Grid(side, side), n, shape.weights_nbytes if weights is None else weights)
        assert (t.pixels, t.tiles) == (shape.pixels(side), t.across * side)
        assert (t.across - 1) * t.pixels < side <= t.across * t.pixels
        assert (t.blocks - 1) * t.block < t.tiles <= t.blocks * t.block
        return t

    values = 4 * 3 * (LANES * 100 + 2 * LANES * 100)  # bytes of three images and their results
    many, equal, few = (tiled(LANES, 10, 2 * LANES, 3, values + more) for more in (1, 0, -1))
    assert not many.is_banded and not equal.is_banded and few.is_banded
    assert many.block == many.tiles and few.block == -(-few.tiles // 4)
    deep = tiled(1024, 64, LANES)  # 16 MiB of input: a band is larger than the cache
    nbytes = 1024 * 64 * 64 * 4 // deep.tiles
    assert deep.block == NEAR_INPUT // nbytes and 4 < deep.block < deep.tiles // 4
    assert tiled(20000, 64, LANES).block == 4  # at least
    assert tiled(30000, 1, LANES).block == 1  # at most all


def test_a_whole_band_is_taken_up_to_twice_the_cache():
    for c in range(100, 2000, 25):
        shape = ConvShape(c, 32, 32, LANES, HOST, SAME)
        t = tiling_of(shape, Grid(32, 32), 1, 0)
        nbytes, band = c * 32 * 32 * 4 // t.tiles, -(-t.tiles // 4)
        assert t.block == (max(4, NEAR_INPUT // nbytes) if band * nbytes > 2 * NEAR_INPUT else band)


def lowered(shape, n, **more):
    out = images(n, shape.k, *shape.result, lanes=shape.lanes)
    source = images(n, shape.c, shape.h, shape.w, shape.window.halo(shape.h, shape.w), lanes=shape.lanes)
    return conv_calls(shape, out, source, AT, **more).calls


def lowered8(shape, n):
    x = images(n, shape.c, shape.h, shape.w, dtype="u1", lanes=shape.source_lanes)
    out = images(n, shape.k, shape.h, shape.w, dtype="u1", lanes=shape.lanes)
    return conv8_calls(shape, out, x, ByteWeights(AT, AT, AT), Result()).calls


@pytest.mark.parametrize("sizes", [(0, 4, 5), (2, 0, 5), (2, 4, 0)])
def test_no_pixels_need_no_call(sizes):
    n, h, w = sizes
    assert lowered(ConvShape(LANES, h, w, LANES, HOST), n) == ()
    assert lowered8(ByteShape(LANES, h, w, 8, HOST), n) == ()


def test_filters_that_leave_the_cache_are_prefetched(monkeypatch):
    numbers = list(TILE.params).index("ahead")
    for shape, call_of in ((ConvShape(99, 1, 1, LANES, HOST), lowered), (ByteShape(99, 1, 1, 8, HOST), lowered8)):
        for more, ahead in ((-1, True), (0, True), (1, False)):
            monkeypatch.setattr(conv, "NEAR_BYTES", shape.weights_nbytes + more)
            monkeypatch.setattr(conv8, "NEAR_BYTES", shape.weights_nbytes + more)
            [call] = call_of(shape, 1)
            lines = call.kernel.params[numbers] if call_of is lowered else call.kernel.params[-1]
            assert bool(lines) == ahead


def test_plain_images_have_adjacent_pixels():
    shape = ConvShape(3, 5, 7, 8, HOST, is_plain=True)
    wide = View(AT, (2, 3, 5, 7), (840, 280, 56, 8), "f4")
    with pytest.raises(ValueError, match="pixels are 2 elements apart"):
        plain_source(shape, wide)
    one = plain_source(ConvShape(3, 5, 1, 8, HOST, is_plain=True), replace(wide, shape=(2, 3, 5, 1)))
    assert (one.image, one.row, one.step) == (210, 14, 1)


def test_images_that_are_not_those_of_the_layer_are_refused():
    shape, weights = ConvShape(LANES, 5, 7, 8, HOST), AT
    out = images(2, 8, 5, 7)
    for x in (
        images(2, LANES + 1, 5, 7), images(2, LANES, 6, 7), images(2, LANES, 5, 8),
        images(2, LANES, 5, 7, lanes=2 * LANES),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="are not those of"):
            conv_calls(shape, out, x, weights)
    with pytest.raises(ValueError, match="x has 3 images and out has 2"):
        conv_calls(shape, out, images(3, LANES, 5, 7), weights)
    for y in (
        images(2, 9, 5, 7), images(2, 8, 6, 7), images(2, 8, 5, 8), images(2, 8, 5, 7, dtype="f8"),
        images(2, 8, 5, 7, lanes=2 * LANES),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is not the result of"):
            conv_calls(shape, y, images(2, LANES, 5, 7), weights)


def test_rows_of_a_matrix_are_pixels_of_one_row():
    shape = ByteShape(LANES, 5, 7, 8, HOST, SAME)
    x = images(1, LANES, 5, 7, (1, 1, 1, 1), dtype="u1", lanes=shape.source_lanes)
    with pytest.raises(ValueError, match="rows of a matrix are made of pixels in one row"):
        conv8_calls(shape, MatrixRows(AT, 0, 8), x, ByteWeights(AT, AT, AT), Result())


def test_all_tiles_together_prefetch_a_panel_of_bytes():
    shape = ByteShape(64, 5, 7, 64, HOST)
    lines = shape.unroll * shape.panel_channels // 64
    assert lines > 2
    for tiles in (1, 2, 3, lines - 1, lines, lines + 1, 63):
        ahead = conv8.lines_ahead(shape, tiles)
        assert (ahead - 1) * tiles < lines <= ahead * tiles
    assert conv8.lines_ahead(shape, 64) == conv8.lines_ahead(shape, 1000) == 0


@pytest.mark.parametrize(
    ("words", "turns"),
    [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 3), (7, 1), (8, 4), (10, 5), (12, 4), (14, 2), (15, 3), (25, 5)],
)
def test_rounds_of_a_loop_divide_all_words(words, turns):
    assert conv8.turns_of(words) == turns and words % turns == 0


@pytest.mark.parametrize(
    ("moves", "is_even", "step"),
    [([0, 4, 4, 4], True, 4), ([0], True, 0), ([0, 8], True, 8), ([0, 4, 8], False, 0), ([4, 4, 4], False, 0)],
)
def test_equal_moves_are_one_number(moves, is_even, step):
    even, args = conv8.even_moves(np.array(moves, np.int32))
    assert (even, args["move"]) == (is_even, step)
    assert args["moves"] is None if is_even else args["moves"].base.tolist() == moves


def test_moves_are_the_bytes_from_one_group_of_taps_to_the_next():
    """Words of a row are read together if there are at most eight."""
    target = replace(target_named("portable"), dot="halves", registers=4, architecture="generic")
    for columns, taps in ((1, 1), (3, 3), (8, 8), (9, 1)):
        shape = ByteShape(3, 20, 30, 8, target, Window((2, columns), dilation=(2, 3)), is_plain=True)
        x = images(1, 3, 20, 30, dtype="u1", lanes=4)
        found, step, moves = conv8.moves_of(shape, blocked_source(shape, x))
        assert (found, step) == (taps, 3 * 4) and len(moves) == 2 * columns // taps
        places = [(r * 2 * 30 + s * 3) * 4 for r in range(2) for s in range(0, columns, taps)]
        assert np.cumsum(moves).tolist() == places


def test_bounds_of_bytes_are_limits_unless_they_are_those_of_every_byte():
    assert [conv8.clips(Result("u1", 3, *bounds)) for bounds in ((0, 255), (1, 255), (0, 254))] == [False, True, True]
    joins = None, Join(1.0, 0, 9, 2.0), Join(1.0, 0, 9, 2.0, ratios=(1.0, 2.0, 3.0))
    assert [Result(join=x).joins for x in joins] == ["", "division", "ratios"]


def test_the_arguments_of_a_join():
    args = conv8.join_args(Result("u1", 7, 1, 250, Join(0.5, -90, 165, 3.0, 0.25, 140, (1.5, 2.5, 3.5))))
    assert {name: args[name] for name in ("zero", "low", "high", "first_low", "first_high")} == {
        "zero": 7, "low": 1, "high": 250, "first_low": -90.0, "first_high": 165.0,
    }  # fmt: skip
    assert [args[x] for x in ("first", "beside", "r_zero", "last")] == [0.5, 0.25, 140.0, 3.0]
    assert args["inverse"] == np.float32(1) / np.float32(3) and [args[x] for x in conv8.RATIOS] == [1.5, 2.5, 3.5]
    alone = conv8.join_args(Result("i4"))
    assert [alone[x] for x in ("first", "beside", "last", "inverse", *conv8.RATIOS)] == [1, 0, 1, 1, 0, 0, 0]


def test_what_unpacked_pixels_need():
    """Several pixels and filters, one group, and words that the stack has room for."""
    target = replace(target_named("portable"), dot="halves", registers=4, architecture="generic")
    fits = lambda c, w, k, **more: ByteShape(c, 3, w, k, more.pop("target", target), **more).has_columns  # noqa: E731
    assert fits(16, 2, 5) and not fits(16, 1, 5) and not fits(16, 2, 4)
    assert not fits(16, 2, 8, groups=2) and not fits(16, 2, 5, target=replace(target, dot="across"))
    most = conv8.ROOMS[-1]
    assert fits(4 * most, 2, 5) and not fits(4 * most + 1, 2, 5)


def test_layers_are_cut_where_that_saves_a_tenth_of_their_time():
    """`CLIPPED` times the products that remain: against a count of taps inside the images."""
    found = set()
    for dilation, side, pad, stride in product((1, 2, 3, 5, 8), (5, 8, 14), (0, 2, 5, 8), (1, 2)):
        window = Window((3, 3), (stride, 1), (pad,) * 4, (dilation, dilation))
        shape = ConvShape(8, side, side, 8, HOST, window)
        if not min(shape.result):
            assert clipped_time(shape) == 1
            continue
        inside = []
        for axis, count in enumerate(shape.result):
            starts = [i * window.stride[axis] - pad for i in range(count)]
            met = [sum(0 <= s + t * dilation < side for t in range(3)) for s in starts]
            inside.append(sum(max(x, 1) for x in met))
        time = 1.4 * np.prod(inside) / (np.prod(shape.result) * 9)
        cut = dilation > 1 and time <= MOST_TIME
        found.add(cut)
        assert clipped_time(shape) == (near(time, "float64 formulas") if cut else 1)
    assert found == {False, True}
    whole = ConvShape(8, 8, 8, 8, HOST, Window((3, 3), (1, 1), (8,) * 4, (8, 8)))
    assert clipped_time(whole) < 1
    for more in ({"groups": 2}, {"is_plain": True}, {"target": BLOCKS}):
        assert clipped_time(replace(whole, **more)) == 1


def test_lanes_are_input_channels_where_that_takes_fewer_multiply_adds():
    found = set()
    for c, k, taps in product((1, 8, 9, 16, 17, 64), range(1, LANES + 1), (1, 2, 9)):
        shape = ConvShape(c, 9, 9, k, HOST, Window((1, taps)))
        by_lanes = -(-c // LANES) * taps * k + 4 * (k + 1)
        gains = 2 * k <= LANES and by_lanes < c * taps
        found.add((gains, by_lanes == c * taps))
        assert gains_by_lanes(shape) == gains
        assert not gains_by_lanes(replace(shape, is_plain=True)) and not gains_by_lanes(replace(shape, target=BLOCKS))
    assert found == {(False, False), (True, False), (False, True)}
