"""The planning problem and its solution: intervals and sizes in, offsets out; independent of nodes, ops and devices.

Terms and definitions: Pisarchyk and Lee 2020, arXiv:2001.03288.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from cgraph.errors import PlanError
from cgraph.record import Record
from cgraph.system.alignment import ALIGNMENT, round_up

MOST_BYTES = 2**62  # the sum of two offsets still fits in 64 bits


class UsageInterval(Record):
    """The steps during which a value is in use.

    Fields
        first: the step that writes the value, at least 0
        last: the last step that reads it; both steps are included
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise PlanError(f"a usage interval is {self.first}..{self.last}. Pass steps with 0 <= first <= last")

    def meets(self, other: "UsageInterval") -> bool:
        return self.first <= other.last and other.first <= self.last


class ProblemOperand(Record):
    """The bytes of one value, or of several that overwrite one another.

    Fields
        nbytes: the exact size in bytes
        interval: the steps during which it is in use
        name: for messages and pictures
    """

    nbytes: int
    interval: UsageInterval
    name: str = ""

    def __post_init__(self) -> None:
        if self.nbytes < 0:
            raise PlanError(f"operand {self.name!r} has a negative size: {self.nbytes} bytes. Pass 0 or more")


class Tie(Record):
    """One of several operands that keep their distances.

    Fields
        operand: number of the operand
        at: bytes from a common origin to its beginning; may be negative
    """

    operand: int
    at: int


class Problem(Record):
    """Operands to be placed in one arena: the argument of a memory strategy.

        problem.nbytes, problem.first, problem.last  # int64 arrays, one number for each operand

    Fields
        operands: sizes and usage intervals; two whose intervals meet must not share bytes
        alignment: offsets are multiples of this number of bytes. `nbytes` has the sizes rounded up to it
        ties: groups of operands that keep their distances, for joins in place: only ``auto`` and ``squeaky_wheel``
            plan such a problem; other strategies are not given one
    """

    operands: tuple[ProblemOperand, ...]
    alignment: int = ALIGNMENT
    ties: tuple[tuple[Tie, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.alignment < 1:
            raise PlanError(f"an alignment must be at least 1 byte, got {self.alignment}. Pass alignment=1 or more")

    @cached_property
    def nbytes(self) -> np.ndarray:
        """Sizes rounded up to the alignment, int64 ``[n]``.

        Raises
            PlanError: all operands together have more bytes than an offset can count
        """
        return round_sizes([x.nbytes for x in self.operands], self.alignment)

    @cached_property
    def first(self) -> np.ndarray:
        """First step of each operand, int64 ``[n]``."""
        return np.fromiter((x.interval.first for x in self.operands), np.int64, len(self.operands))

    @cached_property
    def last(self) -> np.ndarray:
        """Last step of each operand (included), int64 ``[n]``."""
        return np.fromiter((x.interval.last for x in self.operands), np.int64, len(self.operands))

    @cached_property
    def starts(self) -> np.ndarray:
        """Steps at which an operand starts, in rising order without repetitions, int64 ``[m]``."""
        return distinct(self.first)


class Spans(Record, eq=False):
    """Sizes and intervals of a problem, from which bounds are computed.

    Fields
        nbytes: sizes rounded up to the alignment, int64 ``[n]``
        first, last: first and last step of each operand, int64 ``[n]``
    """

    nbytes: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """Steps at which an operand starts, in rising order without repetitions, int64 ``[m]``."""
        return distinct(self.first)


class Plan(Record):
    """The byte offset of every operand in one arena: what a memory strategy returns.

    Fields
        offsets: one for each operand, in the problem's order; multiples of its alignment
        nbytes: size of the arena: at least the end of every operand
        strategy: name of the strategy that computed it
        proved: True if the plan is proved to be the smallest possible (for a block strategy: the smallest in blocks)
    """

    offsets: tuple[int, ...]
    nbytes: int
    strategy: str = ""
    proved: bool = False


Strategy = Callable[[Problem], Plan]


def round_sizes(nbytes: Sequence[int], alignment: int) -> np.ndarray:
    """Return sizes rounded up to the alignment, int64 ``[n]``. PlanError if their sum does not fit in an offset."""
    sizes = [round_up(n, alignment) for n in nbytes]
    if sum(sizes) > MOST_BYTES:
        raise PlanError(
            f"the operands have {sum(sizes)} bytes together, an arena has at most {MOST_BYTES}. Use a smaller batch"
        )
    return np.array(sizes, np.int64)


def distinct(steps: np.ndarray) -> np.ndarray:
    """Return the distinct values in rising order. `np.unique` would import `numpy.ma`, which takes 20 ms."""
    return np.array(sorted(set(steps.tolist())), np.int64)


def problem_of(rows: Sequence[tuple[int, int, int]], alignment: int = 1) -> Problem:
    """Return a Problem of ``(nbytes, first, last)`` rows, for tests and files."""
    operands = tuple(ProblemOperand(size, UsageInterval(first, last)) for size, first, last in rows)
    return Problem(operands, alignment)
