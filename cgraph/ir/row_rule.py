"""RowRule: how the first rows of a result are computed, rows being positions along axis 0."""

from collections.abc import Callable
from typing import Any

from cgraph.record import Record


class RowRule(Record, eq=False):
    """Row i of an op's result depends on row i of some operands, and on all of the others.

    Fields
        operands: indices of the operands that are read row by row; each has at least as many rows as the result
        first: takes a number of rows and returns the op that computes that many first rows from those of the operands
    """

    operands: tuple[int, ...]
    first: Callable[[int], Any]


def rows_of_all(op: Any, *shapes: tuple[int, ...]) -> RowRule | None:
    """Return the rule of an op that has no size among its fields and reads all operands row by row."""
    return RowRule(tuple(range(len(shapes))), lambda rows: op) if shapes and all(shapes) else None
