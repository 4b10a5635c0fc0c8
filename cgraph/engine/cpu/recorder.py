"""Runs that record the times of every kernel call: which thread ran which tasks of which step, and when.

A recorded run has a separate table: each row names `cgraph.kernels.timed.emit` instead of the kernel. That wrapper
calls the kernel and reads the clock before and after, which costs tens of nanoseconds. Steps are divided among threads
as in any other run.
"""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from cgraph.engine.cpu.rows import TableRows
from cgraph.engine.instance import Share
from cgraph.kernels.control import CONTROLS, REPEAT
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from cgraph.kernels.target import Target
from cgraph.kernels.timed.emit import ENTRIES, FIELDS, MOST
from cgraph.system.machine import MONOTONIC_CLOCK

MOST_ENTRIES = 1 << 20  # of the rounds of loops; later ones are not recorded


class Recorder:
    """The log of a run. Mutable: native code and Python functions append to it.

    Fields
        rows: the rows to run in place of the original ones
    """

    def __init__(self, rows: TableRows, functions: Sequence[Callable[[int], None]], target: Target) -> None:
        table = rows.table.copy()
        called = np.flatnonzero(table[:, 0] > CONTROLS)
        shares = -(-table[called, 2] // np.maximum(table[called, 3], 1))
        entries = int(shares.sum())
        if (table[:, 0] == REPEAT).any():
            entries = max(entries, MOST_ENTRIES)
        self._log = np.zeros(ENTRIES + FIELDS * entries, np.int64)
        self._log[MOST] = entries
        self._args = np.stack(
            [table[called, 0], table[called, 1], called, np.full(len(called), self._log.ctypes.data)], axis=1
        )
        kernel = Kernel("timed.timed", (MONOTONIC_CLOCK,))
        table[called, 0] = store().load([kernel], target)[kernel]
        table[called, 1] = self._args.ctypes.data + self._args.strides[0] * np.arange(len(called))
        self._row_of = {int(table[row, 1]): int(row) for row in np.flatnonzero(table[:, 0] == 0)}
        self._python: list[tuple[int, ...]] = []
        self._numbers = rows.numbers
        self.rows = rows.calling(table, [self._timed(function) for function in functions])

    def _timed(self, function: Callable[[int], None]) -> Callable[[int], None]:
        def run(args: int) -> None:
            begin = time.perf_counter_ns()
            function(args)
            end = time.perf_counter_ns()
            self._python.append((self._row_of[args], 0, 1, begin, end, threading.get_ident()))

        return run

    def shares(self, first_row: np.ndarray) -> tuple[Share, ...]:
        """Return the recorded shares ordered by begin; `first_row` is that of each step in the whole table."""
        count = min(int(self._log[0]), int(self._log[MOST]))
        native = self._log[ENTRIES : ENTRIES + FIELDS * count].reshape(-1, FIELDS)
        entries = np.concatenate([native, np.array(self._python, np.int64).reshape(-1, FIELDS)])
        entries = entries[np.argsort(entries[:, 3], kind="stable")]
        rows = entries[:, 0] if self._numbers is None else self._numbers[entries[:, 0]]
        steps = np.searchsorted(first_row, rows, "right") - 1
        threads = {
            number: i for i, number in enumerate(dict.fromkeys([threading.get_ident(), *entries[:, 5].tolist()]))
        }
        return tuple(
            Share(step, threads[thread], first, last, begin, end)
            for step, (_, first, last, begin, end, thread) in zip(steps.tolist(), entries.tolist())
        )
