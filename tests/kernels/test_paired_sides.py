"""Computed sides of products in pairs of bfloat16 numbers: either order of memory, zeros at the ends."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pairs.paired_sides import PairedSide, gains_by_rounding, joining
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import target_named
from tests.support.images import aligned
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import bfloat16_bits

every_target = pytest.mark.parametrize("target", TARGETS)


def pairs_of(x, lines, depth):
    """The words ``[..., lines, depth]`` of numbers ``[..., n, k]``, with zeros at the ends."""
    bits = np.zeros((*x.shape[:-2], lines, 2 * depth), "u2")
    bits[..., : x.shape[-2], : x.shape[-1]] = bfloat16_bits(x)
    return bits.view("i4")


def rounded(side, target, order="all"):
    """The words that the calls of a side write, in logical order."""
    memory = aligned(side.nbytes)
    memory[:] = 0x77
    place = Pointer(memory)
    run_calls(side.calls(target_named(target), place), target_named(target), order)
    view = side.at(place)
    return np.lib.stride_tricks.as_strided(memory.view("i4"), view.shape, view.strides)


@every_target
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (16, 32), (33, 40), (3, 17, 20), (2, 3, 9, 5)])
def test_lines_are_rounded_in_either_order_of_memory(shape, order, target):
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    turned = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    lines, k = shape[-2:]
    for values in (x, turned):
        whole = PairedSide.of(view_of(values))
        assert (whole.lines, whole.depth) == (lines, -(-k // 2))
        for side in (whole, PairedSide(whole.x, lines + 3, whole.depth + 2)):
            np.testing.assert_array_equal(rounded(side, target, order), pairs_of(x, side.lines, side.depth))


def test_numbers_that_are_adjacent_stay_so():
    x = np.zeros((6, 8), "f4")
    assert PairedSide.of(view_of(x)).keeps_lines and not PairedSide.of(view_of(x.T)).keeps_lines
    assert PairedSide.of(view_of(x[::2, ::2])).keeps_lines


@every_target
def test_equal_matrices_are_rounded_once(target):
    x = np.random.default_rng(2).standard_normal((4, 1, 6, 5)).astype("f4")
    side = PairedSide.of(view_of(np.broadcast_to(x, (4, 3, 6, 5))))
    assert side.batch == (4, 1) and side.nbytes == 4 * 4 * 6 * 3
    np.testing.assert_array_equal(rounded(side, target), pairs_of(np.broadcast_to(x, (4, 3, 6, 5)), 6, 3))


@every_target
def test_numbers_are_joined_low_half_first_and_nan_stays_nan(target):
    low, high = np.float32([[1.00390625, np.nan, -np.inf, 1e-40]]), np.float32([[1.01171875, 2, np.nan, -0.0]])
    out = np.zeros((1, 4), "i4")
    run_calls(pointwise_calls(target_named(target), joining(2), *map(view_of, (out, low, high))), target_named(target))
    halves = out.view("u2").reshape(4, 2)
    np.testing.assert_array_equal(halves[[0, 2, 3], 0], bfloat16_bits(low[0, [0, 2, 3]]))
    np.testing.assert_array_equal(halves[[0, 1, 3], 1], bfloat16_bits(high[0, [0, 1, 3]]))
    for bits in (halves[1, 0], halves[2, 1]):
        assert (int(bits) & 0x7FFF) > 0x7F80


def test_small_products_gain_nothing():
    assert gains_by_rounding(64, 64) and gains_by_rounding(1000, 34)
    assert not gains_by_rounding(63, 64) and not gains_by_rounding(10**6, 32)
