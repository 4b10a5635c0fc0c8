"""Fixed-point functions are near those of real numbers, and round as they say; that their bits are TFLite's is what
tests of quantised LSTMs and of softmax say.
"""

import numpy as np
import pytest

from cgraph.formats.tflite.fixed_functions import LONG, WORDS, divide, logistic_table, tanh_table
from tests.support.tolerance import assert_near

NUMBERS = np.arange(-(2**15), 2**15)


@pytest.mark.parametrize("bits", [0, 3, 4, 6])
def test_tables_are_near_the_functions(bits):
    x = NUMBERS * 2.0 ** (bits - 15)
    for table, want in ((logistic_table(bits), 1 / (1 + np.exp(-x))), (tanh_table(bits), np.tanh(x))):
        assert table.dtype == np.int16 and table.size == 1 << 16
        assert_near(table / 2.0**15, want, "fixed point of 15 bits")
    assert logistic_table(bits)[1 << 15] == 1 << 14 and tanh_table(bits)[1 << 15] == 0


@pytest.mark.parametrize("bits", [3, 4])
def test_tables_are_symmetric(bits):
    below, above = NUMBERS[1 : 1 << 15] + (1 << 15), (1 << 15) - NUMBERS[1 : 1 << 15]
    np.testing.assert_array_equal(tanh_table(bits)[below], -tanh_table(bits)[above])
    np.testing.assert_array_equal(logistic_table(bits)[below], WORDS.one - logistic_table(bits)[above])


@pytest.mark.parametrize("numbers", [WORDS, LONG])
def test_exponentials_and_reciprocals_are_near_those_of_real_numbers(numbers):
    one = numbers.one + 1
    x = np.arange(0, one, one // 997)
    for bits in (2, 5, 7):
        assert_near(numbers.exp_of_negative(-x, bits) / one, np.exp(-x * 2.0**bits / one), "fixed point of 15 bits")
    assert_near(numbers.reciprocal(x) / one * 2, 1 / (1 + x / one), "fixed point of 15 bits")
    assert numbers.exp_of_negative(np.array([0]), 5) == numbers.one


def test_products_round_halves_up_and_quotients_away_from_zero():
    half = 1 << 14
    assert WORDS.product(np.array([1, -1, 3, -3]), half).tolist() == [1, 0, 2, -1]
    assert WORDS.product(np.array([-(1 << 15)]), -(1 << 15)).tolist() == [WORDS.one]
    assert divide(np.array([1, -1, 3, -3, 2, -2]), 1).tolist() == [1, -1, 2, -2, 1, -1]
    assert divide(np.array([5, -5]), 0).tolist() == [5, -5]


def test_scaling_clips_to_the_ends():
    assert WORDS.scale(np.array([20000, -20000, 3]), 1).tolist() == [WORDS.one, -WORDS.one - 1, 6]
    assert WORDS.scale(np.array([20000, -3]), -1).tolist() == [10000, -2]
    assert (WORDS.constant(1 << 30), LONG.constant(1 << 30)) == (1 << 14, 1 << 30)
