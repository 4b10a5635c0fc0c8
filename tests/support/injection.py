"""An exception at a chosen Python line, or a chosen allocation, of this project's code.

Not inside callbacks of weak references and finalisers: Python runs them wherever the last reference to something goes,
and what is raised in them it prints and forgets. So no exception there, from wherever it comes, ever reaches a call.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import cgraph
import nn

FOLDERS = tuple(str(Path(package.__file__).parent) for package in (cgraph, nn))
FORGETTING = {("weakref.py", "remove"), ("_weakrefset.py", "_remove")}  # of WeakValueDictionary and WeakSet
FINALIZE = ("weakref.py", "__call__")  # given the dead reference when it is Python that calls it
CALLED_BY_C = ("libcuda.py", "late_cuda.py")  # the stand-in of the driver: ctypes prints what is raised in it
ALLOCATING = ("empty", "zeros", "array", "ascontiguousarray")


class Injected(BaseException):
    """As little expected as an exception can be."""


class Lines:
    """Line events of a call. Changes: counts them, and raises at one.

    Fields
        at: raise at this event, counted from 1, or the next whose exception reaches the call; 0 never raises
        seen: per event its file and line
        callers: per event the line that called its function
    """

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.seen: list[tuple[str, int]] = []
        self.callers: list[int] = []

    def during(self, act: Callable[[], Any]) -> bool:
        """Do it; whether the exception was raised."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            act()
        except Injected:
            return True
        finally:
            sys.settrace(before)
        return False

    def _called(self, frame: FrameType, event: str, _arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(FOLDERS) else None

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self.seen.append((frame.f_code.co_filename, frame.f_lineno))
            self.callers.append(frame.f_back.f_lineno if frame.f_back else 0)
            if 0 < self.at <= len(self.seen) and not is_forgotten(frame):
                self.at = 0
                raise Injected(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self._line


def is_forgotten(frame: FrameType | None) -> bool:
    """Whether Python prints and forgets what is raised in a frame."""
    while frame is not None:
        name = frame.f_code.co_name
        place = Path(frame.f_code.co_filename).name, name
        if (
            name == "__del__"
            or place[0] in CALLED_BY_C
            or place in FORGETTING
            or (place == FINALIZE and frame.f_locals["_"] is not None)
        ):
            return True
        frame = frame.f_back
    return False


def events(act: Callable[[], Any]) -> list[tuple[str, int]]:
    """The lines that a call runs, in order."""
    lines = Lines()
    assert not lines.during(act)
    return lines.seen


def first_events(act: Callable[[], Any]) -> list[int]:
    """For each line that a call runs, the number of its first event."""
    first: dict[tuple[str, int], int] = {}
    for i, line in enumerate(events(act), 1):
        first.setdefault(line, i)
    return list(first.values())


def ends_of_lines(act: Callable[[], Any]) -> tuple[list[tuple[str, int]], list[int]]:
    """The lines that a call runs, and the numbers of the first two events and the last one of each, in order.

    A line counts once for each line that calls its function; rounds in between repeat these.
    """
    lines = Lines()
    assert not lines.during(act)
    by_line: dict[Any, list[int]] = {}
    for i, line in enumerate(zip(lines.seen, lines.callers), 1):
        by_line.setdefault(line, []).append(i)
    return lines.seen, sorted({i for some in by_line.values() for i in (*some[:2], some[-1])})


@contextmanager
def no_memory(monkeypatch: Any, at: int):
    """The allocation of this number, counted from 1, fails; yields a list that grows by the file of each allocation."""
    made: list[str] = []

    def failing(name: str) -> Callable[..., Any]:
        real = getattr(np, name)

        def allocate(*args: Any, **named: Any) -> Any:
            made.append(sys._getframe(1).f_code.co_filename)
            if len(made) == at:
                raise MemoryError(f"allocation {at}, of np.{name}")
            return real(*args, **named)

        return allocate

    with monkeypatch.context() as patched:
        for name in ALLOCATING:
            patched.setattr(np, name, failing(name))
        yield made
