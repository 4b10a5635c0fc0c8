"""Predicted times of a reader and the rows behind it are those of the real ones, by a clock that the test moves."""

import os
import threading
import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.engine.cpu.code import Piece
from cgraph.engine.cpu.ring import place_pieces, with_control_rows
from cgraph.engine.cpu.ring_timing import read_acts, row_acts, waits_of
from cgraph.engine.cpu.threads import aligned_words, native, run_table
from cgraph.errors import BudgetError
from cgraph.kernels.control import FREED, PASSED, READ, STALLED, WAIT
from cgraph.memory.pipeline_model import Busy, Wait, ends_of
from cgraph.storage.weight_file import PAGE
from tests.support.patience import PATIENCE
from tests.support.tolerance import near


@st.composite
def programs(draw):
    """Pieces in a ring that holds them, rows, and how long each row and each read takes."""
    pieces, row = [], 0
    for i in range(draw(st.integers(1, 7))):
        first = row + draw(st.integers(0, 2))
        row = first + draw(st.integers(0, 1))
        pieces.append(Piece(i, PAGE * i, PAGE * draw(st.integers(1, 3)), first, row))
    rows = row + draw(st.integers(1, 2))
    ring = PAGE * draw(st.integers(3, 9))
    seconds = st.integers(0, 6).map(float)
    return pieces, ring, draw(st.lists(seconds, min_size=rows, max_size=rows)), [draw(seconds) for _ in pieces]


def rows_of(drawn, words, address=0):
    """Rows that are Python functions, among those that wait; None where the ring is too small."""
    pieces, ring, kernels, _ = drawn
    try:
        held = place_pieces(pieces, ring)
    except BudgetError:
        return None
    table = np.array([(0, 0, i, 1) for i in range(len(kernels))], np.int64)
    return with_control_rows(table, np.arange(len(kernels)), held, words.ctypes.data, address)


class Clock:
    """Time that moves when neither the reader nor the rows can go on without it. Changes: moves."""

    def __init__(self, rows, words):
        self.rows, self.words, self.now = rows, words, 0.0
        self.wakes: dict[str, tuple[float, threading.Event]] = {}
        self.over: set[str] = set()
        self.at, self.room = 0, 0  # where the rows are; what the reader waits for
        self.ended: dict[tuple[str, int], float] = {}

    def sleep(self, who, number, seconds):
        event = threading.Event()
        self.wakes[who] = self.now + seconds, event
        assert event.wait(PATIENCE)
        self.ended[who, number] = self.now

    def is_blocked(self, who):
        """Nothing that has happened lets it go on, and it has come to where it waits."""
        if who == "read":
            return self.words[FREED] < self.room
        freed = int(self.words[FREED])
        for kind, _, count, _ in self.rows.table[self.at :].tolist():
            if kind == WAIT and self.words[READ] < count:
                return self.words[FREED] == freed
            freed = count if kind == PASSED else freed
            if kind == 0:
                return False
        return False

    def move(self):
        """Wake whoever sleeps least long, when all sleep, wait for one another or have ended."""
        until = time.monotonic() + PATIENCE
        while len(self.over) < 2:
            assert time.monotonic() < until
            going = {"read", "run"} - self.over - set(self.wakes)
            if not self.wakes or not all(map(self.is_blocked, going)):
                time.sleep(0.0002)
                continue
            who = min(self.wakes, key=lambda x: self.wakes[x][0])
            self.now, event = self.wakes.pop(who)
            event.set()

    def read(self, seconds):
        """What `ring.read` does, without bytes."""
        for i, (_, _, _, freed, number) in enumerate(self.rows.orders.tolist()):
            self.room = freed
            while self.words[FREED] < freed:
                time.sleep(0.0002)
            self.room = 0
            self.sleep("read", i, seconds[i])
            self.words[READ] = number
        self.over.add("read")

    def run(self, seconds):
        places = np.flatnonzero(self.rows.table[:, 0] == 0)

        def function(number):
            self.at = int(places[number])
            self.sleep("run", number, seconds[number])
            self.at += 1

        run_table(self.rows.table, 1, np.zeros(1, np.int64), [lambda i, n=n: function(n) for n in range(len(seconds))])
        self.over.add("run")


@settings(max_examples=12, deadline=None)
@given(programs())
def test_what_is_predicted_is_what_interpreter_and_reader_do(drawn):
    words = aligned_words(STALLED + len(drawn[0]))
    rows, kernels, reads = rows_of(drawn, words), *drawn[2:]
    if rows is None:
        return
    clock = Clock(rows, words)
    threads = [threading.Thread(target=act, args=(x,)) for act, x in ((clock.read, reads), (clock.run, kernels))]
    for thread in threads:
        thread.start()
    clock.move()
    for thread in threads:
        thread.join()
    scripts = read_acts(rows, reads), row_acts(rows, kernels)
    for who, acts, ends in zip(("read", "run"), scripts, ends_of(scripts), strict=True):
        found = [end for act, end in zip(acts, ends) if isinstance(act, Busy)]
        assert {i: t for (x, i), t in clock.ended.items() if x == who} == dict(enumerate(found))
    waits, whole = waits_of(rows, np.array(kernels), reads)
    assert whole == max(clock.ended["run", i] for i in range(len(kernels)))
    assert waits.sum() == near(whole - sum(kernels), "float64 through float32")


@settings(max_examples=12, deadline=None)
@given(programs())
def test_the_native_reader_is_as_far_ahead_as_is_predicted_of_one_that_takes_no_time(drawn):
    words = aligned_words(STALLED + len(drawn[0]))
    memory = np.empty(drawn[1] + PAGE, np.uint8)
    rows = rows_of(drawn, words, memory.ctypes.data)
    if rows is None:
        return
    kernels, count = [1.0] * len(drawn[2]), len(rows.orders)
    reading, _ = ends_of([read_acts(rows, [0.0] * count), row_acts(rows, kernels)])
    there = np.array(reading[1::3])  # when each piece is
    wrong = []

    def function(number):
        """Row `number` begins at that second: what could be read before has been, as soon as the reader gets to it."""
        want = int((there <= number).sum())
        until = time.monotonic() + PATIENCE
        while words[READ] < want and time.monotonic() < until:
            time.sleep(0.0002)
        if words[READ] != want:
            wrong.append((number, int(words[READ]), want))

    with open(os.memfd_create("weights"), "r+b") as file:
        file.truncate(PAGE * (len(drawn[0]) + 3))
        reader = threading.Thread(
            target=native().read, args=(words.ctypes.data, rows.orders.ctypes.data, count, file.fileno())
        )
        reader.start()
        functions = [lambda i, n=n: function(n) for n in range(len(kernels))]
        assert run_table(rows.table, 1, np.zeros(1, np.int64), functions) == len(rows.table)
        reader.join(PATIENCE)
    assert not reader.is_alive()
    assert wrong == []
    assert words[READ] == count


def test_waits_are_told_by_piece():
    pieces = place_pieces([Piece(i, PAGE * i, PAGE, i, i) for i in range(3)], 2 * PAGE)
    words = aligned_words(STALLED + 3)
    rows = with_control_rows(np.zeros((3, 4), np.int64), np.arange(3), pieces, words.ctypes.data, 0)
    waits, whole = waits_of(rows, np.full(3, 5.0), [2.0, 9.0, 1.0])
    assert waits.tolist() == [2.0, 4.0, 0.0]
    assert whole == 21.0
    assert [act for act in row_acts(rows, [5.0] * 3) if isinstance(act, Wait)] == [Wait("read", i) for i in (1, 2, 3)]
