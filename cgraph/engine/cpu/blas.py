"""A limit of one thread for BLAS and OpenMP libraries during a run, because more threads would change the bits."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from cgraph.system.fair_lock import FairLock, Ticket

T = TypeVar("T")


class BlasLimit:
    """The thread settings of this process's libraries. Mutable: the last run to end restores them.

    Active runs and the previous settings are recorded before anything changes. A step that an exception interrupts is
    therefore completed when the next run begins or ends.
    """

    def __init__(self) -> None:
        self._runs: WeakSet[Ticket] = WeakSet()
        self._before: list[tuple[Any, int]] | None = None
        self._libraries: list[Any] = []
        self._modules = 0
        self._turns = FairLock()

    def run(self, work: Callable[[], T]) -> T:
        """Return ``work()``, called with one thread in each library."""
        run = Ticket()
        try:
            try:
                self._runs.add(run)
                self._turns.run(self._settle)
                return work()
            finally:
                self._leave(run)
        finally:
            self._leave(run)  # again: an exception may have come in the midst of it

    def _leave(self, run: Ticket) -> None:
        run.end()
        self._turns.run(self._settle)

    def _settle(self) -> None:
        """Apply the due setting: one thread while a run is active, else the previous setting."""
        is_on = any(not run.is_over for run in self._runs)
        if is_on and self._before is None:
            self._before = [(library, library.num_threads) for library in self._loaded()]
        for library, count in self._before or ():
            library.set_num_threads(1 if is_on else count)
        if not is_on:
            self._before = None

    def _loaded(self) -> list[Any]:
        """Return this process's libraries. A search takes half a millisecond, so it is repeated after imports only."""
        if self._modules != len(sys.modules):
            from threadpoolctl import ThreadpoolController

            count = len(sys.modules)
            self._libraries = ThreadpoolController().lib_controllers
            self._modules = count
        return self._libraries


_limit = BlasLimit()


def with_one_thread(work: Callable[[], T]) -> T:
    """Return ``work()``, called while BLAS and OpenMP libraries use one thread."""
    return _limit.run(work)
