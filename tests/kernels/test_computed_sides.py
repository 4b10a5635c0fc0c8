"""Computed sides of products on tile registers: rows and panels as those of constants."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_products.calls import TileSize, pack_tiles
from cgraph.kernels.tile_products.computed_sides import LeftSide, RightSide
from tests.support.images import aligned
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import bfloat16_bits

every_target = pytest.mark.parametrize("target", TARGETS)
every_order = pytest.mark.parametrize("order", ORDERS)
SHAPES = [((), 1, 1), ((), 33, 40), ((3,), 17, 65), ((2, 3), 4, 32)]


def memory_of(side):
    memory = aligned(side.nbytes)
    memory[:] = 0x77
    return memory


def both_orders(x):
    return x, np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


@every_target
@every_order
@pytest.mark.parametrize(("batch", "m", "k"), SHAPES)
def test_left_sides_become_rows_of_whole_steps(batch, m, k, order, target):
    size = TileSize(k, 20, 2)
    for x in both_orders(np.random.default_rng(3).standard_normal((*batch, m, k)).astype("f4")):
        side = LeftSide(view_of(x), size)
        memory = memory_of(side)
        run_calls(side.calls(target_named(target), Pointer(memory)), target_named(target), order)
        rows = side.rows(Pointer(memory))
        bits = np.lib.stride_tricks.as_strided(memory.view("u2"), rows.shape, rows.strides)
        np.testing.assert_array_equal(bits[..., :k], bfloat16_bits(x))
        assert not bits[..., k:].any() and bits.shape[-1] == size.padded


@every_target
@every_order
@pytest.mark.parametrize(("batch", "n", "k"), SHAPES)
def test_right_sides_become_the_panels_of_constants(batch, n, k, order, target):
    size = TileSize(k, n, 2)
    for y in both_orders(np.random.default_rng(4).standard_normal((*batch, k, n)).astype("f4")):
        side = RightSide(view_of(y), size)
        memory = memory_of(side)
        run_calls(side.calls(target_named(target), Pointer(memory)), target_named(target), order)
        matrices = bfloat16_bits(y).reshape(-1, k, n)
        for i, want in enumerate(matrices):
            bits = memory[i * side.matrix_nbytes : (i + 1) * side.matrix_nbytes].view("u2")
            np.testing.assert_array_equal(bits, pack_tiles(size, want).ravel())


def test_equal_matrices_share_their_panels():
    y = np.broadcast_to(np.zeros((4, 1, 32, 40), "f4"), (4, 3, 32, 40))
    side = RightSide(view_of(y), TileSize(32, 40, 2))
    assert side.matrix_nbytes == 2 * 2 * 1024 and side.steps() == (4096, 0)
    assert side.nbytes == 2 * 4 * side.matrix_nbytes


@every_target
def test_equal_left_sides_are_rounded_once(target):
    """Of either order in memory; each batch element shows the rows of its own matrix."""
    size = TileSize(40, 20, 2)
    for x in both_orders(np.random.default_rng(5).standard_normal((4, 1, 7, 40)).astype("f4")):
        shared = np.broadcast_to(x, (4, 3, 7, 40))
        side, one = LeftSide(view_of(shared), size), LeftSide(view_of(x), size)
        assert side.nbytes == one.nbytes
        memory = memory_of(side)
        run_calls(side.calls(target_named(target), Pointer(memory)), target_named(target))
        rows = side.rows(Pointer(memory))
        assert rows.shape == (4, 3, 7, size.padded) and rows.strides[1] == 0 != rows.strides[0]
        bits = np.lib.stride_tricks.as_strided(memory.view("u2"), rows.shape, rows.strides)
        np.testing.assert_array_equal(bits[..., :40], bfloat16_bits(shared))


@every_target
def test_equal_right_sides_are_packed_once_in_their_place(target):
    y = np.random.default_rng(6).standard_normal((2, 1, 3, 33, 20)).astype("f4")
    shared = np.broadcast_to(y, (2, 5, 3, 33, 20))
    side = RightSide(view_of(shared), TileSize(33, 20, 2))
    assert side.steps() == (3 * side.matrix_nbytes, 0, side.matrix_nbytes)
    memory = memory_of(side)
    run_calls(side.calls(target_named(target), Pointer(memory)), target_named(target))
    for i, h, j in np.ndindex(2, 5, 3):
        at = sum(n * step for n, step in zip((i, h, j), side.steps()))
        bits = memory[at : at + side.matrix_nbytes].view("u2")
        np.testing.assert_array_equal(bits, pack_tiles(side.size, bfloat16_bits(shared[i, h, j])).ravel())
