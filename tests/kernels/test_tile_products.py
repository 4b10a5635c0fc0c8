"""Products on tile registers: every shape and tail against NumPy's formula, all bits, in any order of tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, leaky
from cgraph.kernels.conv8.calls import ByteWeights, Join, MatrixRows, Result
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.tile_products import calls
from cgraph.kernels.tile_products.calls import (
    NEAR_INPUT,
    NEAR_PANELS,
    Addend,
    LeftRows,
    Tiles,
    TileSize,
    ahead_of,
    byte_rows_calls,
    config_of,
    ns_of,
    number_rows_calls,
    pack_columns,
    pack_tiles,
    round_rows_calls,
    shared_args,
    suits_tiles,
    tasks_of,
    unpack_tiles,
)
from tests.kernels.test_conv8 import meaning, scales_of
from tests.support.emulated import TILES, tiles_on
from tests.support.kernels import ORDERS, TARGETS, run_calls
from tests.support.tiles import bfloat16_bits, flushed, products
from tests.support.tolerance import near

SHAPES = [(1, 1, 1), (1, 64, 32), (5, 65, 33), (16, 40, 16), (17, 128, 7), (33, 200, 70), (70, 31, 64)]
every_target = pytest.mark.parametrize("name", TILES)


def check_bytes(m, k, n, name, result, count=1, order="all"):
    rng, size = np.random.default_rng(m), TileSize(k, n, 1)
    x = rng.integers(0, 256, (count, m, size.padded)).astype("u1")  # numbers beyond k meet zeros
    y, bias = rng.integers(-128, 128, (k, n)).astype("i1"), rng.integers(-999, 999, n).astype("i4")
    scale = scales_of(rng, n, k, result)
    out = np.full((count, m, n + 3), 9, result.dtype)
    weights = ByteWeights(*map(Pointer, (pack_tiles(size, y), pack_columns(size, bias), pack_columns(size, scale))))
    left = LeftRows(Pointer(x), count, m, m * size.padded, size.padded)
    made = byte_rows_calls(size, MatrixRows(Pointer(out), m * (n + 3), n + 3), left, weights, result).calls
    run_calls(made, tiles_on(name), order)
    sums = x[..., :k].astype("i8") @ y.astype("i8") + bias
    want = meaning(sums.transpose(0, 2, 1)[:, :, None], scale, result)[:, :, 0].transpose(0, 2, 1)
    np.testing.assert_array_equal(out[..., :n], want)
    assert (out[..., n:] == 9).all()


@every_target
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_of_every_tail(shape, name):
    check_bytes(*shape, name, Result("i4"))


RESULTS = {
    "bytes": Result("u1", 120),
    "bounded": Result("u1", 20, 20, 90),
    "floats": Result("f4"),
    "twice": Result("u1", 7, 7, 255, Join(0.031, -90, 165, 0.0473)),
    "whole numbers": Result("u1", 20, 20, 240, fixed="twice"),
}


@every_target
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_results_are_those_of_convolutions(result, name):
    check_bytes(21, 70, 45, name, result, 2)


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_tasks(order):
    check_bytes(50, 70, 70, "host", Result("u1", 3), 2, order)
    check_numbers(50, 70, 70, "host", order=order, adds="in place")


@every_target
@pytest.mark.parametrize(
    ("count", "m", "k"), [(1, 1, 1), (2, 3, 31), (1, 5, 32), (3, 2, 70), (1, 70, 129), (2, 40, 1024)]
)
def test_rounded_rows_lie_in_blocks_of_steps(count, m, k, name):
    rng, size, apart = np.random.default_rng(k), TileSize(k, 1, 2), 3
    bits = rng.integers(0, 1 << 32, (count, m + 1, k + apart), "u4")  # any float, also NaN and below 2**-126
    x = bits.view("f4")
    out = np.full((count, size.steps, m, 32), 0xFFFF, "u2")
    made = round_rows_calls(size, Pointer(out), MatrixRows(Pointer(x), (m + 1) * (k + apart), k + apart), count, m)
    for order in ORDERS:
        run_calls(made, tiles_on(name), order)
        want = np.zeros((count, m, size.padded), "u2")
        want[..., :k] = bfloat16_bits(flushed(x[:, :m, :k]))
        np.testing.assert_array_equal(out, want.reshape(count, m, size.steps, 32).swapaxes(1, 2))


@every_target
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_products_of_rows_in_blocks_are_those_of_rows(m, k, n, name):
    rng, size, count = np.random.default_rng(m + k), TileSize(k, n, 2), 2
    x = bfloat16_bits(rng.standard_normal((count, m, size.padded)).astype("f4"))
    blocks = np.ascontiguousarray(x.reshape(count, m, size.steps, 32).swapaxes(1, 2))
    panels = Pointer(pack_tiles(size, bfloat16_bits(rng.standard_normal((k, n)).astype("f4"))))
    results = []
    for left in (
        LeftRows(Pointer(x), count, m, 2 * m * size.padded, 2 * size.padded),
        LeftRows.in_blocks(size, Pointer(blocks), count, m),
    ):
        out = np.full((count, m, n), 9, "f4")
        run_calls(
            number_rows_calls(size, MatrixRows(Pointer(out), m * n, n), left, panels, None, NONE).calls, tiles_on(name)
        )
        results.append(out)
    np.testing.assert_array_equal(*results)


def check_numbers(m, k, n, name, activation=NONE, count=1, order="all", adds=None, spread=1.0):
    rng, size = np.random.default_rng(m), TileSize(k, n, 2)
    numbers = lambda *shape: (rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread, shape))).astype("f4")  # noqa: E731
    x, y = np.zeros((count, m, size.padded), "u2"), bfloat16_bits(numbers(k, n))
    x[..., :k] = bfloat16_bits(numbers(count, m, k))
    out, added = np.full((count, m, n + 3), 9, "f4"), numbers(count, m, n + 3)
    addend = None
    if adds == "in place":
        out[:] = added
        addend = Addend(Pointer(out), m * (n + 3), n + 3)
    elif adds == "one row":
        added[:] = added[0, 0]
        addend = Addend(Pointer(added), 0, 0)
    elif adds:
        addend = Addend(Pointer(added), m * (n + 3), n + 3)
    left = LeftRows(Pointer(x), count, m, m * size.padded * 2, size.padded * 2)
    to = MatrixRows(Pointer(out), m * (n + 3), n + 3)
    made = number_rows_calls(size, to, left, Pointer(pack_tiles(size, y)), addend, activation).calls
    run_calls(made, tiles_on(name), order)
    padded = np.zeros((size.padded, n), "u2")
    padded[:k] = y
    want = np.stack([products(image, padded) for image in x]) + (added[..., :n] if adds else np.float32(0))
    want = np.where(want < 0, want * np.float32(activation.slope), want)
    want = np.maximum(np.minimum(want, np.float32(activation.high)), np.float32(activation.low))
    np.testing.assert_array_equal(out[..., :n], want)
    np.testing.assert_array_equal(out[..., n:], added[..., n:] if adds == "in place" else 9)


@every_target
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_every_tail(shape, name):
    check_numbers(*shape, name)


@every_target
@pytest.mark.parametrize("adds", [None, "in place", "one row", "a matrix"])
@pytest.mark.parametrize("activation", [NONE, RELU, RELU6, leaky(0.25)], ids=str)
def test_addends_and_activations(activation, adds, name):
    check_numbers(18, 40, 37, name, activation, 2, adds=adds)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 140), st.integers(1, 70), st.sampled_from(TARGETS), st.booleans())
def test_any_shape(m, k, n, name, is_bytes):
    if is_bytes:
        check_bytes(m, k, n, name, Result("u1", 100))
    else:
        check_numbers(m, k, n, name, spread=20.0)


@pytest.mark.parametrize("itemsize", [1, 2])
@given(st.integers(1, 150), st.integers(1, 70))
def test_right_sides_are_packed_and_unpacked(itemsize, k, n):
    size = TileSize(k, n, itemsize)
    y = np.arange(1, k * n + 1, dtype=("i1", "u2")[itemsize - 1]).reshape(k, n)
    packed = pack_tiles(size, y)
    assert packed.shape == (size.panels, size.steps, 2, 16, 16, 4 // itemsize)
    assert packed.nbytes == size.panels * size.panel_nbytes
    np.testing.assert_array_equal(unpack_tiles(size, packed), y)
    assert packed.astype(bool).sum() == y.astype(bool).sum()
    assert pack_columns(size, np.ones((2, n))).shape == (2, size.panels * 32)


@given(st.integers(1, 2000))
def test_tiles_cover_all_rows_and_each_is_stored_once(count):
    tiles = Tiles.of(count)
    assert 1 <= tiles.height <= 16 and tiles.groups * tiles.group == len(tiles.first)
    stored = [at + q for at, new in zip(tiles.first, tiles.new) for q in range(new, tiles.height)]
    assert sorted(stored) == list(range(count)) and min(tiles.first) == 0
    config = config_of(tiles.height)
    rows, nbytes = config[48:56], config[16:32].view("<u2")
    assert config[0] == 1 and (nbytes == 64).all()  # a row of the left side has four bytes for a row of the right
    assert (rows[:6] == tiles.height).all() and (rows[6:] == 16).all()


def test_nothing_is_computed_for_no_rows():
    none = LeftRows(Pointer(None), 1, 0, 0, 64)
    weights = ByteWeights(*[Pointer(None)] * 3)
    assert byte_rows_calls(TileSize(3, 4, 1), MatrixRows(Pointer(None), 0, 4), none, weights, Result()).calls == ()
    to = MatrixRows(Pointer(None), 0, 4)
    assert number_rows_calls(TileSize(3, 4, 2), to, none, Pointer(None), None, NONE).calls == ()


@pytest.mark.parametrize("near", [1, 3000, 8000])
@pytest.mark.parametrize("order", ORDERS)
def test_rows_in_several_blocks(near, order, monkeypatch):
    """As for rows that are larger than the cache; the last block may have groups beyond the last one."""
    monkeypatch.setattr(calls, "NEAR_INPUT", near)
    check_bytes(150, 70, 70, "host", Result("u1", 3), 3, order)
    check_numbers(150, 70, 70, "host", count=3, order=order, adds="a matrix")


def test_blocks_have_as_many_groups_as_stay_in_cache():
    size, x = TileSize(4096, 70, 2), LeftRows(Pointer(None), 3, 320, 0, 0)
    tiles = Tiles.of(320)
    assert tiles.groups == 10
    args = shared_args(size, tiles, x, Pointer(None))
    near = NEAR_INPUT * 10 // (320 * 8192)
    assert (args["block"], args["blocks"]) == (near, -(-10 // near)) and 1 < near < 10
    assert tasks_of(size, tiles, x, args)[0] == 3 * near * -(-10 // near) * 3
    few = shared_args(TileSize(64, 70, 2), tiles, x, Pointer(None))
    assert (few["block"], few["blocks"]) == (10, 1)
    many = shared_args(TileSize(1 << 20, 70, 2), tiles, x, Pointer(None))
    assert (many["block"], many["blocks"]) == (1, 10)


def test_panels_that_do_not_stay_in_cache_are_prefetched():
    """All groups of a block together prefetch a panel, but none of them more than 16 lines in a step."""
    near = TileSize(32 * 146, 32, 2)
    assert near.panels * near.panel_nbytes < NEAR_PANELS and ahead_of(near, 1) == 0
    far = TileSize(32 * 147, 32, 2)
    assert far.panels * far.panel_nbytes > NEAR_PANELS
    assert [ahead_of(far, groups) for groups in (1, 2, 3, 5, 32, 40)] == [16, 16, 11, 7, 1, 1]
    assert ahead_of(TileSize(1024, 300, 2), 8) == 4


def test_a_task_lasts_longer_with_more_steps_and_tiles():
    one = ns_of(TileSize(32, 32, 2), 1)
    assert ns_of(TileSize(64, 32, 2), 1) - one == near(10.6, "float64 formulas")  # two products of tiles
    assert ns_of(TileSize(32, 32, 2), 2) - one == near(10.6, "float64 formulas")
    assert ns_of(TileSize(32, 320, 2), 1) == one


@pytest.mark.parametrize(
    ("count", "m", "k", "each"),
    [(1, 1, 1, 1), (1, 16, 32, 1), (1, 17, 32, 2), (3, 100, 33, 19), (1, 5000, 1024, 32), (1, 40, 1 << 20, 1)],
)
def test_rounding_has_at_least_sixteen_tasks_for_many_rows(count, m, k, each):
    [call] = round_rows_calls(TileSize(k, 1, 2), Pointer(None), MatrixRows(Pointer(None), 0, 0), count, m)
    assert call.tasks == -(-count * m // each)


def test_no_rows_are_rounded_without_a_call():
    to, rows = Pointer(None), MatrixRows(Pointer(None), 0, 0)
    assert round_rows_calls(TileSize(8, 1, 2), to, rows, 0, 5) == round_rows_calls(TileSize(8, 1, 2), to, rows, 3, 0)
    assert round_rows_calls(TileSize(8, 1, 2), to, rows, 0, 5) == ()


@pytest.mark.parametrize(
    ("rows", "k", "itemsize", "suits"),
    [(4, 32, 1, True), (3, 32, 1, False), (4, 31, 1, False), (4, 16, 2, True), (4, 15, 2, False), (900, 15, 2, False)],
)
def test_few_or_short_rows_use_no_tiles(rows, k, itemsize, suits):
    assert suits_tiles(rows, k, itemsize) == suits
