"""Average pooling of bytes: the bits of floats that are added, divided and rounded one after another."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgraph.kernels.pool8.calls import average_pool8_calls
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from tests.kernels.test_pool import CASES, seen
from tests.support.images import buffer, empty_laned, interior, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls

pytestmark = pytest.mark.usefixtures("cuts")

MEANS = {
    "one scale": Mean(0.1, 0, 0.1, 0),
    "one scale, signs": Mean(0.1, 128, 0.1, 128),
    "other scales": Mean(0.037, 3, 0.021, 100),
    "bounds": Mean(0.037, 250, 0.021, 100, 30, 201),
    "a coarse result": Mean(0.037, 77, 3.1, 9),
    "far from each other": Mean(2.0**40, 200, 2.0**-40, 9),
}


def rounded(mean):
    """The same scales as float32, as files have them."""
    return Mean(float(np.float32(mean.scale)), mean.x_zero, float(np.float32(mean.last)), *mean_bounds(mean))


def mean_bounds(mean):
    return mean.zero, mean.low, mean.high


def float_quotients(windows, counts, mean):
    """The quotients of windows ``[..., taps]`` of integers less their zero point, in float32, one tap after another."""
    total = np.zeros(windows.shape[:-1], "f4")
    for tap in range(windows.shape[-1]):
        total = total + windows[..., tap].astype("f4") * np.float32(mean.scale)
    return total / counts.astype("f4") / np.float32(mean.last)


def integer_quotients(windows, counts, mean):
    """The quotients that the kernel computes from sums of integers."""
    factor = np.float32(mean.scale / mean.last) / counts.astype("f4")
    return windows.sum(-1, dtype="i8").astype("f4") * factor


def as_bytes(quotients, mean):
    return np.clip(np.rint(quotients) + mean.zero, mean.low, mean.high).astype("u1")


def pooled(x, window, size, mean, padded):
    """What the kernel means, in NumPy."""
    top, left, bottom, right = window.pad
    ones = np.pad(np.ones(x.shape), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=float(padded))
    counts = seen(ones, Window(window.kernel, window.stride, dilation=window.dilation), size, 0.0).sum(-1)
    return as_bytes(float_quotients(seen(x.astype("i4") - mean.x_zero, window, size, 0), counts, mean), mean)


def assert_pooled(x, window, size, mean, padded, target, order="all", lanes=0):
    """Compare the kernel with NumPy; nothing outside the result is written."""
    target = target_named(target)
    lanes = lanes or target.lanes
    out = empty_laned((*x.shape[:2], *size), lanes, (1, 0, 1, 2), "u1")
    run_calls(
        average_pool8_calls(target, out, laned(x, lanes, (0, 1, 2, 0)), window, mean, padded).calls, target, order
    )
    np.testing.assert_array_equal(plain(out), pooled(x, window, size, mean, padded))
    interior(out)[...] = 0
    assert not buffer(out).any()


def drawn(case, seed=1):
    n, c, h, w, window, more = case
    p, q = window.result(h, w)
    x = np.random.default_rng(seed).integers(0, 256, (n, c, h, w), "u1")
    return x, window, (p + more[0], q + more[1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_means_of_bytes_have_the_bits_of_floats(case, target):
    for i, mean in enumerate(MEANS.values()):
        assert_pooled(*drawn(CASES[case], i), rounded(mean), i % 2 == 0, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
def test_blocks_of_several_vectors_and_any_order_of_tasks(order, target):
    wide = target_named(target).lanes
    for lanes in (wide, 4 * wide, 8 * wide):
        for case in ("3x3, side by side", "3x3, stride 2", "2x2, stride 2"):
            assert_pooled(*drawn(CASES[case]), rounded(MEANS["one scale"]), False, target, order, lanes)


@pytest.mark.parametrize("kernel", [(16, 9), (11, 11), (20, 18), (12, 11)])
def test_sums_of_many_bytes_do_not_wrap(kernel):
    for fill, zero in ((255, 0), (0, 255)):
        x = np.full((1, 3, 20, 21), fill, "u1")
        for window in (Window(kernel), Window(kernel, pad=(3, 2, 3, 2))):
            assert_pooled(x, window, window.result(20, 21), Mean(0.5, zero, 0.75, 100), False, "host")


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_in_the_middle_between_two_integers_round_as_floats_do(target):
    """Halves are half of all quotients here, and floats round some of them in the other direction."""
    differ = 0
    for scale in (0.1, 0.3, 0.7):
        mean, window = rounded(Mean(scale, 0, scale, 0)), Window((1, 2), (1, 2))
        x = np.random.default_rng(3).integers(0, 256, (1, 16, 40, 40), "u1")
        assert_pooled(x, window, (40, 20), mean, False, target)
        windows, counts = seen(x.astype("i4"), window, (40, 20), 0), np.full((40, 20), 2)
        floats, integers = (f(windows, counts, mean) for f in (float_quotients, integer_quotients))
        differ += (as_bytes(floats, mean) != as_bytes(integers, mean)).sum()
    assert differ > 0


@settings(max_examples=40)
@given(
    st.tuples(*[st.integers(1, n) for n in (2, 20, 15, 25, 4, 4, 3, 3, 2, 2)]),
    st.sampled_from(list(MEANS)), st.booleans(), st.sampled_from(TARGETS),
)  # fmt: skip
def test_means_of_any_shape(sizes, mean, padded, target):
    n, c, h, w, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), ((r - 1) // 2, s // 2, r // 2, (s - 1) // 2), tuple(moves[2:]))
    assume(min(window.result(h, w)) > 0)
    x, _, size = drawn((n, c, h, w, window, (0, 0)))
    assume(seen(np.ones(x.shape), window, size, 0.0).sum(-1).min() > 0)
    assert_pooled(x, window, size, rounded(MEANS[mean]), padded, target)


def test_images_of_other_sizes_are_refused():
    target = target_named("host")
    x, out = (empty_laned((1, c, 4, 4), target.lanes, dtype="u1") for c in (8, 40))
    with pytest.raises(ValueError, match="numbers of images or planes differ"):
        average_pool8_calls(target, out, x, Window(), MEANS["one scale"])
