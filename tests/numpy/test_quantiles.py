"""Middles and quantiles are NumPy's: every method, every order of axes, the largest numbers."""

import warnings
from itertools import combinations, product

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.evaluated import FLOATS, called, compare, drawn, orders, values

LARGE = {"float32": [3e38, 3.2e38, -3e38, 3.4e38], "float64": [1.5e308, 1.7e308, -1.6e308, 1.6e308]}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", ["median", "nanmedian"])
@pytest.mark.parametrize("count", range(1, 5))
def test_a_median_lies_between_its_two_numbers_however_large_they_are(dtype, function, count):
    """NumPy's own overflows to an infinity from half the largest number on; the mean of two numbers never does."""
    for some in combinations(LARGE[dtype], count):
        x = np.array(some, dtype)
        low, high = np.sort(x)[(count - 1) // 2], np.sort(x)[count // 2]
        (found,) = values(called(f"np.{function}(x)", {"x": cg.Var(x.shape, x.dtype).assign(x)}))
        assert found.dtype == dtype and low <= found <= high, some


@pytest.mark.parametrize("function", ["median", "nanmedian", "quantile", "nanpercentile"])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8"])
def test_middles_along_any_axes_in_any_order(function, dtype):
    share = {"quantile": ", [0.25, 1]", "nanpercentile": ", 30.5"}.get(function, "")
    for axes, keepdims in product(orders(3), (False, True)):
        compare(f"np.{function}(x{share}, axis={axes}, keepdims={keepdims})", dtype, x=drawn((2, 3, 4), dtype))


METHODS = (
    "linear", "weibull", "hazen", "interpolated_inverted_cdf", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("function", ["quantile", "nanquantile"])
@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_every_method_at_every_share(method, function, count):
    q = np.array([0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0])
    compare(f"np.{function}(x, q, method={method!r})", x=drawn((count,)), q=q)
    if function == "nanquantile" and count > 2:
        x = drawn((3, count))
        x[0, 1] = x[1, 0] = x[1, 2] = np.nan
        compare(f"np.nanquantile(x, q, axis=1, method={method!r})", x=x, q=q)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("call", ["median(x", "nanmedian(x", "nanquantile(x, 0.3", "nanpercentile(x, [30, 40]"])
def test_middles_of_no_elements_are_nan(call):
    for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1)):
        for dtype in ("float64", "int32"):
            for keepdims in (False, True):
                compare(f"np.{call}, axis={axis}, keepdims={keepdims})", "float64", x=np.zeros(shape, dtype))


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_an_operand_that_may_be_overwritten_is_not(name):
    x = drawn((3, 5))
    for q in (0.3, [0.25, 0.5, 1]):
        node = cg.Var(x.shape, "float64").assign(x)
        got = getattr(np, name)(node, q, 1, overwrite_input=True).eval()
        np.testing.assert_array_equal(node.value, x)
        np.testing.assert_array_equal(got, getattr(np, name)(node, q, 1).eval())


@pytest.mark.parametrize("call", [
    f"np.{name}({x}, {q}{more})" for name, q in (("quantile", 0.3), ("percentile", 30), ("nanquantile", [0.5]),
                                               ("nanpercentile", 50), ("median", None), ("nanmedian", None))
    for x in ("z", "y") for more in ("", ", 0") if q is not None or (x, more) != ("z", "")
])  # fmt: skip
def test_quantiles_of_complex_numbers_and_bools_are_as_in_numpy(call):
    if "median" in call:
        call = call.replace(", None", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(call, z=np.array([1 + 2j, 3 - 1j, 0.5]), y=np.array([True, False, True]))


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("count", [4, 5])
def test_a_median_of_what_is_no_number_is_none_wherever_it_stands(count, place):
    x = np.array([[3.0, -1, 2, 0.5, 7], [1, 5, -2, 4, 0]])[:, :count]
    x[0, place % count] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare("np.median(x, 1), np.median(x), np.nanmedian(x, 1), np.median(x, 0, keepdims=True)", x=x)
        compare("np.quantile(x, [0, 0.5, 1], 1), np.percentile(x, 20)", x=x)
