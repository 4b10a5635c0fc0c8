"""The orders of weights, initial sums and scales: each number at its place, and back."""

import numpy as np
import pytest

from cgraph.kernels.conv8.calls import ByteShape
from cgraph.kernels.conv8.packed_weights import (
    column_numbers,
    in_columns,
    in_halves,
    in_vectors,
    join_halves,
    split_halves,
    split_numbers,
)
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_conv8 import form

HALVES = form("halves")


def test_filters_are_16_weights_of_each_channel_with_zeros_for_missing_steps():
    packed = np.arange(1, 2 * 3 * 16 + 1).reshape(2, 3, 1, 4, 4)
    y = in_vectors(packed)
    assert y.shape == (2, 1, 4, 4, 4) and not y[:, :, :, 3].any()
    assert y[:, 0, :, :3].tolist() == packed[:, :, 0].transpose(0, 2, 1, 3).tolist()


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_word_has_two_channels_of_every_other_input(pairs):
    packed = np.arange(2 * 3 * 16).reshape(2, 3, 1, 4, 4)
    words = in_halves(packed, pairs).reshape(2, 2 // pairs, 3, 2, pairs, 4)
    for rest in range(2 // pairs):
        for odd in range(2):
            for pair in range(pairs):
                c = 2 * (rest * pairs + pair)
                expected = packed[:, :, 0, c : c + 2, odd::2].transpose(0, 1, 3, 2).reshape(2, 3, 4)
                assert words[:, rest, :, odd, pair].tolist() == expected.tolist()


def test_weights_are_joined_and_split_and_no_other_weight_can_be():
    a, b = (x.ravel() for x in np.meshgrid(np.arange(-127, 128), np.arange(-128, 128)))
    pairs = np.stack([a, b], 1).astype("i1")
    joined = join_halves(pairs)
    assert (joined.view("<i2").ravel() == b - 256 * a).all()
    assert (split_halves(joined) == pairs).all()


def test_weights_lie_by_pairs_of_channels():
    packed = np.arange(3 * 5 * 16).reshape(3, 5, 1, 4, 4)
    words = in_columns(packed)
    assert words.shape == (2, 3, 5, 2, 4)
    for pair in range(2):
        assert words[pair].tolist() == packed[:, :, 0, 2 * pair : 2 * pair + 2].tolist()


@pytest.mark.parametrize("once", [False, True])
def test_numbers_are_split_into_those_that_were_given(once):
    rng = np.random.default_rng(6)
    for c, kernel, is_plain in ((5, (1, 1), False), (1, (3, 3), True)):
        shape = replace(ByteShape(c, 9, 9, 6, HALVES, Window(kernel), 1, is_plain), is_unpacked=True)
        f = rng.integers(-127, 128, (6, c, *kernel)).astype("i1")
        start = rng.integers(-(1 << 22), 1 << 22, 6).astype("i4")
        scale = np.stack([rng.integers(1 << 30, 1 << 31, 6), rng.integers(-20, -1, 6)]).astype("i4")
        numbers = column_numbers(shape, f, start, scale, once)
        assert numbers.shape == (2, 2, 2, 2) and not numbers[1, 1].any()
        got = split_numbers(shape, f, numbers, once)
        assert got[0].tolist() == start.tolist() and got[1].tolist() == scale.tolist()
