"""Means of bytes by a product of 16 bits: for every sum the byte that floats give."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgraph.kernels.pool8.fixed_mean import WORD, FixedMean, candidates, fixed_bytes, fixed_mean
from cgraph.kernels.pool8.rounding_margin import Mean
from tests.kernels.test_pool8 import as_bytes, float_quotients

BYTES = st.integers(0, 255)


def windows_of_every_sum(taps, rng):
    """Windows with every sum: bytes as equal as possible, and as unequal as possible in any order."""
    total = np.arange(taps * 255 + 1)[:, None]
    even = total // taps + (np.arange(taps) < total % taps)
    uneven = np.clip(total - 255 * np.arange(taps), 0, 255)
    return np.concatenate([even, uneven, rng.permuted(even, axis=1), rng.permuted(uneven, axis=1)])


@settings(max_examples=150)
@given(
    st.integers(1, 9), BYTES, st.sampled_from([1.0, 1.0, 0.5, 0.9, 1.31, 3.7]), BYTES, st.floats(2.0**-20, 2.0**20),
    st.tuples(BYTES, BYTES), st.integers(0, 99),
)  # fmt: skip
def test_every_window_has_the_byte_of_floats(taps, x_zero, ratio, zero, last, bounds, seed):
    last = float(np.float32(last))
    mean = Mean(float(np.float32(last * ratio)), x_zero, last, zero, min(bounds), max(bounds))
    fixed = fixed_mean(mean, taps)
    assume(fixed is not None)
    x = windows_of_every_sum(taps, np.random.default_rng(seed))
    want = as_bytes(float_quotients(x - x_zero, np.full(len(x), taps), mean), mean)
    np.testing.assert_array_equal(fixed_bytes(mean, fixed, x.sum(1)), want)
    assert all(0 <= n < WORD for n in (fixed.factor, fixed.plus, fixed.minus, int(x.sum(1).max()) << fixed.shift))


@pytest.mark.parametrize(("taps", "zero"), [(9, 0), (9, 128), (3, 17), (1, 255)])
def test_windows_of_one_scale_and_an_odd_number_of_taps_need_no_floats(taps, zero):
    assert isinstance(fixed_mean(Mean(0.1, zero, 0.1, zero), taps), FixedMean)


@pytest.mark.parametrize(
    ("mean", "taps"),
    [
        (Mean(0.1, 0, 0.1, 0), 4),  # halves of floats, which round in either direction
        (Mean(0.1, 0, 0.1, 0), 258),  # sums of more than 16 bits
        (Mean(0.1, 0, 0.00001, 0), 9),  # a factor of more than 16 bits
        (Mean(0.1, 200, 0.001, 0), 9),  # an addend of more than 16 bits
    ],
)
def test_other_windows_are_computed_in_floats(mean, taps):
    assert fixed_mean(mean, taps) is None


def test_halves_beyond_the_bounds_do_not_matter():
    mean = Mean(0.1, 0, 0.3, 0, 200, 255)
    fixed = fixed_mean(mean, 4)
    assert fixed is not None and (fixed_bytes(mean, fixed, np.arange(4 * 255 + 1)) == 200).all()
    assert fixed_mean(Mean(0.1, 0, 0.3, 0, 80, 255), 4) is None


def test_sums_of_exactly_16_bits_are_computed_so():
    """257 bytes of 255 add up to 65535; the shift leaves no bit of the largest sum out."""
    for taps, shift in ((1, 8), (2, 7), (3, 6), (4, 6), (128, 1), (129, 0), (257, 0)):
        (first, *_), size = list(candidates(Mean(0.1, 0, 0.1, 0), taps)), taps * 255
        assert first.shift == shift and size << shift < WORD <= size << shift + 1
    assert fixed_mean(Mean(0.1, 0, 0.1, 0, 0, 0), 257) is not None
    assert fixed_mean(Mean(0.1, 0, 0.1, 0, 0, 0), 258) is None


@pytest.mark.parametrize("zero", [0, 3, 200])
@pytest.mark.parametrize("x_zero", [0, 128, 255])
def test_candidates_come_near_every_mean(x_zero, zero):
    """Most bits after the point first; each rounds the exact mean to one of the integers around it."""
    mean, taps = Mean(0.3, x_zero, 0.4, zero), 9
    found = list(candidates(mean, taps))
    assert [x.fraction for x in found] == sorted((x.fraction for x in found), reverse=True) and len(found) >= 8
    total = np.arange(taps * 255 + 1)
    exact = np.clip((total - taps * x_zero) * 0.3 / 0.4 / taps + zero, 0, 255)
    for fixed in found[:4]:
        assert np.abs(fixed_bytes(mean, fixed, total) - exact).max() <= 0.51 + 2.0**-fixed.fraction
        assert 0 in (fixed.plus, fixed.minus)


def test_addends_are_numbers_of_16_bits():
    """A zero point far away leaves fewer bits after the point."""
    near, far = (
        max(x.fraction for x in candidates(Mean(1.0, zero, last, 0), 1)) for zero, last in ((0, 1), (255, 0.25))
    )
    assert (near, far) == (7, 5)
    for x_zero, last in ((255, 0.25), (255, 0.05), (200, 0.02)):
        for fixed in candidates(Mean(1.0, x_zero, last, 0), 1):
            assert 0 <= fixed.plus < WORD and 0 <= fixed.minus < WORD and 0 < fixed.factor < WORD
