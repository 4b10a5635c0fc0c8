"""Running tables of kernel calls on some threads, within one budget of cores for the whole process.

A run takes cores from the budget and waits while none is free, so several functions and several Python threads
together never keep more threads busy than there are cores. With one core the table runs on the caller's thread. With
more, the caller leads a team: Python threads that enter native code once and stay there (see
`cgraph.kernels.interpret.emit`), kept for the next run.

Cores and teams are taken and given back inside native code. So Python runs only while a run holds nothing: between two
kernel calls when it has lasted a slice of time, so that signals are handled, and where the table calls a Python
function, which may wait for what another thread runs.
"""

import atexit
import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.engine.cpu.cores import cores
from cgraph.kernels.kernel import Kernel
from cgraph.record import Record
from cgraph.system.fair_lock import FairLock

SLICE_NANOSECONDS = 20_000_000
NEVER_OVER = 1 << 60  # a slice that no run outlasts
POLITE_SECONDS = 1e-4  # in which those who wait for a core are faster
MOST_THREADS = 64
# Words of a team and of the cores; the same numbers as in cgraph.kernels.interpret.emit, which a warm process does not
# import.
WORD, QUIT, BUSY, TEAM_WORDS = 0, 48, 49, 96 + 16 * MOST_THREADS
FREE, WAITING, CORES_WORDS, TAKEN = 0, 16, 32, -1
RUN_OVER = 255 << 24
_NEVER = np.zeros(1, np.int64)
NEVER = _NEVER.ctypes.data  # a stop word that nobody sets

Function = Callable[[int], None]


def run_table(
    table: np.ndarray,
    threads: int = 0,
    stop: np.ndarray | None = None,
    functions: Sequence[Function] = (),
    whole: bool = False,
) -> int:
    """Run an int64 table ``[rows, 4]``; see `ThreadPool.run`."""
    word = stop.ctypes.data if stop is not None else 0
    return run_rows(table.ctypes.data, len(table), threads, word, functions, whole)


def run_rows(
    table: int, rows: int, threads: int = 0, stop: int = 0, functions: Sequence[Function] = (), whole: bool = False
) -> int:
    """Run the rows of a table at an address, all at once if they are a `whole`; see `ThreadPool.run`."""
    return _pool.run(table, rows, threads, stop, functions, NEVER_OVER if whole else SLICE_NANOSECONDS)


class Native(Record):
    """The interpreter's functions: rows on this thread; as a leader, and as another member, of a team; all cores.

    And those of a reader of weights: pieces of a file into a ring; stop.

    `memory` is what holds their code, where no store keeps it.
    """

    alone: Callable[..., int]
    lead: Callable[..., int]
    follow: Callable[..., int]
    hold: Callable[..., int]
    release: Callable[..., int]
    read: Callable[..., int]
    halt: Callable[..., int]
    memory: Any = None


_natives: list[Native] = []  # the first one counts
WORDS = {  # that the functions are given
    "interpret.alone": 6,
    "interpret.lead": 8,
    "interpret.follow": 2,
    "interpret.hold": 2,
    "interpret.release": 1,
    "ring.read": 4,
    "ring.halt": 1,
}


def native() -> Native:
    """The interpreter of this process, looked up, or compiled when it is nowhere yet."""
    if not _natives:
        target = import_module("cgraph.kernels.target").host_target()
        take_native(import_module("cgraph.kernels.store").store().load(interpreter(), target))
    return _natives[0]


def offer_native(make: Callable[[], tuple[Mapping[Kernel, int], Any]]) -> None:
    """What `make` returns, addresses and memory, becomes the interpreter of this process if there is none."""
    if not _natives:
        take_native(*make())


def take_native(addresses: Mapping[Kernel, int], memory: Any = None) -> None:
    """Let the functions at these addresses, in that memory, be the interpreter of this process if there is none.

    They are never freed: threads sleep inside its code.
    """
    by_family = {kernel.family: address for kernel, address in addresses.items()}
    types = {name: ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * n) for name, n in WORDS.items()}
    _natives.append(Native(**{n.rpartition(".")[2]: types[n](by_family[n]) for n in WORDS}, memory=memory))


def interpreter() -> list[Kernel]:
    """The kernels that are the interpreter, for this system."""
    clock = 6 if sys.platform == "linux" else time.CLOCK_MONOTONIC  # CLOCK_MONOTONIC_COARSE: a few ns to read
    return [Kernel(name, (clock, futex_number())) for name in WORDS]


def futex_number() -> int:
    """The number of the system call ``futex``, 0 where there is none. Source: Linux, syscall tables."""
    return {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0


def aligned_words(count: int) -> np.ndarray:
    """Words of 0, from the beginning of a pair of cache lines on."""
    raw = np.zeros(count + 16, np.int64)
    start = -raw.ctypes.data % 128 // 8
    return raw[start : start + count]


def new_cores(count: int) -> np.ndarray:
    """The words of so many free cores."""
    words = aligned_words(CORES_WORDS)
    words[FREE] = count
    return words


class Team:
    """Shared words and the threads that watch them. Changes: the words, and threads are added when first needed."""

    def __init__(self) -> None:
        self.words = aligned_words(TEAM_WORDS)
        self.words[WORD] = RUN_OVER
        self.address = self.words.ctypes.data
        self.threads: list[threading.Thread] = []
        self._grown, self._turns = 0, FairLock()

    @property
    def is_busy(self) -> bool:
        return bool(self.words[BUSY])

    def grow(self, workers: int) -> None:
        """Have so many threads, or as many as the system gives."""
        if workers > self._grown:
            self._turns.run(lambda: self._start(workers))

    def _start(self, workers: int) -> None:
        """Start the members that are missing. One that an exception kept from being counted is started again.

        The second thread of a member goes home at once.
        """
        for member in range(self._grown + 1, workers + 1):
            thread = threading.Thread(target=self._work, args=(member,), name=f"cgraph-{member}", daemon=True)
            self.threads.append(thread)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                return
            self._grown = member

    def _work(self, member: int) -> None:
        native().follow(self.address, member)

    def lead(self, cores: int, most: int, table: int, row: int, rows: int, stop: int, slice_ns: int) -> int:
        """Run rows with `most` threads until the end or the end of the slice: the next row, or TAKEN."""
        return native().lead(cores, self.address, most, table, row, rows, stop, slice_ns)

    def close(self) -> None:
        """Send the threads home, unless a run is going on."""
        if self.is_busy:
            return
        self.words[QUIT] = 1
        self.lead(new_cores(1).ctypes.data, 1, 0, 0, 0, NEVER, SLICE_NANOSECONDS)
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()


class ThreadPool:
    """A budget of cores, and teams. Changes: teams are made and kept; native code counts cores."""

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self.forget()

    def forget(self) -> None:
        """Nothing is running and there are no threads: true of a new pool, and in a forked child."""
        self._cores = new_cores(self.size)
        self._address = self._cores.ctypes.data
        self._teams: list[Team] = []

    @property
    def _free(self) -> int:
        """Cores that no run has."""
        return int(self._cores[FREE])

    def run(
        self,
        table: int,
        rows: int,
        threads: int = 0,
        stop: int = 0,
        functions: Sequence[Function] = (),
        slice_ns: int = SLICE_NANOSECONDS,
    ) -> int:
        """Run a table's rows in order and return how many were run.

        Parameters
            table: address of int64 ``[rows, 4]``: function, arguments, tasks, chunk. Function 0 is a Python function:
                the one of `functions` whose number stands in place of the tasks, called with the arguments' address
            threads: at most this many threads, the caller's included; 0 is all cores. Fewer run when cores are taken
            stop: address of a word; once it is not 0 the run ends after the call that is going on. 0: none
            functions: the Python functions of the table; what they raise ends the run
            slice_ns: how long kernels run before Python looks for signals
        """
        most, row = max(1, min(threads or self.size, self.size, MOST_THREADS)), 0
        stop = stop or NEVER
        while row < rows and not is_set(stop):
            function, args, number = words_at(table + 32 * row) if functions else (-1, 0, 0)
            if not function:
                functions[number](args)
                row += 1
                continue
            if self._cores[WAITING]:
                time.sleep(POLITE_SECONDS)
            row = self._slice(table, row, rows, most, stop, slice_ns)
        return row

    def _slice(self, table: int, row: int, rows: int, most: int, stop: int, slice_ns: int) -> int:
        """Run rows until the end, the end of the slice, or a Python function: the next row."""
        team = self._idle_team() if most > 1 else None
        if team is None:
            return native().alone(self._address, table, row, rows, stop, slice_ns)
        team.grow(most - 1)
        next_row = team.lead(self._address, most, table, row, rows, stop, slice_ns)
        return row if next_row == TAKEN else next_row

    def _idle_team(self) -> Team | None:
        """A team that no run has; a new one only when there are cores for it."""
        for team in self._teams:
            if not team.is_busy:
                return team
        if self._free > 1:
            self._teams.append(Team())
            return self._teams[-1]
        return None

    def pause(self) -> None:
        """Wait until no run is inside native code, and let none in: before a fork, so that no value is half written."""
        if _natives:
            while native().hold(self._address, self.size) < self.size:
                pass

    def resume(self) -> None:
        """Let runs go on."""
        if _natives:
            native().release(self._address)

    def close(self) -> None:
        """End the threads of all idle teams."""
        while self._teams:
            self._teams.pop().close()


def words_at(address: int) -> tuple[int, ...]:
    """The first words of a table's row."""
    return tuple((ctypes.c_int64 * 3).from_address(address))


def is_set(stop: int) -> bool:
    return ctypes.c_int64.from_address(stop).value != 0


_pool = ThreadPool(cores())
atexit.register(_pool.close)  # threads leave native code before the interpreter frees it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pool.pause, after_in_parent=_pool.resume, after_in_child=_pool.forget)
