"""The difference of outputs as one number."""

import math

import numpy as np
import pytest

from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.running.difference import difference, output_error


def test_it_is_relative_to_the_largest_finite_value():
    y = np.array([1.0, -8.0, np.inf, np.nan])
    assert difference(y + np.array([0, 2, 0, 0]), y) == 0.25
    assert difference(y, y) == 0


def test_another_shape_and_one_sided_infinities_are_infinite():
    y = np.array([1.0, 2.0])
    assert difference(y[:1], y) == math.inf
    assert difference(np.array([1.0, np.nan]), y) == difference(np.array([1.0, np.inf]), y) == math.inf
    assert difference(np.zeros(0), np.zeros(0)) == 0
    for other in (np.nan, np.inf, -np.inf):
        assert difference(y, np.array([1.0, other])) == math.inf


def test_zeros_differ_from_anything_by_more_than_any_tolerance():
    assert difference(np.full(3, 1e-20), np.zeros(3)) > 1


def test_integers_and_booleans_count_by_the_share_that_differs():
    y = np.arange(8)
    assert output_error(np.where(y == 3, 900, y), y) == 1 / 8
    assert output_error(y > 3, y > 4) == 1 / 8
    assert output_error(y[:0], y[:0]) == 0 and output_error(y[:2], y) == 1


def test_stored_numbers_are_compared_as_floats():
    x, y = (convert(np.array(a, "f4"), BFLOAT16.dtype) for a in ([1.0, 2.5], [1.0, 2.0]))
    assert output_error(x, y) == 0.25
    assert output_error(np.array([3 + 4j]), np.array([0 + 5j])) == difference(np.array([3 + 4j]), np.array([5j])) > 0


def test_opposite_infinities_and_the_second_array_count():
    y = np.array([1.0, np.inf])
    assert difference(-y, y) == difference(np.array([1.0, -np.inf]), y) == math.inf
    one = np.array([1.0, 4.0])
    assert (difference(2 * one, one), difference(one, 2 * one)) == (1, 0.5)
    assert difference(one[None], one) == math.inf, "as many elements, of another shape"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "i8", "u1", "?"])
def test_outputs_of_any_dtype_are_equal_to_themselves_alone(dtype):
    y = np.array([1, 0, 1, 0]).astype(dtype)
    x = y.copy()
    assert output_error(x, y) == 0
    x[3] = 1
    assert output_error(x, y) == (1 if y.dtype.kind in "fc" else 0.25)
    assert output_error(y[:0], y) in (1, math.inf) and output_error(y[:0], y[:0]) == 0


def test_bytes_that_wrap_around_are_no_smaller_difference():
    x, y = np.array([0, 7], "u1"), np.array([255, 7], "u1")
    assert output_error(x, y) == 0.5 and difference(x, y) == 1
