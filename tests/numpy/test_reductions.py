"""Reductions and running sums are NumPy's: every order of axes, masks, no elements."""

import warnings
from itertools import product

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.evaluated import FLOATS, KINDS, assert_same, compare, drawn, orders


@pytest.mark.parametrize("function", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [-1, 0, 0.5, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex128"])
def test_variances_of_few_elements_are_numpys(function, ddof, dtype):
    for n in range(4):
        compare(f"np.{function}(x, ddof={ddof})", dtype, x=drawn((n,), dtype))
        compare(f"np.{function}(x, axis=1, correction={ddof}, keepdims=True)", dtype, x=drawn((2, n), dtype))
    compare(f"np.{function}(x, axis=0, ddof={ddof}, where=w)", dtype, x=drawn((4, 3), dtype), w=WHERE)
    compare(f"np.{function}(x, axis=(1, 0), ddof={ddof})", dtype, x=np.full((2, 2), 3, dtype))


WHERE = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]], bool)  # of columns all, two and none


@pytest.mark.parametrize("method", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 5])
def test_variances_by_method_are_never_negative(method, ddof):
    for n in range(4):
        x = cg.Var((n,), "float64").assign(drawn((n,)))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = getattr(np, method)(drawn((n,)), ddof=ddof)
            found = cg.compile(getattr(cg, method)(x, ddof=ddof), engine="reference")()
        assert not found < 0
        assert_same(found, want)


@pytest.mark.parametrize("function", ["sum", "prod", "mean", "max", "min", "any", "all", "nansum", "nanprod", "nanmax"])
@pytest.mark.parametrize("dtype", KINDS)
def test_reductions_along_any_axes_of_what_a_mask_names(function, dtype):
    x, w = drawn((2, 3, 4), dtype), drawn((2, 3, 4)) > 1.5
    first = "" if function in ("mean", "any", "all") else ", initial=2"
    for axes in [None, *orders(3)]:
        compare(f"np.{function}(x, axis={axes})", dtype, x=x)
        compare(f"np.{function}(x, axis={axes}, where=w{first}, keepdims=True)", dtype, x=x, w=w)
        compare(f"np.{function}(x, axis={axes}, where=w{first})", dtype, x=x, w=w[:1, :, :1])


@pytest.mark.parametrize(
    "function", ["sum", "prod", "mean", "any", "all", "max", "min", "nansum", "nanmean", "median", "nanmedian"]
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_reductions_of_nothing(function, shape):
    if "median" in function and len(shape) == 3:
        return  # NumPy's own ends in an error of its reshape
    for axes in [None, *orders(len(shape))]:
        compare(f"np.{function}(x, axis={axes})", x=np.zeros(shape))
    if function in ("sum", "prod", "max", "min"):
        compare(f"np.{function}(x, initial=3.5, keepdims=True)", x=np.zeros(shape))


@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex128"])
def test_average_lays_weights_along_the_axes_as_they_are_named(returned, keepdims, dtype):
    x, how = drawn((2, 3, 4), dtype), f"returned={returned}, keepdims={keepdims}"
    compare(f"np.average(x, {how})", dtype, x=x)
    compare(f"np.average(x, weights=w, {how})", dtype, x=x, w=drawn(x.shape) + 1)
    for axes in orders(3):
        some = tuple(x.shape[i] for i in axes)
        compare(f"np.average(x, axis={axes}, {how})", dtype, x=x)
        compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(some, seed=3) + 1)
        compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(x.shape, seed=3) + 1)
        if len(axes) == 1:
            compare(f"np.average(x, axis={axes[0]}, weights=w, {how})", dtype, x=x, w=drawn(some) + 1)
        if len(some) > 1 and some[::-1] != some:
            compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(some[::-1]) + 1)


@pytest.mark.parametrize("function", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool"])
def test_running_sums_along_every_axis(function, dtype):
    for axis, kind in product((None, 0, 1, -1), ("", ", dtype='int64'", ", dtype='float32'")):
        compare(f"np.{function}(x, axis={axis}{kind})", "float32", x=drawn((3, 4), dtype))


@pytest.mark.parametrize("function", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("first", [False, True])
def test_running_sums_with_a_first_element(function, first):
    for axis, kind in product((0, 1, 2, -1, -3), ("", ", dtype='float32'")):
        compare(f"np.{function}(x, axis={axis}, include_initial={first}{kind})", "float32", x=drawn((2, 3, 4), "int32"))
    compare(f"np.{function}(x, include_initial={first})", x=drawn((3,)))
    compare(f"np.{function}(x)", x=drawn((3, 2)))


@pytest.mark.parametrize("function", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_the_place_of_an_extreme_is_the_first_of_equal_ones(function):
    x = np.array([[1.0, 3.0, 3.0, 0.0], [0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
    for axis, keepdims in product((None, 0, 1, -1), (False, True)):
        compare(f"np.{function}(x, axis={axis}, keepdims={keepdims})", x=x)
    compare(f"np.{function}(x, axis=1)", x=np.where(x == 3, np.nan, x))


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min])
def test_an_initial_value_is_converted_first_and_may_be_computed(function):
    for dtype in ("int64", "float32", "bool"):
        array = np.array([1, 3, 0], dtype)
        for initial in (-0.5, 2):
            nothing = np.zeros(3, bool)
            for mask in (True, nothing):
                want = function(array, initial=initial, where=mask)
                fixed = cg.jit(lambda x: function(x, initial=initial, where=mask))(array)  # noqa: B023
                computed = cg.jit(lambda x, i: function(x, initial=i, where=mask))(array, initial)  # noqa: B023
                assert fixed == computed == want and fixed.dtype == computed.dtype == want.dtype


CALLS_WITHOUT_A_MASK = (
    "np.sum(x, 0, where=None)", "np.mean(x, 1, where=None)", "np.max(x, where=None)", "np.min(x, 0, where=None)",
    "np.any(x, where=None)", "np.var(x, where=None)", "np.nansum(x, where=None)", "np.nanmean(x, 1, where=None)",
    "np.nanmax(x, where=None, initial=-9)", "np.mean(x, 0, 'int64', where=None)", "np.prod(x, where=None)",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS_WITHOUT_A_MASK)
def test_no_mask_leaves_nothing_out(call):
    x = np.array([[1.0, 2.0, np.nan], [3.0, -1.0, 0.5]] if "nan" in call else [[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]])
    node = cg.Var(x.shape, "float64").assign(x)
    got = eval(call, {"np": np, "x": node}).eval()
    want = eval(call.replace("where=None", "where=True"), {"np": np, "x": x})
    assert_same(got, want)


def test_running_sums_along_the_first_axis_and_the_only_one():
    for call in (
        "np.cumulative_sum(x, axis=0)", "np.cumulative_sum(x, axis=0, include_initial=True)", "np.cumulative_sum(x)",
        "np.cumulative_sum(x[0])", "np.cumulative_prod(x[0], include_initial=True)", "np.cumulative_prod(x, axis=-2)",
        "np.cumulative_sum(x, axis=1, include_initial=True)", "np.cumulative_prod(x, axis=1, dtype='float64')",
    ):  # fmt: skip
        compare(call, x=drawn((3, 4)))
