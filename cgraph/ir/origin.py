"""Origins of nodes: the user's file and line, or a substitute while a graph is rewritten or read from a file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np

_OWN_FOLDERS = (str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "nn"), str(Path(np.__file__).parent))
ORIGIN: ContextVar[tuple[str, int] | None] = ContextVar("origin", default=None)
"""File and line of nodes created now; None for the line of the user's code that creates them."""


@contextmanager
def origin_at(file: str, line: int) -> Iterator[None]:
    """Set the origin of nodes created inside to a line of a file that describes a graph."""
    before = ORIGIN.get()
    try:
        ORIGIN.set((file, line))
        yield
    finally:
        ORIGIN.set(before)


def keeps_origin(function: Callable) -> Callable:
    """Restore the origin of nodes when the function ends, in whatever way.

    The function runs in a context of its own: an interrupt could come inside a `finally`.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(function, *args, **kwargs)

    return called


def user_line() -> tuple[str, int]:
    """Return file and line of the innermost frame outside this library and NumPy, or those of `origin_at`."""
    place = ORIGIN.get()
    if place is not None:
        return place
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


@cache
def is_own(file: str) -> bool:
    """Return True if a file belongs to this library or to NumPy."""
    return file.startswith(_OWN_FOLDERS)
