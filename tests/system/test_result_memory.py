"""Memory of large results: a block is used again when nobody refers to it, never before, and few are kept."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cgraph as cg
from cgraph.system.alignment import ALIGNMENT
from cgraph.system.result_memory import FREE_BLOCKS, LEAST_NBYTES, MOST_NBYTES, FreeBlocks, result_array

FLOATS = LEAST_NBYTES // 4


@pytest.fixture(autouse=True)
def no_blocks():
    gc.collect()
    FREE_BLOCKS.clear()
    yield
    FREE_BLOCKS.clear()


def large(count=FLOATS):
    return result_array((count,), np.dtype("float32"), 4 * count)


def address(x):
    return x.ctypes.data


@pytest.mark.parametrize("shape", [(FLOATS,), (2, FLOATS // 2), (FLOATS + 1,)], ids=str)
def test_an_array_is_aligned_writable_and_in_c_order(shape):
    x = result_array(shape, np.dtype("float32"), 4 * int(np.prod(shape)))
    assert (x.shape, x.dtype, x.flags.c_contiguous, x.flags.writeable) == (shape, np.float32, True, True)
    assert address(x) % ALIGNMENT == 0
    x[...] = 1
    assert x.sum() == x.size


def test_a_block_is_used_again_once_its_array_is_dropped():
    x = large()
    first, other = address(x), large()
    assert address(other) != first
    del x
    assert len(FREE_BLOCKS) == 1
    assert address(large()) == first


@pytest.mark.parametrize(
    "hold",
    [
        lambda x: x[3:5],
        lambda x: x.reshape(2, -1).T,
        lambda x: x.view(np.int32)[1:],
        memoryview,
        lambda x: np.frombuffer(x, np.uint8),
        np.from_dlpack,
        lambda x: x.data.cast("B")[8:],
        lambda x: np.asarray(x.base),
    ],
    ids=["slice", "transpose", "other dtype", "memoryview", "buffer", "DLPack", "bytes", "base"],
)
def test_whatever_refers_to_an_array_keeps_its_block(hold):
    x = large()
    x[...] = 7
    held, first = hold(x), address(x)
    del x
    others = [large() for _ in range(2)]
    for other in others:
        other[...] = 0
    assert first not in map(address, others)
    assert np.asarray(held).any()
    del held
    gc.collect()
    assert address(large()) == first


def test_small_and_huge_arrays_have_memory_of_their_own():
    for count in (FLOATS - 1, MOST_NBYTES // 4):
        x = large(count)
        ended = weakref.ref(x)
        del x
        assert ended() is None
        assert not FREE_BLOCKS


def test_only_a_block_of_the_same_length_fits():
    x = large()
    first = address(x)
    del x
    longer = large(FLOATS + 1)
    assert address(longer) != first
    assert len(FREE_BLOCKS) == 1


def test_the_oldest_blocks_go_when_too_many_bytes_are_free():
    free, third = FreeBlocks(), MOST_NBYTES // 3
    blocks = [np.empty(third, np.uint8) for _ in range(4)]
    for block in blocks:
        free.give(block)
    assert free.take(third - 1) is None
    kept = [free.take(third) for _ in range(4)]
    assert [any(x is y for y in kept) for x in blocks] == [False, True, True, True]
    assert kept[3] is None


def test_results_of_calls_are_apart_as_long_as_they_are_held():
    x = cg.Var((FLOATS,), name="x")
    double = cg.compile(x * 2, x, threads=1)
    values = np.arange(FLOATS, dtype=np.float32) % 97
    first, second = double(values), double(values + 1)
    np.testing.assert_array_equal(first, values * 2)
    np.testing.assert_array_equal(second, values * 2 + 2)
    place = address(first)
    del first
    third = double(values + 2)
    assert address(third) == place
    np.testing.assert_array_equal(second, values * 2 + 2)
    np.testing.assert_array_equal(third, values * 2 + 4)
    np.testing.assert_array_equal(double(third), (values * 2 + 4) * 2)


def test_threads_never_share_a_block():
    failures = []

    def work(number):
        for _ in range(20):
            x = large()
            x[::4096] = number
            if not (x[::4096] == number).all():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(x.nbytes for x in FREE_BLOCKS.values()) <= MOST_NBYTES


@pytest.mark.parametrize(
    ("count", "is_kept"),
    [(FLOATS, True), ((MOST_NBYTES - ALIGNMENT) // 4, True), ((MOST_NBYTES - ALIGNMENT) // 4 + 1, False)],
)
def test_blocks_of_the_least_and_of_the_most_bytes_are_kept(count, is_kept):
    large(count)
    assert [x.nbytes for x in FREE_BLOCKS.values()] == [4 * count + ALIGNMENT] * is_kept
    assert sum(x.nbytes for x in FREE_BLOCKS.values()) <= MOST_NBYTES


def test_the_first_of_several_blocks_of_a_length_is_taken_and_the_next_if_another_thread_took_it():
    free = FreeBlocks()
    blocks = [np.empty(n, np.uint8) for n in (8, 16, 8, 8)]
    for block in blocks:
        free.give(block)

    class Raced(FreeBlocks):
        """Blocks of which another thread takes the first one that is asked for."""

        def pop(self, key, default=None):
            if not self.raced:
                self.raced = True
                super().pop(key)
            return super().pop(key, default)

    raced = Raced(free)
    raced.raced = False
    assert free.take(8) is blocks[0] and free.take(8) is blocks[2]
    assert raced.take(8) is blocks[2] and list(raced.values()) == [blocks[1], blocks[3]]
    assert raced.take(16) is blocks[1] and raced.take(16) is None and raced.take(7) is None
    assert free.take(8) is blocks[3] and free.take(8) is None
