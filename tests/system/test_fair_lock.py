"""A fair lock: calls run one at a time in order of arrival, also after exceptions, lost tickets and forks."""

import os
import threading

import pytest

from cgraph.system.fair_lock import FairLock, Ticket
from tests.support.patience import PATIENCE


def queued(lock: FairLock, count: int) -> None:
    """Wait until this many calls are in the queue."""
    for _ in range(int(PATIENCE * 1000)):
        if len(lock._line) >= count:
            return
        threading.Event().wait(0.001)
    raise AssertionError(f"{len(lock._line)} of {count} calls came")


def test_calls_run_one_at_a_time_in_the_order_in_which_they_came():
    lock, order, inside = FairLock(), [], []
    gate = threading.Event()

    def work(i: int) -> int:
        inside.append(i)
        if i == 0:
            gate.wait(PATIENCE)
        order.append((i, len(inside)))
        inside.remove(i)
        return i

    threads = []
    for i in range(5):
        threads.append(threading.Thread(target=lock.run, args=(lambda i=i: work(i),)))
        threads[-1].start()
        queued(lock, i + 1)
    assert inside == [0], "the others wait"
    gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert order == [(i, 1) for i in range(5)]


def test_the_result_and_the_exception_of_a_call_are_its_own_and_the_next_one_runs():
    lock = FairLock()
    assert lock.run(lambda: 3) == 3
    for error in (ZeroDivisionError, KeyboardInterrupt):

        def fail(error=error):
            raise error

        with pytest.raises(error):
            lock.run(fail)
        assert lock.run(lambda: 4) == 4
    assert len(lock._line) <= 1, "tickets that ended are removed by the next call"


def test_a_call_inside_a_call_of_the_same_thread_runs_at_once():
    lock = FairLock()
    assert lock.run(lambda: lock.run(lambda: lock.run(lambda: 5))) == 5


def test_a_ticket_that_was_lost_blocks_nobody():
    """As after an exception between the queue and the call."""
    lock = FairLock()
    lost = Ticket()
    lock.join(lost)
    results = []
    other = threading.Thread(target=lambda: results.append(lock.run(lambda: 1)))
    other.start()
    queued(lock, 2)
    assert results == []
    del lost
    other.join(PATIENCE)
    assert results == [1]


def test_a_ticket_ends_once_and_belongs_to_its_process(monkeypatch):
    ticket = Ticket()
    assert not ticket.is_over and ticket.thread == threading.get_ident() and ticket.process == os.getpid()
    ticket.end()
    ticket.end()
    assert ticket.is_over and not ticket._gate.locked(), "those who wait are woken; nobody looks again after a time"
    ticket.wait()
    assert not ticket._gate.locked(), "the next one who waits is not held up"
    other = Ticket()
    monkeypatch.setattr(os, "getpid", lambda: other.process + 1)
    assert other.is_over, "after a fork"


def test_a_ticket_that_waits_without_a_place_is_an_error():
    lock = FairLock()
    with pytest.raises(LookupError, match="waits for itself"):
        lock._first()
