"""Tracebacks of this library's errors: the user's lines, without the library's own frames.

The environment variable ``CGRAPH_TRACEBACK=full`` shows every frame. The exceptions themselves keep all frames and
their chain of causes, for debuggers and `traceback.print_exception`.
"""

import os
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when an error is shown
    from traceback import TracebackException

VARIABLE = "CGRAPH_TRACEBACK"
FOLDER = os.path.dirname(os.path.abspath(__file__))
OWN = (FOLDER + os.sep, os.path.join(os.path.dirname(FOLDER), "nn") + os.sep)
Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def lines_of(error: BaseException) -> list[str]:
    """Return the lines of an error's traceback, without the frames of this library if others are left."""
    from traceback import TracebackException

    text = TracebackException.from_exception(error, compact=True)
    hidden = 0 if os.environ.get(VARIABLE) == "full" else sum(map(hide_frames, chain_of(text)))
    lines = "".join(text.format()).splitlines()
    if hidden:
        lines.append(f"({hidden} frames of the library are hidden; {VARIABLE}=full shows them)")
    return lines


def chain_of(text: "TracebackException") -> Iterator["TracebackException"]:
    """Yield an error, its cause or context, and so on."""
    link: TracebackException | None = text
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def hide_frames(text: "TracebackException") -> int:
    """Remove the frames of this library and of NumPy's calls into it, unless no other is left. Return their number."""
    from traceback import StackSummary

    frames = [x for x in text.stack if not is_hidden(x.filename)]
    count = len(text.stack) - len(frames)
    if frames:
        text.stack = StackSummary.from_list(frames)
    return count if frames else 0


def is_hidden(file: str) -> bool:
    """Return True for a file of this library, or of NumPy, whose functions call it."""
    numpy = sys.modules.get("numpy")
    return file.startswith(OWN) or (
        numpy is not None and file.startswith(os.path.dirname(str(numpy.__file__)) + os.sep)
    )


def short_tracebacks(before: Hook) -> Hook:
    """Return a hook for `sys.excepthook` that prints errors with a method ``short_traceback`` by it.

    Parameters
        before: the hook for all other errors
    """

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        short = getattr(kind, "short_traceback", None)
        if short is None:
            before(kind, error, traceback)
        else:
            from cgraph.terminal import complain

            complain("\n".join(short(error)))

    return show
