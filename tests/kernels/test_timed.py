"""The wrapper that records the times of a kernel call: it calls the kernel as before, and writes one entry."""

import ctypes
import threading
import time

import numpy as np
import pytest

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target
from cgraph.kernels.timed.emit import ENTRIES, FIELDS, MOST
from tests.support.kernels import KERNEL


class Recorded:
    """A wrapped kernel and its log. Changes: each call is kept, as its arguments and the time."""

    def __init__(self, most: int, clock: int = time.CLOCK_MONOTONIC) -> None:
        self.calls: list[tuple] = []
        self.own = np.array([11, 22], np.int64)
        self.log = np.full(ENTRIES + (most + 2) * FIELDS, -7, np.int64)
        self.log[0], self.log[MOST] = 0, most
        self.function = KERNEL(lambda *args: self.calls.append((*args, time.clock_gettime_ns(clock))))
        at = ctypes.cast(self.function, ctypes.c_void_p).value
        self.args = np.array([at, self.own.ctypes.data, 33, self.log.ctypes.data], np.int64)
        kernel = Kernel("timed.timed", (clock,))
        self.kernel = KERNEL(store().load([kernel], host_target())[kernel])

    def __call__(self, first: int, last: int) -> None:
        self.kernel(self.args.ctypes.data, first, last)

    def entry(self, i: int) -> list[int]:
        return self.log[ENTRIES + i * FIELDS :][:FIELDS].tolist()


def test_the_kernel_gets_its_own_arguments_and_tasks():
    recorded = Recorded(2)
    recorded(3, 9)
    assert [call[:3] for call in recorded.calls] == [(recorded.own.ctypes.data, 3, 9)]


def test_an_entry_has_row_tasks_times_and_thread():
    recorded = Recorded(3)
    recorded(3, 9)
    recorded(9, 10)
    for i, (first, last) in enumerate([(3, 9), (9, 10)]):
        row, *tasks, begin, end, thread = recorded.entry(i)
        assert (row, tasks, thread) == (33, [first, last], threading.get_ident())
        assert begin <= recorded.calls[i][3] <= end
    assert recorded.entry(0)[4] <= recorded.entry(1)[3] and recorded.log[0] == 2


@pytest.mark.parametrize("most", [0, 1])
def test_calls_beyond_the_most_entries_are_made_and_counted_but_not_written(most):
    recorded = Recorded(most)
    for i in range(3):
        recorded(i, i + 1)
    assert len(recorded.calls) == recorded.log[0] == 3
    assert [recorded.entry(i)[1] for i in range(most)] == list(range(most))
    assert (recorded.log[ENTRIES + most * FIELDS :] == -7).all()
    assert set(np.delete(recorded.log[:ENTRIES], [0, MOST])) == {-7}


def test_the_clock_is_the_one_that_is_named():
    """More than 10**18 ns have passed since 1970, fewer since the machine began."""
    for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC):
        recorded = Recorded(1, clock)
        recorded(0, 1)
        assert (recorded.entry(0)[3] > 10**18) == (clock == time.CLOCK_REALTIME)
