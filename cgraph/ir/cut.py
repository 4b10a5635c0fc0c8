"""Band-wise computation of an op: the rows it reads, and the op that computes some rows of its result."""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.record import Record

ROWS = 2  # the axis of rows

RowTable = tuple[Sequence[int], Sequence[int]]
"""Per row of the result, the first row that is read and the end of those; neither decreases."""


class Cut(Record, eq=False):
    """The rows that an op reads for a band of its result. Rows are positions along axis `ROWS`, halo included.

    The op that computes a band reads and writes rows inside larger arrays; views of them may have gaps from one plane
    to the next. Its result has the bits of the whole op.

    Fields
        reads: per operand, the table of its rows; None if every band reads the whole operand
        band: takes the rows ``first, stop`` of the result and returns the op that computes them from the rows they read
        above, below: rows of the halo, computed with the first and the last band
        step: the number of rows of a band is a multiple of it
    """

    reads: tuple[RowTable | None, ...]
    band: Callable[[int, int], Any]
    above: int = 0
    below: int = 0
    step: int = 1


def row_by_row(rows: int) -> RowTable:
    """Return the table in which each row reads the same row."""
    return index_array(np.arange(rows)), index_array(np.arange(1, rows + 1))


def index_array(rows: np.ndarray) -> array:
    """Return rows as a sequence of 8-byte integers, since images have many rows."""
    return array("q", rows.astype(np.int64).tobytes())
