"""Random numbers of a GPU's threads: the bits of every device, any number of them, nothing beyond the last."""

import numpy as np
import pytest

from cgraph.kernels import philox
from cgraph.kernels.random.calls import random_calls
from tests.kernels.test_random import KEY, REFERENCE
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_near


def in_blocks(calls):
    assert calls and all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)


@pytest.mark.parametrize("kind, dtype", REFERENCE)
def test_random_numbers_are_those_of_every_device(kind, dtype):
    for size in (1, 64, 1000):
        out = np.zeros(size, "?" if dtype == "b1" else dtype)
        in_blocks(random_calls(BLOCKS, kind, view_of(out), view_of(KEY), 0.3))
        np.testing.assert_array_equal(out, REFERENCE[kind, dtype](KEY, size))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_numbers_have_the_bits_of_one_thread(dtype):
    found = [np.zeros(200, dtype) for _ in range(2)]
    for target, out in zip((BLOCKS, GPU), found):
        run_on_gpu(random_calls(target, "normal", view_of(out), view_of(KEY)))
    assert found[0].tobytes() == found[1].tobytes() and 0.8 < found[0].std() < 1.2


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 65, 127, 129, 2049])
def test_numbers_end_with_the_last_one(size):
    """A thread has four or two numbers, 16 apart; those of the next thread begin one further on."""
    for (kind, dtype), reference in REFERENCE.items():
        out = np.zeros(size + 70, "?" if dtype == "b1" else dtype)
        in_blocks(random_calls(BLOCKS, kind, view_of(out[:size]), view_of(KEY), 0.3))
        np.testing.assert_array_equal(out[:size], reference(KEY, size))
        assert not out[size:].any()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_numbers_are_those_of_the_reference(dtype):
    out = np.zeros(700, dtype)
    in_blocks(random_calls(BLOCKS, "normal", view_of(out), view_of(KEY)))
    assert_near(out, philox.normal(KEY, 700, dtype), "normal numbers")


@pytest.mark.parametrize("probability, share", [(0.0, 0), (1.0, 1), (0.3, None)])
def test_truth_values_have_their_probability(probability, share):
    out = np.full(1000, not share)
    in_blocks(random_calls(BLOCKS, "bernoulli", view_of(out), view_of(KEY), probability))
    np.testing.assert_array_equal(out, philox.bernoulli(KEY, 1000, probability))
    assert share is None or (out == share).all()


def test_both_halves_of_the_key_count():
    drawn = []
    for key in ([1, 2], [1, 3], [2, 2], [2, 1]):
        out = np.zeros(100, "u4")
        in_blocks(random_calls(BLOCKS, "bits", view_of(out), view_of(np.array(key, np.uint32))))
        np.testing.assert_array_equal(out, philox.bits(np.array(key, np.uint32), 100, 4))
        drawn.append(out.tobytes())
    assert len(set(drawn)) == 4
