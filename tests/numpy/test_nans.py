"""Reductions that ignore NaN are NumPy's, whatever is left."""

from itertools import product

import numpy as np
import pytest

from tests.numpy.evaluated import FLOATS, compare

ENDS = [-np.inf, np.inf, np.nan, 1.0]


@pytest.mark.parametrize("function", ["median", "nanmedian", "nanmax", "nanmin", "nansum", "nanmean", "nanvar", "ptp"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_numpy_makes_of_infinities_and_nan(function, count):
    for some in product(ENDS, repeat=count):
        compare(f"np.{function}(x)", x=np.array(some))


GAPS = np.array([[np.nan, 2.0, np.nan], [np.nan, -1.0, 5.0], [np.nan, np.nan, 3.0], [np.nan, 4.0, 3.0]])
NANS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"]


@pytest.mark.parametrize("function", NANS)
@pytest.mark.parametrize("dtype", [*FLOATS, "complex128", "int32"])
def test_rows_and_columns_with_some_and_without_any_number(function, dtype):
    if dtype == "complex128" and function in ("nanmax", "nanmin"):
        return  # orders of complex numbers have tests of their own
    x = GAPS.astype(dtype) if dtype != "int32" else np.arange(12, dtype=dtype).reshape(4, 3)
    for axis, keepdims in product((None, 0, 1, -1, (0, 1), (-1, 0), ()), (False, True)):
        compare(f"np.{function}(x, axis={axis}, keepdims={keepdims})", dtype, x=x)


@pytest.mark.parametrize("function", ["nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 0.5])
@pytest.mark.parametrize("word", ["ddof", "correction"])
def test_variances_count_only_the_numbers_that_a_mask_names(function, ddof, word):
    mask = np.array([[True, True, True], [True, False, True], [True, True, False], [False, True, True]])
    for axis, keepdims in product((None, 0, 1), (False, True)):
        compare(f"np.{function}(x, axis={axis}, {word}={ddof}, keepdims={keepdims})", x=GAPS)
        compare(f"np.{function}(x, axis={axis}, {word}={ddof}, keepdims={keepdims}, where=w)", x=GAPS, w=mask)
    compare(f"np.{function}(x, axis=0, mean=m, {word}={ddof})", x=GAPS, m=np.array([[1.0, 2.0, 3.0]]))


@pytest.mark.parametrize("function", ["nanargmax", "nanargmin"])
def test_places_are_those_of_the_numbers(function):
    x = GAPS[:, 1:]
    for axis, keepdims in product((None, 0, 1, -2), (False, True)):
        compare(f"np.{function}(x, axis={axis}, keepdims={keepdims})", x=x)


@pytest.mark.parametrize("function", ["nancumsum", "nancumprod"])
def test_running_sums_step_over_nan(function):
    for axis, kind in product((None, 0, 1, -2), ("", ", dtype='float32'")):
        compare(f"np.{function}(x, axis={axis}{kind})", "float32" if kind else "float64", x=GAPS)


@pytest.mark.parametrize("function", ["nansum", "nanprod", "nanmax", "nanmin"])
def test_a_first_value_counts_once_and_where_nothing_is_left(function):
    mask = np.array([[True, False, True]])
    for axis in (None, 0, 1):
        compare(f"np.{function}(x, axis={axis}, initial=2.5)", x=GAPS)
        compare(f"np.{function}(x, axis={axis}, initial=2.5, where=w)", x=GAPS, w=mask)
