"""Every exception that a user can meet, and byte counts as text.

A message names who complains, the values with their unit, the limit, and where the user's own line is. It quotes names
from files as visible text.
"""

from cgraph.terminal import visible


class CgraphError(Exception):
    """Base of all errors of this library."""

    is_located = False
    """The message says already which op, and which of the user's lines, it is about."""

    def __str__(self) -> str:
        return visible(super().__str__())


class ShapeError(CgraphError, ValueError):
    """Shapes do not fit together, or a size is impossible."""


class DTypeError(CgraphError, TypeError):
    """A dtype is not supported here, or a conversion would lose the value's kind."""


class ArgumentError(CgraphError, TypeError, ValueError):
    """A function is given something of a kind that it does not take."""


class NoMeaningError(CgraphError, TypeError, AttributeError):
    """A NumPy function, keyword, method or attribute says nothing of a node; the text names what does."""


class GraphError(CgraphError, ValueError):
    """The graph itself is not what the call needs: no outputs, an update of a non-Var, a cycle."""


class UnassignedError(CgraphError, ValueError):
    """A Var is read before it has a value."""


class InputError(CgraphError, ValueError):
    """A call has an unknown, missing or unfitting input."""


class PositionError(CgraphError, IndexError):
    """A position that is data lies outside its axis."""


class NoKernelError(CgraphError, NotImplementedError):
    """An op has no kernel on this engine."""


class NoGradientError(CgraphError, NotImplementedError):
    """An op has no gradient."""


class PlanError(CgraphError, ValueError):
    """A memory plan is unsound."""


class BudgetError(CgraphError, MemoryError):
    """No plan within the byte budget."""


class ArenaError(CgraphError, MemoryError):
    """The machine does not give the bytes of a plan."""


class MemoryWarning(UserWarning):
    """A plan takes more bytes than this machine has."""


class FormatError(CgraphError, ValueError):
    """A file is malformed, unsafe or not supported."""


class WeightsError(CgraphError, OSError):
    """The file that weights are read from cannot be read, or is not what it was."""


class EngineError(CgraphError, RuntimeError):
    """An engine cannot run here, or its device failed."""


class UnavailableError(CgraphError, RuntimeError):
    """A program or package that is optional is not installed."""


class MemberError(CgraphError, RuntimeError):
    """Work over several machines cannot go on: nobody is there, or those who are do not fit together."""


UNFIT = (CgraphError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What is raised where a part of a file is of another kind or size than its reader expects."""


def bytes_text(nbytes: int) -> str:
    """A byte count for people: ``bytes_text(16384) == '16 KiB'``."""
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    digits = 0 if size == int(size) else 1 if size >= 100 else 2
    return f"{size:.{digits}f} {unit}"
