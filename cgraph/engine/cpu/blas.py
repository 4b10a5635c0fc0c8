"""Holding the threads of BLAS and OpenMP libraries to the cores that a run has."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class BlasLimit:
    """What is set in the libraries of this process. Changes: runs come and go; the last one to go restores."""

    runs: int = 0
    saved: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, threads: int) -> None:
        """The first run sets its own number; while there are several, each library call has one thread."""
        from threadpoolctl import threadpool_limits

        with self.lock:
            self.runs += 1
            if self.runs == 1:
                self.saved = threadpool_limits(limits=threads)
            elif self.runs == 2:
                threadpool_limits(limits=1)

    def leave(self) -> None:
        with self.lock:
            self.runs -= 1
            if self.runs == 0:
                self.saved.restore_original_limits()


@contextmanager
def limited_blas(threads: int) -> Iterator[None]:
    """BLAS and OpenMP libraries use at most `threads` threads meanwhile; costs about a millisecond."""
    _limit.enter(threads)
    try:
        yield
    finally:
        _limit.leave()


_limit = BlasLimit()
