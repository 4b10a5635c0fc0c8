"""Depthwise convolution on plain images: vectors of columns have the bits of single columns."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, RELU, BoundedActivation
from cgraph.kernels.depthwise.plain_calls import plain_depthwise_calls
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from tests.support.images import conv64
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")


@pytest.mark.parametrize(
    "activation", [NONE, RELU, BoundedActivation(-0.5, 2.0, 0.25)], ids=["none", "relu", "general"]
)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_reversed_columns_have_the_same_bits(stride, dtype, target, activation):
    """Columns that run backwards in memory are computed one by one."""
    rng, window = np.random.default_rng(stride), Window((3, 3), (1, stride), (1, 2, 1, 1))
    x, filters = rng.normal(size=(2, 3, 6, 77)).astype(dtype), rng.normal(size=(3, 3, 3)).astype(dtype)
    bias, results = rng.normal(size=3).astype(dtype), []
    for images in (x, np.ascontiguousarray(x[..., ::-1])[..., ::-1]):
        for order in ORDERS:
            out = np.full((2, 3, *window.result(6, 77)), np.nan, dtype)
            views = view_of(out), view_of(images), Pointer(filters), Pointer(bias), window, activation
            run_calls(plain_depthwise_calls(target_named(target), *views).calls, target_named(target), order)
            results.append(out)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    assert not np.isnan(results[0]).any()


def test_a_nan_reaches_the_windows_that_contain_it():
    x = np.ones((1, 1, 5, 40), "f4")
    x[0, 0, 2, 20] = np.nan
    out, window = np.zeros_like(x), Window((3, 3), pad=(1, 1, 1, 1))
    filters, bias = np.ones((1, 3, 3), "f4"), np.zeros(1, "f4")
    run_calls(
        plain_depthwise_calls(
            target_named("host"), view_of(out), view_of(x), Pointer(filters), Pointer(bias), window
        ).calls
    )
    want = np.zeros((5, 40), bool)
    want[1:4, 19:22] = True
    np.testing.assert_array_equal(np.isnan(out[0, 0]), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stride", [1, 2])
def test_results_whose_columns_lie_apart_have_the_same_bits(stride, target):
    rng, window = np.random.default_rng(stride), Window((3, 3), (2, stride), (1, 2, 1, 1), (1, 2))
    x, filters = rng.standard_normal((2, 3, 9, 77)).astype("f4"), rng.standard_normal((3, 3, 3)).astype("f4")
    bias, size = rng.standard_normal(3).astype("f4"), (2, 3, *window.result(9, 77))
    apart, dense = np.full((*size, 2), 77, "f4"), np.full(size, np.nan, "f4")
    for out in (apart[..., 0], dense):
        views = view_of(out), view_of(x), Pointer(filters), Pointer(bias), window
        run_calls(plain_depthwise_calls(target_named(target), *views).calls, target_named(target))
    np.testing.assert_array_equal(apart[..., 0], dense)
    assert (apart[..., 1] == 77).all() and not np.isnan(dense).any()
    assert_near(dense, conv64(x, filters[:, None], window, 3) + bias[:, None, None], "depthwise convolution", 1)
