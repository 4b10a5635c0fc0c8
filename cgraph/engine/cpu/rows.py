"""Table rows prepared for a run."""

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np


class TableRows:
    """Rows of a table in two parts: the second part writes Vars and runs as one uninterrupted call.

    Fields
        numbers: the rows in the whole table; None means all
        first, count: address of the first row of the first part, and number of its rows
        second, rest: the same of the second part
        functions: the Python functions among the calls; None means those of the instance
    """

    functions: Sequence[Callable[[int], None]] | None = None

    def __init__(self, table: np.ndarray, split: int, numbers: np.ndarray | None = None) -> None:
        self.table, self.numbers = table, numbers
        self.first, self.count = table.ctypes.data, split
        self.second, self.rest = self.first + split * table.strides[0], len(table) - split

    def calling(self, table: np.ndarray, functions: Sequence[Callable[[int], None]]) -> "TableRows":
        """Return the same rows with other calls."""
        rows = copy(self)
        TableRows.__init__(rows, table, self.count, self.numbers)
        rows.functions = functions
        return rows
