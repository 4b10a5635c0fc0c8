"""Where nodes come from: the user's own file and line, or what stands for it while a graph is rewritten or read."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np

_OWN_FOLDERS = (str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "nn"), str(Path(np.__file__).parent))
ORIGIN: ContextVar[tuple[str, int] | None] = ContextVar("place", default=None)
"""File and line that nodes made now come from; None for that of the user's code that makes them."""


@contextmanager
def origin_at(file: str, line: int) -> Iterator[None]:
    """Nodes made inside come from this line of a file that describes a graph, not from a line of Python."""
    before = ORIGIN.get()
    try:
        ORIGIN.set((file, line))
        yield
    finally:
        ORIGIN.set(before)


def keeps_origin(function: Callable) -> Callable:
    """Whatever happens in the function, nodes made after it come from where those before it came from.

    It runs in a context of its own: a `finally` would have a line at which an interrupt may come.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(function, *args, **kwargs)

    return called


def user_line() -> tuple[str, int]:
    """File and line of the innermost frame that is not this library's or NumPy's; or what `origin_at` says."""
    place = ORIGIN.get()
    if place is not None:
        return place
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


@cache
def is_own(file: str) -> bool:
    """Whether a file is this library's or NumPy's."""
    return file.startswith(_OWN_FOLDERS)
