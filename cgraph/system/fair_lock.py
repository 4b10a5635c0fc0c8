"""A fair lock: calls run one at a time, in order of arrival.

A plain lock that an exception leaves locked would stop every later call, and a forked child would wait for ever for a
lock of another thread. Here the holder is a ticket, an object that lives as long as its call. Ownership ends when the
ticket is released or collected, and after a fork.
"""

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 0.05  # seconds after which a waiting call checks the ticket before it again; needed only after an exception


class Ticket:
    """One call's place in the queue. Mutable: it ends."""

    __slots__ = ("__weakref__", "_gate", "_is_over", "process", "thread")

    def __init__(self) -> None:
        self.process, self.thread = os.getpid(), threading.get_ident()
        self._is_over, self._gate = False, threading.Lock()
        self._gate.acquire()

    @property
    def is_over(self) -> bool:
        return self._is_over or self.process != os.getpid()

    def end(self) -> None:
        """Release the lock; later calls do nothing."""
        if not self._is_over:
            self._is_over = True
            self._gate.release()

    def wait(self) -> None:
        """Wait until the ticket is released, or for a short time."""
        if self._gate.acquire(timeout=PATIENCE):
            self._gate.release()


class FairLock:
    """A fair lock: calls run one at a time, in order of arrival. Reentrant within a thread. Mutable: its queue."""

    def __init__(self) -> None:
        self._line: dict[int, weakref.ref[Ticket]] = {}
        self._numbers = itertools.count()

    def run(self, work: Callable[[], T]) -> T:
        """Call `work` when all earlier tickets are released, and return its result."""
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
        """Wait for this ticket's turn; the caller releases it."""
        self._line[next(self._numbers)] = weakref.ref(turn)
        while True:
            first = self._first()
            if first is turn or first.thread == turn.thread:
                return
            first.wait()
            del first  # a ticket that was lost lives as long as somebody refers to it

    def _first(self) -> Ticket:
        """Return the first living ticket, and remove those before it."""
        for number, reference in list(self._line.items()):
            turn = reference()
            if turn is not None and not turn.is_over:
                return turn
            self._line.pop(number, None)
        raise LookupError("a ticket that is not in the queue waits for itself")
