"""Runs that are interrupted from outside, also where the process was started with interrupts ignored (as a job in the
background is).
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Within, an interrupt comes once after some time, and raises KeyboardInterrupt. What comes too late is lost."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        yield
    finally:
        timer.cancel()
        with suppress(KeyboardInterrupt):
            timer.join()
        signal.signal(signal.SIGINT, before)


def was_interrupted(run: Callable[[], object], seconds: float) -> bool:
    """Run it, with an interrupt after some time; whether that came before the end, and not after it."""
    try:
        with interrupt_after(seconds):
            run()
    except KeyboardInterrupt:
        return True
    return False


def seconds_of(run: Callable[[], object]) -> float:
    """How long a run takes, for interrupts that come within one on whatever machine."""
    start = perf_counter()
    run()
    return perf_counter() - start
