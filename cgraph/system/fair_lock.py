"""One at a time, in the order they came.

A lock that is left locked when an exception comes at the wrong moment stops every later call, and a forked child waits
for ever for one that another thread had. So who has the turn is told by an object that lives as long as its call does:
the turn is over when that says so, when it is gone, and in any other process.
"""

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 0.05  # seconds after which who waits looks again at who is before; only an exception makes it wait so long


class Ticket:
    """One call's place in the line. Changes: it ends."""

    __slots__ = ("__weakref__", "_gate", "_is_over", "process", "thread")

    def __init__(self) -> None:
        self.process, self.thread = os.getpid(), threading.get_ident()
        self._is_over, self._gate = False, threading.Lock()
        self._gate.acquire()

    @property
    def is_over(self) -> bool:
        return self._is_over or self.process != os.getpid()

    def end(self) -> None:
        """Let the next one go on; done once, whoever says it again."""
        if not self._is_over:
            self._is_over = True
            self._gate.release()

    def wait(self) -> None:
        """Return when it ended, or after a while."""
        if self._gate.acquire(timeout=PATIENCE):
            self._gate.release()


class FairLock:
    """A line of calls. Changes: calls come and go. A call inside a call of the same thread does not wait."""

    def __init__(self) -> None:
        self._line: dict[int, weakref.ref[Ticket]] = {}
        self._numbers = itertools.count()

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, called when those that came before are over."""
        turn = Ticket()
        try:
            try:
                self.join(turn)
                return work()
            finally:
                turn.end()
        finally:
            turn.end()  # again: an exception may have come just before

    def join(self, turn: Ticket) -> None:
        """Wait until it is this turn, which its caller ends."""
        self._line[next(self._numbers)] = weakref.ref(turn)
        while (first := self._first()) is not turn and first.thread != turn.thread:
            first.wait()

    def _first(self) -> Ticket:
        """The first one that is not over; those before it are struck out."""
        for number, reference in list(self._line.items()):
            turn = reference()
            if turn is not None and not turn.is_over:
                return turn
            self._line.pop(number, None)
        raise LookupError("a turn that is not in the line waits for itself")
