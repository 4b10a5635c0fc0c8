"""The watch over a simulated GPU's memory finds a race at the access that makes it: against all accesses so far."""

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.memory import BLOCK_AT, LAUNCH_AT, THREAD_BITS, Watch
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
