"""Pools and depthwise convolution in blocks of threads are what NumPy computes, for shapes of the CPU's tests."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import RELU6
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.depthwise.calls import depthwise_calls, pack_depthwise
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pool.calls import average_pool_calls, max_pool_calls
from cgraph.kernels.pool_indices.calls import place_calls, spread_calls
from cgraph.kernels.resize.calls import linear_calls, nearest_calls
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.window import gpu_calls as window_calls
from tests.kernels import test_depthwise, test_pool, test_resize
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.images import activated, assert_zero_frame, conv64, laned, plain
from tests.support.kernels import view_of
from tests.support.tolerance import assert_near

POOLS = [
    "3x3, ceil mode, padded", "3x2, dilated", "one row", "3x2, other moves down than across",
    "2x3, other moves across than down",
]  # fmt: skip


def in_blocks(calls, target, order):
    assert [call.kernel.family for call in calls if call.kernel.family.startswith("window.gpu.")]
    run_on_gpu(calls)


@pytest.mark.parametrize("case", POOLS)
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
    run_on_gpu(max_pool_calls(BLOCKS, view_of(out), view_of(x), window).calls)
    np.testing.assert_array_equal(out, test_pool.windows(x, window, -128).max((-1, -2)))


def test_average_pool_in_float64():
    x, window, size = test_pool.values(test_pool.CASES["3x3, stride 2"], "f8")
    want = test_pool.seen(x, window, size, 0.0).sum(-1) / 9
    calls = lambda out, x: average_pool_calls(BLOCKS, out, x, window, True)  # noqa: E731
    for got in test_pool.in_both(calls, x, size, BLOCKS, run=in_blocks):
        assert_near(got, want, "float64 formulas")


@pytest.mark.parametrize("case", ["one pixel", "one row", "7x7, stride 2", "3x2, other moves down than across"])
def test_depthwise_convolution(case):
    test_depthwise.depthwise(test_depthwise.CASES[case], BLOCKS, run=in_blocks)
    test_depthwise.depthwise(test_depthwise.CASES[case], BLOCKS, dtype="f8", run=in_blocks)


@pytest.mark.parametrize("case", POOLS)
def test_places_of_largest_elements_and_the_gradient(case):
    """The bits of the kernels of one thread."""
    x, window, size = test_pool.values(test_pool.CASES[case])
    x[0, 1, 0, 2] = np.nan
    g = np.random.default_rng(4).integers(-9, 9, (*x.shape[:2], *size)).astype("f4")
    found = []
    for target in (BLOCKS, GPU):
        places, out = np.zeros(g.shape, "i4"), np.full(x.shape, np.nan, "f4")
        calls = place_calls(target, view_of(places), view_of(x), window).calls
        calls += spread_calls(target, view_of(out), view_of(places), view_of(g), window).calls
        assert all(call.kernel.is_block == target.has_blocks for call in calls)
        run_on_gpu(calls)
        found.append((places, out))
    for one, other in zip(*found):
        assert one.tobytes() == other.tobytes()
    assert found[0][1].sum() == g.sum()


@pytest.mark.parametrize("shape, size", [((2, 3, 8, 9), (5, 4)), ((1, 17, 1, 6), (3, 13))], ids=str)
def test_resizing(shape, size):
    x = test_resize.images(shape).swapaxes(2, 3).copy().swapaxes(2, 3)
    out = np.full((*shape[:2], *size), np.nan, "f4")
    in_blocks(linear_calls(BLOCKS, view_of(out), view_of(x)).calls, BLOCKS, "all")
    assert_near(out, test_resize.linear64(x, size, "half_pixel"), "float32 products")
    in_blocks(nearest_calls(BLOCKS, view_of(out), view_of(x)).calls, BLOCKS, "all")
    np.testing.assert_array_equal(out, test_resize.nearest64(x, size, "half_pixel", "round_prefer_floor"))


def drawn(*shape, dtype="f4"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


WINDOW = test_pool.Window((3, 2), (2, 1), (1, 1, 0, 1), (1, 2))
SIZE = WINDOW.result(7, 8)


def depthwise(out, x, bias=None):
    shape = ConvShape(x.shape[1], *x.shape[2:], x.shape[1], BLOCKS, WINDOW, x.shape[1])
    filters = drawn(x.shape[1], 1, 3, 2)
    source, to = laned(x, 1, WINDOW.halo(*x.shape[2:])), laned(out, 1, (1, 0, 2, 1))
    weights, biases = Pointer(pack_depthwise(shape, filters)), bias is not None and Pointer(bias)
    return depthwise_calls(shape, to, source, weights, Epilogue(biases or None, activation=RELU6)).calls, to, filters


MADE = {
    "pool": lambda out, x: max_pool_calls(BLOCKS, view_of(out), view_of(x), WINDOW).calls,
    "places": lambda out, x: place_calls(BLOCKS, view_of(out.astype("i4")), view_of(x), WINDOW).calls,
    "spread": lambda out, x: (
        spread_calls(BLOCKS, view_of(out), view_of(x.astype("i4")), view_of(x.copy()), WINDOW).calls
    ),
    "resize": lambda out, x: linear_calls(BLOCKS, view_of(out), view_of(x)).calls,
    "nearest": lambda out, x: nearest_calls(BLOCKS, view_of(out), view_of(x)).calls,
    "depthwise": lambda out, x: depthwise(out, x)[0],
}


@pytest.mark.parametrize("name", MADE)
def test_more_pixels_than_threads_have_the_other_kernels(name, monkeypatch):
    """And no images need no call."""
    sizes = ((7, 8), SIZE) if name == "spread" else (SIZE, (7, 8))
    out, x = (drawn(2, 3, *size) for size in sizes)
    monkeypatch.setattr(window_calls, "THREADS", out.size)
    for most, is_block in ((out.size + 1, True), (out.size, False)):
        monkeypatch.setattr(window_calls, "MOST_ELEMENTS", most)
        [call] = MADE[name](out, x)
        assert call.kernel.is_block == is_block and (call.tasks == 1 or not is_block)
    monkeypatch.setattr(window_calls, "THREADS", out.size - 1)
    monkeypatch.setattr(window_calls, "MOST_ELEMENTS", out.size + 1)
    assert MADE[name](out, x)[0].tasks == 2
    if name != "depthwise":
        assert MADE[name](out[:0], x[:0]) == ()


@pytest.mark.parametrize("has_bias", [False, True])
def test_depthwise_convolution_with_and_without_a_bias(has_bias):
    x, out = drawn(2, 3, 7, 8), np.full((2, 3, *SIZE), 7, "f4")
    bias = drawn(3) if has_bias else None
    calls, to, filters = depthwise(out, x, bias)
    run_on_gpu(calls)
    want = conv64(x, filters, WINDOW, 3) + (bias[:, None, None] if has_bias else 0)
    assert_near(plain(to), activated(want, RELU6), "depthwise convolution", 1)
    assert_zero_frame(to)
