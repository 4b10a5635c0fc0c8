"""Pairs of bfloat16 numbers: rounding with zeros behind, the two halves of a word, sums of products."""

import numpy as np
import pytest

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.kernel import View
from cgraph.kernels.llvm.values import Ptr
from cgraph.kernels.pairs.calls import padded_copy_calls, pair_calls
from cgraph.kernels.pairs.emit import add_pairs, lower, upper
from cgraph.kernels.target import target_named
from cgraph.record import replace
from tests.support.emitted import every_target, run_emitted
from tests.support.kernels import TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near


def rounded(x: np.ndarray) -> np.ndarray:
    """Return the upper halves of float32 numbers, rounded to the nearest, ties to even."""
    bits = x.astype("f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "room"), [(5, 6), (16, 16), (17, 24), (1, 2)])
def test_floats_are_rounded_and_zeros_follow(count, room, target):
    x = np.random.default_rng(count).standard_normal((3, count)).astype("f4")
    x[0, 0], x[1, 0], x[2, 0] = 1.00390625, 1.01171875, -0.0  # both ties: down to even, up to even
    out = np.full((3, room), 0x7777, "u2")
    view = view_of(out)
    run_calls(pair_calls(target_named(target), View(view.at, view.shape, view.strides, BFLOAT16.code), view_of(x)))
    np.testing.assert_array_equal(out[:, :count], rounded(x))
    assert not out[:, count:].any()


@every_target
def test_the_first_number_is_in_the_lower_half(target):
    words = rounded(np.float32([1.5, -2, 0, 7])).astype("u4") | rounded(np.float32([-3, 4, 9, 0.5])).astype("u4") << 16
    first, second = np.zeros(4, "f4"), np.zeros(4, "f4")

    def write(k, pairs, low, high):
        x = pairs.load(lanes=4)
        low.store(lower(k, x))
        high.store(upper(k, x))

    run_emitted(write, target, words.view("i4"), first, second)
    np.testing.assert_array_equal(first, [1.5, -2, 0, 7])
    np.testing.assert_array_equal(second, [-3, 4, 9, 0.5])


@every_target
def test_both_products_are_added_to_each_sum(target):
    lanes = target.lanes
    rng = np.random.default_rng(1)
    numbers = rng.integers(-8, 8, (2 + 2 * lanes, 2)).astype("f4")
    words = (rounded(numbers[:, 0]).astype("u4") | rounded(numbers[:, 1]).astype("u4") << 16).view("i4")
    sums = rng.integers(-99, 99, 4 * lanes).astype("f4")
    before, pairs, weights = sums.reshape(2, 2, lanes).copy(), numbers[:2], numbers[2:].reshape(2, lanes, 2)

    def write(k, table: Ptr, totals: Ptr):
        some = [totals.load(i * lanes, lanes=lanes) for i in range(4)]
        both = [(table + 2).load(v * lanes, lanes=lanes) for v in range(2)]
        for i, total in enumerate(add_pairs(k, some, [table.load(0), table.load(1)], both)):
            totals.store(total, i * lanes)

    run_emitted(write, target, words, sums)
    want = before + np.einsum("qi,vli->qvl", pairs, weights)
    assert_near(sums.reshape(2, 2, lanes), want, "float32 formulas")


@pytest.mark.parametrize("room", [5, 6, 24])
@pytest.mark.parametrize("turned", [False, True])
def test_numbers_are_copied_from_any_strides_and_zeros_follow(turned, room):
    x, out = np.arange(1, 16, dtype="u2").reshape((5, 3) if turned else (3, 5)), np.full((3, room), 0x7777, "u2")
    x = x.T if turned else x
    views = [replace(view_of(v), dtype=BFLOAT16.code) for v in (out, x)]
    run_calls(padded_copy_calls(target_named("host"), *views))
    np.testing.assert_array_equal(out[:, :5], x)
    assert not out[:, 5:].any()
