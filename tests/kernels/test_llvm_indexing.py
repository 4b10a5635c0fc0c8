"""Helpers of kernels that read or write at indices: the error word, and how an update meets what is there."""

import numpy as np
import pytest

from cgraph.kernels.llvm.indexing import combine, set_error
from cgraph.kernels.target import host_target
from tests.support.emitted import applied, run_emitted

HOST = host_target()
NAN = np.nan


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("has_word", [False, True])
def test_the_error_word_is_set_only_by_an_index_outside_and_only_where_there_is_one(has_word, outside):
    error = np.zeros(2, "i8")
    places = np.array([error.ctypes.data if has_word else 0])
    run_emitted(lambda k, at: set_error(k, k.const(outside, "b1"), at.load()), HOST, places)
    assert error.tolist() == [int(has_word and outside), 0]


@pytest.mark.parametrize("dtype", ["f4", "i8", "u8"])
@pytest.mark.parametrize("how", ["add", "mul", "min", "max"])
def test_updates_combine_as_numpys_functions(how, dtype):
    x, y = np.array([1, 5, 3, 2**40 if dtype != "f4" else 7, 0, 2, 9, 4], dtype), np.arange(8)[::-1].astype(dtype)
    if dtype == "u8":
        x[0] = 2**63 + 5  # negative as a number with a sign
    f = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[how]
    for lanes in (0, 8):
        got = applied(lambda k, a, b: combine(k, how, a, b), HOST, x, y, lanes=lanes)
        np.testing.assert_array_equal(got, f(x, y))


@pytest.mark.parametrize("how", ["min", "max"])
def test_a_nan_on_either_side_stays(how):
    x, y = np.array([NAN, 1, NAN, 2, 3, 0, 1, 5]), np.array([1, NAN, NAN, 3, 2, 1, 1, 4])
    got = applied(lambda k, a, b: combine(k, how, a, b), HOST, x, y)
    np.testing.assert_array_equal(got, (np.minimum if how == "min" else np.maximum)(x, y))
