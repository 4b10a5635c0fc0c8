"""Normalisation by teams of threads, and across channels: any length and groups, which scale, edges, in place."""

import numpy as np
import pytest

from cgraph.kernels.normalise.calls import group_norm_calls, layer_norm_calls, local_response_calls
from cgraph.kernels.team.gpu_signature import FEW, MANY
from tests.kernels.test_normalise import normalised
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_close, assert_near

LENGTHS = [(3, 5), (5, FEW + 1), (2, MANY + 3)]  # results by elements: a thread, a warp, a block for each
every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def in_blocks(calls):
    assert calls and all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)


@every_float
@pytest.mark.parametrize("results, length", LENGTHS)
def test_layer_norm(results, length, dtype):
    x, scale, shift = draw(results, length, dtype=dtype) + 3, draw(length, dtype=dtype), draw(length, dtype=dtype)
    want = normalised(x, (1,)) * scale + shift
    (call,) = layer_norm_calls(BLOCKS, *map(view_of, (x, x, scale, shift)), 1, 1e-5)
    run_on_gpu([call])
    assert call.kernel.is_block
    assert_close(x, want.astype(dtype), 4)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups):
    x, scale, shift = draw(2, 6, 3, 5), draw(6), draw(6)[::-1].copy()
    out = np.full_like(x, np.nan)
    run_on_gpu(group_norm_calls(BLOCKS, *map(view_of, (out, x, scale, shift)), groups, 1e-5))
    want = normalised(x.reshape(2, groups, -1), (2,)).reshape(x.shape)
    assert_close(out, (want * scale[:, None, None] + shift[:, None, None]).astype("f4"), 4)


@pytest.mark.parametrize("beta", [0.75, 0.6])
def test_responses_across_channels(beta):
    x = np.random.default_rng(0).standard_normal((2, 7, 3, 5), "float32")
    squares = np.pad(np.square(x), ((0, 0), (1, 2), (0, 0), (0, 0)))
    want = x / (1.5 + 0.3 / 4 * sum(squares[:, i : i + 7] for i in range(4))) ** beta
    out = np.zeros_like(x)
    in_blocks(local_response_calls(BLOCKS, view_of(out), view_of(x), 4, 0.3, beta, 1.5))
    assert_near(out, want, "float32 sums")


@pytest.mark.parametrize("length", [FEW - 1, FEW, MANY])
def test_rows_without_scale_and_nothing_beyond_the_last(length):
    x, room = draw(3, length), np.full((4, length), 77, "f4")
    in_blocks(layer_norm_calls(BLOCKS, view_of(room[:3]), view_of(x), None, None, 1, 1e-5))
    assert_close(room[:3], normalised(x, (1,)).astype("f4"), 4)
    assert (room[3] == 77).all()


def test_rows_of_several_axes_have_a_scale_for_each_element():
    x, scale, shift = draw(2, 3, 4, 5), draw(4, 5) + 2, draw(4, 5)[::-1].copy()
    out = np.full_like(x, np.nan)
    in_blocks(layer_norm_calls(BLOCKS, *map(view_of, (out, x, scale, shift)), 2, 1e-5))
    assert_close(out, (normalised(x, (2, 3)) * scale + shift).astype("f4"), 4)


@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 3.0])
def test_epsilon_is_added_to_the_variance(epsilon):
    x = draw(4, 40) * 2
    out, wide = np.zeros_like(x), x.astype("f8")
    in_blocks(layer_norm_calls(BLOCKS, view_of(out), view_of(x), None, None, 1, epsilon))
    centred = wide - wide.mean(1, keepdims=True)
    assert_near(out, centred / np.sqrt((centred**2).mean(1, keepdims=True) + epsilon), "normalisation", 4)


def test_the_variance_of_numbers_far_from_zero_is_taken_about_their_mean():
    """Squares of 4096 lose 8 bits of what differs; whole numbers about a mean of 4096 lose none."""
    x = (np.arange(32) % 2 * 2 - 1 + np.array([[4096], [-4096]])).astype("f4")
    out = np.zeros_like(x)
    in_blocks(layer_norm_calls(BLOCKS, view_of(out), view_of(x), None, None, 1, 0.0))
    np.testing.assert_array_equal(out, np.sign(x - x.mean(1, keepdims=True)))


@pytest.mark.parametrize("size", [1, 2, 4, 5, 20])
def test_windows_of_channels_end_with_the_channels(size):
    """Half of an even window lies one channel farther to the right."""
    x = draw(2, 6, 3, 4)
    before = (size - 1) // 2
    squares = np.pad(np.square(x.astype("f8")), ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    total = sum(squares[:, i : i + 6] for i in range(size))
    room = np.full(x.size + 70, 77, "f4")
    out = room[: x.size].reshape(x.shape)
    in_blocks(local_response_calls(BLOCKS, view_of(out), view_of(x), size, 0.5, 1.0, 2.0))
    assert_near(out, x / (2.0 + 0.5 / size * total), "float32 sums")
    assert (room[x.size :] == 77).all()
