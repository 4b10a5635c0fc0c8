"""Unhandled errors and warnings as visible text; Python itself would print names unchanged."""

import sys
import warnings
from traceback import format_exception
from types import TracebackType
from typing import TextIO

from cgraph.terminal import complain


def show_visibly() -> None:
    """Make this process show errors and warnings as visible text; for programs, not for libraries."""
    sys.excepthook = show_error
    warnings.showwarning = show_warning


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    complain("".join(format_exception(kind, error, trace)).rstrip("\n"))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    complain(warnings.formatwarning(str(message), category, filename, lineno, line).rstrip("\n"))
