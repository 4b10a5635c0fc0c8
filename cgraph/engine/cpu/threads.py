"""Running a table of kernel calls on some threads, within one budget of cores for the whole process.

A run takes cores from the budget and waits while none is free, so several functions and several Python threads
together never keep more threads busy than there are cores. With one core the table runs on the caller's thread. With
more, the caller leads a team: Python threads that enter native code once and stay there (see
`cgraph.kernels.llvm.interpret`), kept for the next run. Python runs only when a run has lasted a slice of time,
between two kernel calls, so that signals are handled.
"""

import atexit
import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import numpy as np

from cgraph.engine.cpu.blas import limited_blas
from cgraph.engine.cpu.cores import cores
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from cgraph.record import Record

SLICE_NANOSECONDS = 20_000_000
NEVER_OVER = 1 << 60  # a slice that no run outlasts
MOST_THREADS = 64
# Words of a team; the same numbers as in cgraph.kernels.llvm.interpret, which a warm process does not import.
WORD, QUIT, TEAM_WORDS = 0, 48, 96 + 16 * MOST_THREADS
RUN_OVER = 255 << 24
_NEVER = np.zeros(1, np.int64)
NEVER = _NEVER.ctypes.data  # a stop word that nobody sets


class Inside(threading.local):
    """Whether this thread is inside a run. Changes: set and cleared by the run."""

    run = False


_inside = Inside()


def run_table(
    table: np.ndarray, threads: int = 0, stop: np.ndarray | None = None, blas: bool = False, whole: bool = False
) -> int:
    """Run an int64 table ``[rows, 4]``; see `ThreadPool.run`."""
    word = stop.ctypes.data if stop is not None else 0
    return _pool.run(table.ctypes.data, len(table), threads, word, blas, NEVER_OVER if whole else SLICE_NANOSECONDS)


def run(table_address: int, rows: int, threads: int = 0, stop: int = 0, blas: bool = False) -> int:
    """Run `rows` rows at an address; see `ThreadPool.run`."""
    return pool().run(table_address, rows, threads, stop, blas)


def pool() -> "ThreadPool":
    """The pool of this process."""
    return _pool


class Native(Record):
    """The interpreter's two functions: rows on this thread; a member of a team."""

    alone: Callable[..., int]
    crew: Callable[..., int]


@cache
def native() -> Native:
    """Look up the interpreter, compiled when it is nowhere yet."""
    clock = 6 if sys.platform == "linux" else time.CLOCK_MONOTONIC  # CLOCK_MONOTONIC_COARSE: a few ns to read
    on_own, in_team = Kernel("interpret.alone", (clock,)), Kernel("interpret.crew", (clock, futex_number()))
    found = store().load([on_own, in_team])
    words = [ctypes.c_int64]
    return Native(
        ctypes.CFUNCTYPE(ctypes.c_int64, *words * 5)(found[on_own]),
        ctypes.CFUNCTYPE(ctypes.c_int64, *words * 8)(found[in_team]),
    )


def futex_number() -> int:
    """The number of the system call ``futex``, 0 where there is none. Source: Linux, syscall tables."""
    return {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0


class Team:
    """Shared words and the threads that watch them. Changes: the words, and threads are added when first needed."""

    def __init__(self) -> None:
        raw = np.zeros(TEAM_WORDS + 16, np.int64)
        start = -raw.ctypes.data % 128 // 8
        self.words = raw[start : start + TEAM_WORDS]
        self.words[WORD] = RUN_OVER
        self.address = self.words.ctypes.data
        self.threads: list[threading.Thread] = []

    def grow(self, workers: int) -> None:
        for member in range(len(self.threads) + 1, workers + 1):
            thread = threading.Thread(target=self._work, args=(member,), name=f"cgraph-{member}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def _work(self, member: int) -> None:
        _inside.run = True
        native().crew(self.address, member, 0, 0, 0, 0, 0, 0)

    def lead(self, table: int, row: int, rows: int, workers: int, stop: int, slice_ns: int) -> int:
        """Run rows with the first `workers` threads until the end or the end of the slice: the next row."""
        return native().crew(self.address, 0, workers, table, row, rows, stop, slice_ns)

    def close(self) -> None:
        """Send the threads home; no run may be going on."""
        self.words[QUIT] = 1
        self.lead(0, 0, 0, 0, NEVER, SLICE_NANOSECONDS)
        for thread in self.threads:
            thread.join()


class ThreadPool:
    """A budget of cores and the idle teams. Changes: cores are taken and given back; teams are made and kept."""

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self.forget()

    def forget(self) -> None:
        """Nothing is running and there are no threads: true of a new pool, and in a forked child."""
        self._free = self.size
        self._teams: list[Team] = []
        self._changed = threading.Condition(threading.Lock())

    def run(
        self,
        table: int,
        rows: int,
        threads: int = 0,
        stop: int = 0,
        blas: bool = False,
        slice_ns: int = SLICE_NANOSECONDS,
    ) -> int:
        """Run a table's rows in order and return how many were run.

        Parameters
            table: address of int64 ``[rows, 4]``: function, arguments, tasks, chunk
            threads: at most this many threads, the caller's included; 0 is all cores. Fewer run when cores are taken
            stop: address of a word; once it is not 0 the run ends after the call that is going on. 0: none
            slice_ns: how long kernels run before Python looks for signals
            blas: the table calls into BLAS or OpenMP, held to one thread: more would change the bits

        A run inside a run (from a Python callback) uses the thread that it is on.
        """
        stop = stop or NEVER
        if _inside.run:
            return self._run_alone(table, rows, stop, slice_ns)
        most, count = max(1, min(threads or self.size, MOST_THREADS)), 0
        try:
            with self._changed:
                while self._free == 0:
                    self._changed.wait()
                count = min(most, self._free)
                self._free -= count
            _inside.run = True
            with limited_blas(1) if blas else nullcontext():
                if count == 1:
                    return self._run_alone(table, rows, stop, slice_ns)
                return self._run_team(table, rows, count - 1, stop, slice_ns)
        finally:
            _inside.run = False
            with self._changed:
                self._free += count
                self._changed.notify_all()

    def _run_alone(self, table: int, rows: int, stop: int, slice_ns: int) -> int:
        function, row = native().alone, 0
        while row < rows:
            row = function(table, row, rows, stop, slice_ns)
            if row < rows and is_set(stop):
                break
        return row

    def _run_team(self, table: int, rows: int, workers: int, stop: int, slice_ns: int) -> int:
        team = self._team(workers)
        try:
            row = 0
            while row < rows:
                row = team.lead(table, row, rows, workers, stop, slice_ns)
                if row < rows and is_set(stop):
                    break
            return row
        finally:
            self._teams.append(team)

    def _team(self, workers: int) -> Team:
        """An idle team, or a new one, with at least this many threads."""
        try:
            team = self._teams.pop()
        except IndexError:
            team = Team()
        team.grow(workers)
        return team

    def close(self) -> None:
        """End the threads of all idle teams."""
        while self._teams:
            self._teams.pop().close()


def is_set(stop: int) -> bool:
    return ctypes.c_int64.from_address(stop).value != 0


_pool = ThreadPool(cores())
atexit.register(_pool.close)  # threads leave native code before the interpreter frees it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)
