"""Pools and depthwise convolution in blocks of threads are what NumPy computes, for shapes of the CPU's tests."""

import numpy as np
import pytest

from cgraph.kernels.calls.pool import average_pool_calls, max_pool_calls
from tests.kernels import test_depthwise, test_pool
from tests.support.gpu import BLOCKS, run_on_gpu


def in_blocks(calls, target, order):
    assert [call.kernel.family for call in calls if call.kernel.family.startswith("gpu.window.")]
    run_on_gpu(calls)


@pytest.mark.parametrize("case", ["3x3, ceil mode, padded", "3x2, dilated", "one row"])
def test_max_pool(case):
    x, window, size = test_pool.values(test_pool.CASES[case])
    x[0, 1, 0, 2] = np.nan
    want = test_pool.seen(x, window, size, -np.inf).max(-1)
    for got in test_pool.in_both(lambda out, x: max_pool_calls(BLOCKS, out, x, window), x, size, BLOCKS, run=in_blocks):
        np.testing.assert_array_equal(got, want)


def test_max_pool_of_integers():
    x = np.random.default_rng(2).integers(-100, 100, (1, 3, 9, 8)).astype("i2")
    window = test_pool.Window((3, 3), (2, 2), (1, 1, 1, 1))
    out = np.zeros((1, 3, *window.result(9, 8)), "i2")
    run_on_gpu(max_pool_calls(BLOCKS, test_pool.view_of(out), test_pool.view_of(x), window).calls)
    np.testing.assert_array_equal(out, test_pool.windows(x, window, -128).max((-1, -2)))


def test_average_pool_in_float64():
    x, window, size = test_pool.values(test_pool.CASES["3x3, stride 2"], "f8")
    want = test_pool.seen(x, window, size, 0.0).sum(-1) / 9
    calls = lambda out, x: average_pool_calls(BLOCKS, out, x, window, True)  # noqa: E731
    for got in test_pool.in_both(calls, x, size, BLOCKS, run=in_blocks):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("case", ["one pixel", "one row", "7x7, stride 2"])
def test_depthwise_convolution(case):
    test_depthwise.depthwise(test_depthwise.CASES[case], BLOCKS, run=in_blocks)
    test_depthwise.depthwise(test_depthwise.CASES[case], BLOCKS, dtype="f8", run=in_blocks)
