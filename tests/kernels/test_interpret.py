"""The interpreter: every task once and in order of rows, where it stops, what it waits for, which cores it takes."""

import ctypes
import threading

import numpy as np
import pytest

from cgraph.engine.cpu.threads import aligned_words, native, new_cores
from cgraph.kernels.control import FAILED, FREED, PASSED, READ, READ_FAILED, STALLED, WAIT
from cgraph.kernels.interpret.emit import (
    BUSY,
    FREE,
    IN_USE,
    OVER,
    QUIT,
    TEAM_BUSY,
    TEAM_WORDS,
    WAITING,
    WORD,
)
from tests.support.kernels import KERNEL
from tests.support.patience import PATIENCE

FOREVER = 1 << 62
ways = pytest.mark.parametrize("way", ["alone", "lead"])


class Rows:
    """A table whose kernels record their tasks. Changes: what is called; the stop word."""

    def __init__(self, cores: int = 4) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self.rows: list[list[int]] = []
        self.alive: list = []
        self.cores, self.stop, self.team = new_cores(cores), np.zeros(1, np.int64), aligned_words(TEAM_WORDS)
        self.team[WORD] = OVER << 24

    def call(self, tasks: int, chunk: int = 1, then=lambda: None) -> None:
        number = len(self.rows)

        def run(at: int, first: int, last: int) -> None:
            assert at == 1000 + number
            self.calls.append((number, first, last))
            then()

        kernel = KERNEL(run)
        self.alive.append(kernel)
        self.rows.append([ctypes.cast(kernel, ctypes.c_void_p).value, 1000 + number, tasks, chunk])

    def control(self, kind: int, words: np.ndarray, count: int) -> None:
        self.alive.append(words)
        self.rows.append([kind, words.ctypes.data, count, 0])

    def run(self, way: str, first: int = 0, nanoseconds: int = FOREVER, most: int = 1) -> int:
        table = np.array(self.rows, np.int64).reshape(-1, 4)
        rest = table.ctypes.data, first, len(table), self.stop.ctypes.data, nanoseconds
        if way == "alone":
            return native().alone(self.cores.ctypes.data, *rest)
        return native().lead(self.cores.ctypes.data, self.team.ctypes.data, most, *rest)

    def check_cores(self, count: int = 4) -> None:
        assert (self.cores[FREE], self.cores[WAITING], self.cores[IN_USE]) == (count, 0, 0)


@ways
def test_rows_run_in_order_from_the_first_one(way):
    rows = Rows()
    for tasks in (3, 0, 1):
        rows.call(tasks, tasks or 1)
    assert rows.run(way) == 3 and rows.calls == [(0, 0, 3), (2, 0, 1)]
    assert rows.run(way, 2) == 3 and rows.calls[2:] == [(2, 0, 1)]
    assert rows.run(way, 3) == 3 and len(rows.calls) == 3
    rows.check_cores()


@pytest.mark.parametrize("tasks, chunk", [(10, 3), (9, 3), (2, 1), (64, 7), (1, 9)])
@pytest.mark.parametrize("most", [1, 2])
def test_a_row_is_cut_into_chunks_whose_last_one_is_shorter(tasks, chunk, most):
    """A leader of two without a mate takes the mate's part of the row, too."""
    rows = Rows()
    rows.call(tasks, chunk)
    rows.call(1)
    assert rows.run("lead", most=most) == 2
    *parts, last = rows.calls
    assert sorted(parts) == [(0, i, min(i + chunk, tasks)) for i in range(0, tasks, chunk)] and last == (1, 0, 1)
    rows.check_cores()


@pytest.mark.parametrize("mates", [1, 3])
def test_a_team_runs_each_task_once_and_rows_one_after_the_other(mates):
    rows, lock, done = Rows(), threading.Lock(), []
    members = [threading.Thread(target=native().follow, args=(rows.team.ctypes.data, i + 1)) for i in range(mates)]
    for i, tasks in enumerate((40, 1, 17, 8)):

        def count(i=i):
            with lock:
                done.append(i)

        rows.call(tasks, 2, count)
    for member in members:
        member.start()
    try:
        for _ in range(5):
            assert rows.run("lead", most=mates + 1) == 4
    finally:
        rows.team[QUIT] = 1
        rows.calls, last = [], rows.calls
        rows.run("lead")  # wakes those that sleep
        for member in members:
            member.join(PATIENCE)
    assert not any(member.is_alive() for member in members)
    per_round = [(0, i, i + 2) for i in range(0, 40, 2)] + [(1, 0, 1)]
    per_round += [(2, i, min(i + 2, 17)) for i in range(0, 17, 2)] + [(3, i, i + 2) for i in range(0, 8, 2)]
    assert sorted(last) == sorted(per_round * 5)
    order = [row for row, _, _ in last]
    assert order == [row for _ in range(5) for row, count in ((0, 20), (1, 1), (2, 9), (3, 4)) for _ in range(count)]


@ways
def test_the_stop_word_ends_a_run_before_the_next_row(way):
    rows = Rows()
    rows.call(1)
    rows.call(1, 1, lambda: rows.stop.fill(5))
    rows.call(1)
    assert rows.run(way) == 2 and len(rows.calls) == 2 and rows.stop[0] == 5
    assert rows.run(way, 2) == 2 and len(rows.calls) == 2
    rows.check_cores()


@ways
def test_a_function_of_python_ends_a_run_before_it(way):
    rows = Rows()
    rows.call(1)
    rows.rows.append([0, 1001, 1, 1])
    rows.call(1)
    assert rows.run(way) == 1 and rows.run(way, 1) == 1 and len(rows.calls) == 1
    rows.check_cores()


@pytest.mark.parametrize("way, count", [("alone", 2), ("lead", 0)])
def test_the_end_of_a_slice_ends_a_run_that_goes_on_where_it_was(way, count):
    """The clock is read after four tasks, by a leader before the first one, too; this slice ended before it began."""
    rows = Rows()
    for _ in range(5):
        rows.call(2, 2)
    assert rows.run(way, 0, -(10**9)) == count and len(rows.calls) == count
    assert rows.run(way, count) == 5 and [x for x, _, _ in rows.calls] == list(range(5))
    rows.check_cores()


@ways
def test_without_a_free_core_nothing_runs(way):
    rows = Rows(cores=0)
    rows.call(1)
    assert rows.run(way) == 0 and not rows.calls
    rows.check_cores(0)


def test_a_team_that_is_busy_says_so_and_gives_its_cores_back():
    rows = Rows()
    rows.call(1)
    rows.team[BUSY] = 1
    assert rows.run("lead", most=3) == TEAM_BUSY and not rows.calls and rows.team[BUSY] == 1
    rows.check_cores()
    rows.team[BUSY] = 0
    assert rows.run("lead") == 1 and rows.team[BUSY] == 0


def test_a_leader_takes_no_more_cores_than_are_free_or_may_take_part():
    for free, most, share in ((4, 3, 3), (2, 3, 2), (1, 9, 1)):
        rows = Rows(free)
        left = []
        rows.call(1, 1, lambda rows=rows, left=left: left.append(rows.cores[FREE]))
        rows.run("lead", most=most)
        assert left == [free - share]
        rows.check_cores(free)


def test_cores_are_held_and_released():
    cores = new_cores(3)
    at = cores.ctypes.data
    assert native().hold(at, 2) == 2 and cores[FREE] == 1 and cores[IN_USE] == 2
    assert native().hold(at, 1) == 2 and cores[FREE] == 1  # fewer than there are
    assert native().hold(at, 9) == 3 and cores[FREE] == 0
    assert native().release(at) == 3 and cores[FREE] == 3 and cores[IN_USE] == 0
    assert native().release(at) == 0


def test_a_member_that_exists_is_not_there_twice():
    """The second one returns at once, although nobody tells it to."""
    rows = Rows()
    for is_over in (1, 0):
        rows.team[QUIT] = is_over
        member = threading.Thread(target=native().follow, args=(rows.team.ctypes.data, 1), daemon=True)
        member.start()
        member.join(PATIENCE)
        assert not member.is_alive()


@ways
def test_pieces_that_are_read_are_not_waited_for_and_freed_ones_are_told(way):
    rows, words = Rows(), aligned_words(STALLED + 8)
    words[READ] = 3
    rows.control(WAIT, words, 3)
    rows.call(1)
    rows.control(PASSED, words, 2)
    assert rows.run(way) == 3 and len(rows.calls) == 1 and words[FREED] == 2
    assert not words[STALLED:].any()


@ways
def test_a_wait_longer_than_a_slice_returns_to_the_row_that_waits(way):
    rows, words = Rows(), aligned_words(STALLED + 8)
    words[READ] = 1
    rows.call(1)
    rows.control(WAIT, words, 2)
    rows.call(1)
    row = rows.run(way, 0, 10**6)
    assert row <= 1  # 0 if the slice ended before the first row
    words[READ] = 2
    assert rows.run(way, row) == 3 and len(rows.calls) >= 2
    assert rows.stop[0] == 0
    rows.check_cores()


def test_a_wait_is_added_to_the_time_of_its_piece():
    rows, words = Rows(), aligned_words(STALLED + 8)
    words[STALLED + 1] = 1000
    rows.control(WAIT, words, 2)
    rows.run("alone", 0, 10**6)
    assert words[STALLED + 1] > 1000 and not words[STALLED] and not words[STALLED + 2 :].any()


@ways
def test_a_reader_that_failed_stops_the_run_unless_the_piece_is_there(way):
    rows, words = Rows(), aligned_words(STALLED + 8)
    words[READ], words[FAILED] = 1, 5
    rows.control(WAIT, words, 1)
    rows.call(1)
    rows.control(WAIT, words, 2)
    rows.call(1)
    assert rows.run(way) == 2 and len(rows.calls) == 1 and rows.stop[0] == READ_FAILED
    rows.check_cores()
