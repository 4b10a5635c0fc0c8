"""All exceptions that a user can meet, and byte counts as text.

A message names the operation, the values with their units, the limit and the user's line. Names from files are
quoted with invisible characters escaped.
"""

from cgraph.terminal import visible
from cgraph.tracebacks import lines_of


class CgraphError(Exception):
    """Base of all errors of this library."""

    is_located = False
    """True if the message already names the op and the user's line."""

    def __str__(self) -> str:
        return visible(super().__str__())

    def short_traceback(self) -> list[str]:
        """Return the lines of the traceback, the user's only: see `cgraph.tracebacks`."""
        return lines_of(self)

    _render_traceback_ = short_traceback  # as IPython and notebooks call it


class ShapeError(CgraphError, ValueError):
    """Shapes do not fit together, or a size is impossible."""


class DTypeError(CgraphError, TypeError):
    """A dtype is not supported here, or a conversion would lose the imaginary part or fraction."""


class ArgumentError(CgraphError, TypeError, ValueError):
    """An argument is of an unsupported kind."""


class NoMeaningError(CgraphError, TypeError, AttributeError):
    """A NumPy function, keyword, method or attribute does not apply to a node; the message names its replacement."""


class GraphError(CgraphError, ValueError):
    """The graph does not fit the call: no outputs, an update of a non-Var, a cycle."""


class OptionError(GraphError, TypeError):
    """A function has no such option; the message names the nearest one, or all."""


class UnassignedError(CgraphError, ValueError):
    """A Var without a value is read."""


class InputError(CgraphError, ValueError):
    """A call has an unknown, missing or unsuitable input."""


class PositionError(CgraphError, IndexError):
    """A position given as data lies outside its axis."""


class NoKernelError(CgraphError, NotImplementedError):
    """An op has no kernel on this engine."""


class NoGradientError(CgraphError, NotImplementedError):
    """An op has no gradient."""


class PlanError(CgraphError, ValueError):
    """A memory plan is unsound."""


class BudgetError(CgraphError, MemoryError):
    """No plan fits the byte budget."""


class ArenaError(CgraphError, MemoryError):
    """The machine cannot provide the bytes of a plan."""


class MemoryWarning(UserWarning):
    """A plan takes more bytes than this machine has."""


class FormatError(CgraphError, ValueError):
    """A file is malformed, unsafe or not supported."""


def damaged_file(text: str) -> FormatError:
    """Return the error for a file whose parts contradict one another, as `text` says."""
    return FormatError(f"{text}. The file is damaged: export or download it again")


class WeightsError(CgraphError, OSError):
    """The file of weights cannot be read, or has changed."""


class EngineError(CgraphError, RuntimeError):
    """An engine cannot run here, or its device failed."""


class UnavailableError(CgraphError, RuntimeError):
    """An optional program or package is not installed."""


class MemberError(CgraphError, RuntimeError):
    """Work on several machines cannot continue: a worker is missing or does not fit the others."""


UNFIT = (CgraphError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Exceptions raised if a part of a file differs in kind or size from the reader's expectation."""


def bytes_text(nbytes: int) -> str:
    """Return a byte count as text: ``bytes_text(16384) == '16 KiB'``."""
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    digits = 0 if size == int(size) else 1 if size >= 100 else 2
    return f"{size:.{digits}f} {unit}"
