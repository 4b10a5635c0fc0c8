"""The language of kernels for a GPU: tasks of threads and of blocks, shared memory, lanes of a warp, copies."""

import numpy as np
import pytest

from cgraph.kernels.llvm.gpu_build import TASK_THREADS, block
from tests.support.emitted import run_emitted_on_gpu


@pytest.mark.parametrize("tasks", [1, TASK_THREADS, TASK_THREADS + 1, 70])
def test_each_thread_has_a_task_and_those_beyond_the_last_do_nothing(tasks):
    out = np.full(128, -1)

    def write(k, place):
        with k.task_loop() as i:
            place.store(i * 2, i)

    run_emitted_on_gpu(write, out, tasks=tasks)
    assert out.tolist() == [*range(0, 2 * tasks, 2), *[-1] * (128 - tasks)]


def test_blocks_know_their_number_their_threads_and_their_digits():
    out = np.full((12, 32, 4), -1)

    @block(32)
    def write(k, place):
        sizes = [k.const(n, "i8") for n in (2, 3)]
        at = (k.block() * 32 + k.thread()) * 4
        place.store(k.thread(anew=True), at)
        for i, digit in enumerate(k.block_digits(*sizes, anew=True)):
            place.store(digit, at + (i + 1))

    run_emitted_on_gpu(write, out, tasks=12)
    for n in range(12):
        assert out[n, :, 0].tolist() == list(range(32))
        assert out[n, 5, 1:].tolist() == [n // 6, n // 3 % 2, n % 3]


def test_numbers_without_signs_below_2_to_the_32nd_have_digits():
    x, out = np.array([2**32 - 1]), np.zeros(3, "i8")

    def write(k, source, place):
        for i, digit in enumerate(k.digits(source.load(), k.const(10, "i8"), k.const(1000, "i8"))):
            place.store(digit, i)

    run_emitted_on_gpu(write, x, out)
    assert out.tolist() == [429496, 7, 295]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_threads_of_a_block_read_what_the_others_wrote_after_a_barrier(dtype):
    x, out = np.arange(64, dtype=dtype) + 1, np.zeros(64, dtype)

    @block(64)
    def write(k, source, place):
        first, second = k.shared(dtype, 64), k.shared(dtype, 64)
        i = k.thread()
        first.store(source.load(i), i)
        second.store(source.load(i) * k.const(100, dtype), i)
        k.barrier()
        place.store(first.load(63 - i) + second.load(i), i)

    run_emitted_on_gpu(write, x, out)
    np.testing.assert_array_equal(out, x[::-1] + 100 * x)


@pytest.mark.parametrize("dtype", ["f4", "u4", "f8", "i8"])
@pytest.mark.parametrize("mask", [1, 4, 16])
def test_lanes_of_a_warp_exchange_values_of_four_and_of_eight_bytes(mask, dtype):
    x = (np.arange(32) * 3 + 1).astype(dtype)
    x[5] = np.finfo(dtype).max if dtype[0] == "f" else np.iinfo(dtype).max  # both halves of eight bytes count
    out = np.zeros(32, dtype)

    @block(32)
    def write(k, source, place):
        i = k.thread()
        place.store(k.from_lane(source.load(i), mask), i)

    run_emitted_on_gpu(write, x, out)
    np.testing.assert_array_equal(out, x[np.arange(32) ^ mask])


def test_values_become_one_vector_and_bytes_are_copied_without_a_library():
    x, out, copy = np.arange(4, dtype="f4"), np.zeros(4, "f4"), np.zeros(16, "u1")

    def write(k, source, place, target):
        place.store(k.vector([source.load(i) for i in (2, 0, 3, 1)]), align=16)
        k.copy_bytes(target + 1, source, k.const(13, "i8"))

    run_emitted_on_gpu(write, x, out, copy)
    assert out.tolist() == [2, 0, 3, 1]
    assert copy.tolist() == [0, *x.view("u1")[:13], 0, 0]
