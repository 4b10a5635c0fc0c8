"""Pieces of a shard: in their order, each while later ones are computed; what a run raises comes to the iterator."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from nn.parallel.running_shard import RunningShard
from tests.support.patience import PATIENCE


def gradient(outputs, run_each):
    return SimpleNamespace(outputs=[None] * outputs, run_each=run_each)


def test_a_piece_comes_while_later_ones_are_computed():
    came = threading.Event()

    def run_each(arrays, complete):
        complete(0, arrays[0])
        assert came.wait(PATIENCE)
        complete(1, arrays[0] + 1)

    with RunningShard(gradient(2, run_each), [np.zeros(3)]) as pieces:
        both = iter(pieces)
        assert next(both).tolist() == [0, 0, 0]
        came.set()
        assert next(both).tolist() == [1, 1, 1]
        assert list(both) == []
    assert pieces.seconds > 0


@pytest.mark.parametrize("in_thread", [False, True])
def test_pieces_come_in_their_order_whichever_is_complete_first(in_thread):
    def run_each(arrays, complete):
        for i in (2, 0, 1):
            complete(i, arrays[0] + i)

    with RunningShard(gradient(3, run_each), [np.zeros(1)], in_thread) as pieces:
        assert [x.item() for x in pieces] == [0, 1, 2]


@pytest.mark.parametrize("in_thread", [False, True])
def test_what_the_run_raises_is_raised_where_the_piece_is_missing(in_thread):
    def run_each(arrays, complete):
        complete(0, arrays[0])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), RunningShard(gradient(2, run_each), [np.zeros(1)], in_thread) as pieces:
        first, _ = pieces
        pytest.fail(f"{first} and another piece came")


def test_the_run_is_over_when_a_round_ends_early():
    over = []

    def run_each(arrays, complete):
        complete(0, arrays[0])
        complete(1, arrays[0])
        over.append(True)

    with pytest.raises(KeyError), RunningShard(gradient(2, run_each), [np.zeros(1)]) as pieces:
        for _ in pieces:
            raise KeyError
    assert over == [True]


def test_an_interrupt_within_the_run_is_raised_by_the_iterator():
    def run_each(arrays, complete):
        raise KeyboardInterrupt

    with RunningShard(gradient(1, run_each), [], in_thread=False) as pieces, pytest.raises(KeyboardInterrupt):
        next(iter(pieces))


def test_no_run_goes_on_after_its_context():
    ending = threading.Event()

    def run_each(arrays, complete):
        complete(0, arrays[0])
        assert ending.wait(PATIENCE)

    shard = RunningShard(gradient(1, run_each), [np.zeros(1)])
    join = shard._thread.join
    shard._thread.join = lambda: ending.set() or join()
    with shard as pieces:
        assert len(list(pieces)) == 1
    assert not shard._thread.is_alive()
