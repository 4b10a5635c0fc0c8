"""Origins of nodes: the user's file and line, or a substitute while a graph is rewritten or read from a file."""

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from os.path import basename
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_OWN_FOLDERS = (str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "nn"), str(Path(np.__file__).parent))
MOST_LETTERS = 200  # of a name in a file
_TARGET = re.compile(r"\s*([^\W\d]\w*)\s*(?::[^=]+)?=(?!=)(?!.*\b(?:compile\w*|export|jit|quantise|train\w*)\()")
"""The variable of an assignment, except of one that makes something else of a graph."""


class Origin(NamedTuple):
    """The place where a node was created.

    Fields
        file, line: the user's file and line, or those of a file that describes a graph
        name: the path of the layer, or the node's name in the file; empty without one
    """

    file: str
    line: int
    name: str = ""

    def __str__(self) -> str:
        """Return ``train.py:41``, with a name ``train.py:41 in blocks.0``."""
        return f"{basename(self.file)}:{self.line}" + (f" in {self.name}" if self.name else "")


ORIGIN: ContextVar[Origin | None] = ContextVar("origin", default=None)
"""Origin of nodes created now; None for the line of the user's code that creates them."""
NAME: ContextVar[str] = ContextVar("name", default="")
"""Name of nodes created now, where `ORIGIN` is None: the path of the layer that is built."""


@contextmanager
def origin_at(file: str, line: int, name: str = "") -> Iterator[None]:
    """Set the origin of nodes created inside to a line of a file that describes a graph."""
    before = ORIGIN.get()
    try:
        ORIGIN.set(Origin(file, line, name[:MOST_LETTERS]))
        yield
    finally:
        ORIGIN.set(before)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Set the name of nodes created inside, where no origin is set."""
    before = NAME.get()
    try:
        NAME.set(name)
        yield
    finally:
        NAME.set(before)


def keeps_origin(function: Callable) -> Callable:
    """Restore the origin of nodes when the function ends, in whatever way.

    The function runs in a context of its own: an interrupt could come inside a `finally`.
    """

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(function, *args, **kwargs)

    return called


def user_line() -> Origin:
    """Return the origin of the innermost frame outside this library and NumPy, or that of `origin_at`."""
    place = ORIGIN.get()
    if place is not None:
        return place
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno, NAME.get())


@cache
def variable_at(file: str, line: int) -> str:
    """Return the variable that a line of Python assigns; empty if it assigns none, or several."""
    if not (file.endswith(".py") or file.startswith("<")):
        return ""
    target = _TARGET.match(linecache.getline(file, line))
    return target[1] if target else ""


@cache
def is_own(file: str) -> bool:
    """Return True if a file belongs to this library or to NumPy."""
    return file.startswith(_OWN_FOLDERS)
