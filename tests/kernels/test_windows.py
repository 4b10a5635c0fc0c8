"""What windows are computed with: the larger value and its tap, the least value of a dtype, interpolation."""

import numpy as np
import pytest

from cgraph.kernels.llvm import windows
from cgraph.kernels.target import host_target
from tests.support.emitted import applied, every_target

HOST = host_target()
NAN, INF = np.nan, np.inf


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "i8"])
@pytest.mark.parametrize("lanes", [0, 8])
def test_the_larger_value_is_numpys_also_beside_a_nan(lanes, dtype, target):
    if dtype[0] == "f":
        x, y = np.array([NAN, 1, NAN, -INF, INF, 2, 0, 3], dtype), np.array([1, NAN, NAN, -1, 5, 2, -1, 4], dtype)
    else:
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 0, 1, 5, info.max, 3, 2], dtype)
        y = np.array([info.max, info.min, 1, 0, 5, info.max - 1, 4, info.min], dtype)
    np.testing.assert_array_equal(applied(windows.larger, target, x, y, lanes=lanes), np.maximum(x, y))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u4", "u8"])
@pytest.mark.parametrize("lanes", [0, 4])
def test_nothing_is_less_than_the_least_value(lanes, dtype):
    got = applied(lambda k, a: windows.least(k, dtype, lanes), HOST, np.zeros(4, dtype), lanes=lanes)
    assert got.tolist() == [-INF if dtype[0] == "f" else np.iinfo(dtype).min] * 4


@pytest.mark.parametrize("lanes", [0, 8])
def test_the_first_of_the_largest_values_keeps_its_tap_and_the_first_nan_stays(lanes):
    value, best = np.array([2.0, 2, 1, NAN, NAN, 1, 3, INF]), np.array([1.0, 2, 2, 1, NAN, NAN, -INF, 3])
    tap, place = np.arange(10, 18), np.arange(20, 28)

    def write(k, v, t, b, p):
        return windows.larger_with_tap(k, v, t, b, p)

    got = applied(write, HOST, value, tap, best, place, dtypes=("f8", "i8"), lanes=lanes)
    np.testing.assert_array_equal(got[0], [2, 2, 2, NAN, NAN, NAN, 3, INF])
    assert got[1].tolist() == [10, 21, 22, 13, 24, 25, 16, 17]


@pytest.mark.parametrize("lanes", [0, 4])
def test_the_weight_is_that_of_the_second_value(lanes):
    x, y = np.array([1.0, 2, 3, 4]), np.array([5.0, 10, 15, 20])
    for weight in (0.0, 0.25, 1.0):
        got = applied(lambda k, a, b, w=weight: windows.interpolate(a, b, k.const(w, "f8")), HOST, x, y, lanes=lanes)
        np.testing.assert_array_equal(got, x * (1 - weight) + y * weight)
