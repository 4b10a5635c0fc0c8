"""How an op's result is computed a band of rows at a time: which rows it reads, and the op that makes some of them."""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.record import Record

ROWS = 2  # the axis of rows

RowTable = tuple[Sequence[int], Sequence[int]]
"""Per row of the result, the first row that is read and the one behind the last; neither falls."""


class Cut(Record, eq=False):
    """Rows are positions along axis `ROWS`, as in ``[n, c, h, w]`` and in blocks, frame included.

    The op that makes a band reads its operands' rows, and writes its own, where they lie in larger arrays: views of it
    may step over rows from one plane to the next. It gives the bits that the whole op gives.

    Fields
        reads: per operand, the table of its rows; None when every band reads it whole
        band: given the rows ``first, stop`` of the result, the op that makes them of the rows that they read
        above, below: rows of the frame, which are made with the first and the last band
        step: a band's rows are a multiple of it
    """

    reads: tuple[RowTable | None, ...]
    band: Callable[[int, int], Any]
    above: int = 0
    below: int = 0
    step: int = 1


def row_by_row(rows: int) -> RowTable:
    """Each row reads the same row."""
    return index_array(np.arange(rows)), index_array(np.arange(1, rows + 1))


def index_array(rows: np.ndarray) -> array:
    """Rows as a sequence of whole numbers of 8 bytes each: images have many rows."""
    return array("q", rows.astype(np.int64).tobytes())
