"""The watch over a simulated GPU's memory finds a race at the access that makes it: against all accesses so far."""

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.memory import BLOCK_AT, DEVICE, LAUNCH_AT, THREAD_BITS, Memory, Watch
from cgraph.engine.cuda.simulator.text import Fault

WORDS, BLOCKS, THREADS = 3, 3, 3


def is_race(word: int, who: tuple[int, ...], writes: bool, history: list[tuple]) -> bool:
    """Whether another thread of the launch used the word with no barrier between; one of the two writes."""
    launch, block, epoch, thread = who
    for other_word, (its_launch, its_block, its_epoch, its_thread), wrote in history:
        is_other = its_block != block or (its_epoch == epoch and its_thread != thread)
        if other_word == word and its_launch == launch and is_other and (writes or wrote):
            return True
    return False


def stamp(launch: int, block: int, epoch: int, thread: int) -> int:
    return launch << LAUNCH_AT | block << BLOCK_AT | epoch << THREAD_BITS | thread


@pytest.mark.parametrize("seed", range(4))
def test_a_race_is_found_at_the_access_that_makes_it(seed):
    rng = np.random.default_rng(seed)
    races = 0
    for _ in range(150):
        watch, history, epochs = Watch(WORDS), [], [0] * BLOCKS
        launch = 1
        for _ in range(12):
            block = int(rng.integers(BLOCKS))
            epochs[block] += int(rng.random() < 0.4)
            if rng.random() < 0.1:
                launch, epochs = launch + 1, [0] * BLOCKS
            both = [(launch, b, epochs[b], t) for b in {block, int(rng.integers(BLOCKS))} for t in range(THREADS)]
            some = [both[i] for i in rng.permutation(len(both))[: rng.integers(1, 4)]]
            words, writes = rng.integers(WORDS, size=len(some)), bool(rng.random() < 0.2)
            expected = False
            for word, who in zip(words, some):
                expected |= is_race(word, who, writes, history)
                history.append((word, who, writes))
            stamps = np.array([stamp(*who) for who in some])
            try:
                (watch.stored if writes else watch.loaded)(words, stamps)
            except Fault:
                races += 1
                assert expected
                break
            assert not expected
    assert 30 < races < 150


def test_memory_that_grows_keeps_bytes_owners_and_accesses():
    memory = Memory()
    first, free_for_all = memory.take(8), memory.take(8, watched=False)
    memory.bytes_at(first, 8)[:] = range(8)
    one, other = (np.array([stamp(1, block, 0, 0)]) for block in range(2))
    word = np.array([first - DEVICE])
    memory.touch(word, 4, one, write=True)
    memory.touch(word + 4, 4, one, write=False)
    large = memory.take(1 << 20)
    assert memory.bytes_at(first, 8).tolist() == list(range(8)) and (memory.bytes_at(large, 1 << 20) == 0xFF).all()
    for at, write in ((word, True), (word, False), (word + 4, True)):
        with pytest.raises(Fault, match="a race"):
            memory.touch(at, 4, other, write)
    memory.touch(word + 4, 4, other, write=False)
    for thread in (one, other, one):
        memory.touch(np.array([free_for_all - DEVICE]), 4, thread, write=True)
    for at in (first - 1, first + 8, free_for_all + 8, large - 1, large + (1 << 20)):
        with pytest.raises(Fault, match="a copy of 1 bytes outside every allocation"):
            memory.bytes_at(at, 1)


@pytest.mark.parametrize("nbytes", [0, 1, 255, 256, 257])
def test_each_allocation_is_aligned_and_apart_from_the_next(nbytes):
    memory = Memory()
    first, second = memory.take(nbytes), memory.take(1)
    assert first % 256 == second % 256 == 0 and second >= first + nbytes + 256
    assert len(memory.bytes_at(first, nbytes)) == nbytes
    with pytest.raises(Fault):
        memory.bytes_at(first, nbytes + 1)
    memory.free(first)
    assert len(memory.bytes_at(second, 1)) == 1
    if nbytes:
        with pytest.raises(Fault):
            memory.bytes_at(first, nbytes)


@pytest.mark.parametrize("size", [1, 4, 16])
def test_an_access_ends_with_the_memory_at_the_latest(size):
    memory = Memory()
    start = memory.take(1 << 10) - DEVICE
    memory.owned[:] = True
    end = len(memory.owned) - size
    memory.check(np.array([start, end]), start, end, size)
    for low, high in ((start, end + 1), (-1, end)):
        with pytest.raises(Fault, match="outside every allocation"):
            memory.check(np.array([low, high]), low, high, size)


def test_a_copy_ends_with_the_memory_at_the_latest():
    memory = Memory()
    start = memory.take(1 << 10)
    memory.owned[:] = True
    rest = len(memory.owned) - (start - DEVICE)
    assert len(memory.bytes_at(start, rest)) == rest
    for at, nbytes in ((start, rest + 1), (start + rest, 1), (start, 1 << 40)):
        with pytest.raises(Fault, match=f"a copy of {nbytes} bytes outside every allocation"):
            memory.bytes_at(at, nbytes)
    assert len(memory.bytes_at(start + rest + 100, 0)) == 0
