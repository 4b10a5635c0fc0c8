"""Execution of tables of kernel calls on threads, within one budget of cores for the whole process.

A run takes cores from the budget and waits while none is free, so several functions and several Python threads together
never keep more threads busy than there are cores. With one core the table runs on the caller's thread. With more, the
caller leads a team: Python threads that enter native code once and stay there for later runs (see
`cgraph.kernels.interpret.emit`).

Native code takes and returns cores and teams. Python therefore runs only while a run holds neither: between two kernel
calls after a time slice, so that signals are handled, and where the table calls a Python function, which may wait for
another thread's run.
"""

import atexit
import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.engine.cpu.cores import cores
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.kernel import Kernel
from cgraph.system.fair_lock import FairLock
from cgraph.system.machine import at_fork, has_futex, quick_clock

SLICE_NANOSECONDS = 20_000_000
NEVER_OVER = 1 << 60  # a slice that no run outlasts
POLITE_SECONDS = 1e-4  # seconds in which waiting threads get a core faster
MOST_THREADS = 64
# Words of a team and of the cores; the same numbers as in cgraph.kernels.interpret.emit, which a warm process does not
# import.
WORD, QUIT, BUSY, TEAM_WORDS = 0, 48, 49, 96 + 16 * MOST_THREADS
FREE, WAITING, CORES_WORDS, TEAM_BUSY = 0, 16, 32, -1
RUN_OVER = 255 << 24
_NEVER = np.zeros(1, np.int64)
NEVER = _NEVER.ctypes.data  # a stop word that is never set

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
    table: int, rows: int, threads: int, stop: int = 0, functions: Sequence[Function] = (), whole: bool = False
) -> int:
    """Run the rows of a table at an address, without time slices if `whole`; see `ThreadPool.run`."""
    return _pool.run(table, rows, threads, stop, functions, NEVER_OVER if whole else SLICE_NANOSECONDS)


class Native:
    """The interpreter's functions: run alone, enter a call with arrays, lead a team, follow in a team, hold and release
    all cores.

    The last two belong to the reader of weights: read pieces of a file into a ring, and halt. A function is loaded when
    it is first used, together with those of its group. Changes: attributes are added.

    Fields
        memory: of functions that no store owns
    """

    alone: Callable[..., int]
    enter: Callable[..., int]
    lead: Callable[..., int]
    follow: Callable[..., int]
    hold: Callable[..., int]
    release: Callable[..., int]
    read: Callable[..., int]
    halt: Callable[..., int]
    memory: Any = None

    def __getattr__(self, name: str) -> Any:
        """Load the group of a function that is not there yet, compiling it if it is not cached."""
        group = next((group for group in GROUPS if name in group), None)
        if group is None:
            raise AttributeError(name)
        kernels = [kernel for kernel in interpreter() if kernel.family.rpartition(".")[2] in group]
        target = import_module("cgraph.kernels.target").host_target()
        self.add(import_module("cgraph.kernels.store").store().load(kernels, target))
        return vars(self)[name]

    def add(self, addresses: Mapping[Kernel, int]) -> None:
        """Add the functions at these addresses."""
        new = {}
        for kernel, address in addresses.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * WORDS[kernel.family])
            new[kernel.family.rpartition(".")[2]] = kind(address)
        vars(self).update(new)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return ctypes.cast(getattr(self, name), ctypes.c_void_p).value or 0

    @property
    def is_used(self) -> bool:
        """True if a run may be inside native code."""
        return "hold" in vars(self)


WORDS = {  # that the functions are given
    "interpret.alone": 6,
    "interpret.arrays.enter": 2,
    "interpret.lead": 8,
    "interpret.follow": 2,
    "interpret.hold": 2,
    "interpret.release": 1,
    "ring.read": 4,
    "ring.halt": 1,
}
FORK = ("hold", "release")  # of every group that runs calls: compiling them in a fork would wait for the store
GROUPS = (("alone", *FORK), ("enter",), ("lead", "follow", *FORK), ("read", "halt"))
_native = Native()


def native() -> Native:
    """Return this process's interpreter, whose functions are loaded when they are first used."""
    return _native


def offer_native(make: Callable[[], tuple[Mapping[Kernel, int], Any]]) -> None:
    """Install the interpreter that `make` returns (addresses and memory), if this process has none.

    The functions are never freed, because threads sleep inside their code.
    """
    if not _native.is_used:
        addresses, _native.memory = make()
        _native.add(addresses)


def interpreter() -> list[Kernel]:
    """Return the kernels that form the interpreter on this system."""
    return [Kernel(name, (quick_clock(), futex_number())) for name in WORDS]


def futex_number() -> int:
    """Return the number of the system call ``futex``, 0 if there is none. Source: Linux, syscall tables."""
    return host_architecture().futex if has_futex() else 0


def aligned_words(count: int) -> np.ndarray:
    """Return zeroed words that start at a pair of cache lines."""
    raw = np.zeros(count + 16, np.int64)
    start = -raw.ctypes.data % 128 // 8
    return raw[start : start + count]


def new_cores(count: int) -> np.ndarray:
    """Return the words of `count` free cores."""
    words = aligned_words(CORES_WORDS)
    words[FREE] = count
    return words


class Team:
    """Shared words and the threads that watch them. Mutable: the words; threads are added when first needed."""

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
        """Start threads up to `workers`, or as many as the system allows."""
        if workers > self._grown:
            self._turns.run(lambda: self._start(workers))

    def _start(self, workers: int) -> None:
        """Start the missing members. A member whose counting an exception interrupted is started again.

        The second thread of one member returns at once.
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
        """Run rows with up to `most` threads to the end or the end of the slice; return the next row or TEAM_BUSY."""
        return native().lead(cores, self.address, most, table, row, rows, stop, slice_ns)

    def close(self) -> None:
        """End the threads, unless a run is in progress."""
        if self.is_busy:
            return
        self.words[QUIT] = 1
        self.lead(new_cores(1).ctypes.data, 1, 0, 0, 0, NEVER, SLICE_NANOSECONDS)
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()


class ThreadPool:
    """A budget of cores, and teams. Mutable: teams are created and reused; native code counts cores."""

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self._cores = new_cores(self.size)
        self._address = self._cores.ctypes.data
        self._teams: list[Team] = []

    def forget(self) -> None:
        """Reset to no runs and no threads: the state of a forked child. Words keep their address, which calls hold."""
        self._cores[...] = new_cores(self.size)
        self._teams = []

    @property
    def _free(self) -> int:
        """Cores that no run uses."""
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
                the number in place of the tasks selects it from `functions`; its argument is the arguments' address
            threads: most threads, including the caller's; 0 means all cores. Fewer run when other runs use cores
            stop: address of a word; once it is not 0, the run ends after the current call. 0 means none
            functions: the Python functions of the table; an exception of theirs ends the run
            slice_ns: nanoseconds of kernels between two checks for signals
        """
        most = 1 if threads == 1 else max(1, min(threads or self.size, self.size, MOST_THREADS))
        row, stop = 0, stop or NEVER
        while row < rows:
            function, args, number = words_at(table + 32 * row) if functions else (-1, 0, 0)
            if not function:
                functions[number](args)
                row += 1
                continue
            if self._cores[WAITING]:
                time.sleep(POLITE_SECONDS)
            row = self._slice(table, row, rows, most, stop, slice_ns)
            if row < rows and is_set(stop):
                break
        return row

    def _slice(self, table: int, row: int, rows: int, most: int, stop: int, slice_ns: int) -> int:
        """Run rows until the end, the end of the slice, or a Python function; return the next row."""
        team = self._idle_team() if most > 1 else None
        if team is None:
            return _native.alone(self._address, table, row, rows, stop, slice_ns)
        team.grow(most - 1)
        next_row = team.lead(self._address, most, table, row, rows, stop, slice_ns)
        return row if next_row == TEAM_BUSY else next_row

    def _idle_team(self) -> Team | None:
        """Return an idle team; create one only if there are cores for it."""
        for team in self._teams:
            if not team.is_busy:
                return team
        if self._free > 1:
            self._teams.append(Team())
            return self._teams[-1]
        return None

    def pause(self) -> None:
        """Wait until no run is inside native code, and let none in: before a fork, so that no value is half written."""
        if _native.is_used:
            while native().hold(self._address, self.size) < self.size:
                pass

    def resume(self) -> None:
        """Let runs continue."""
        if _native.is_used:
            native().release(self._address)

    def close(self) -> None:
        """End the threads of all idle teams."""
        while self._teams:
            self._teams.pop().close()


def words_at(address: int) -> tuple[int, ...]:
    """Return the first words of a table's row."""
    return tuple((ctypes.c_int64 * 3).from_address(address))


def is_set(stop: int) -> bool:
    return ctypes.c_int64.from_address(stop).value != 0


def cores_address() -> int:
    """Return the address of the words of this process's cores."""
    return _pool._address


_pool = ThreadPool(cores())
atexit.register(_pool.close)  # threads leave native code before the interpreter frees it
at_fork(_pool.pause, _pool.resume, _pool.forget)
