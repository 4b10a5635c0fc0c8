"""Runs that are interrupted from outside."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress


def was_interrupted(run: Callable[[], object], seconds: float) -> bool:
    """Run it, with an interrupt after some time; whether that came before the end, and not after it."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    found = False
    try:
        timer.start()
        run()
    except KeyboardInterrupt:
        found = True
    with suppress(KeyboardInterrupt):
        timer.join()
    return found
