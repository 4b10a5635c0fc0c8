"""In-place joins: how many bytes before its fork the join of a region begins, so that it overwrites no row too early.

Idea: a region reads the rows of its *fork*, an image outside the region, in order, and writes the rows of its join in
order. The join may therefore begin before the fork, in separate bytes, and continue in the bytes of rows that are no
longer read.

Source: the diagonal overlap of an operator's result and operand of Blacker, Bridges and Hadfield 2020,
arXiv:2010.01668; here for a region, with the distance that its bands need. Time O(bands of the join) for each fork.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.budget.bands.row_rings import Read, Rows

Reading = tuple[int, Read]  # the position of a reader, and the rows that it reads


class Bands:
    """The bands of a region's join, and the rows of every value that are computed when each begins.

    Parameters
        join: the last value of the region
        done: rows of each value after each event, as `cgraph.budget.bands.row_rings.row_counts` returns them
    """

    def __init__(self, join: Rows, done: np.ndarray) -> None:
        at = np.flatnonzero(np.diff(done[-1], prepend=0))
        self.begun = done[:, at]
        self.begun[-1, 1:], self.begun[-1, :1] = self.begun[-1, :-1].copy(), 0
        self.written = done[-1, at] * join.row_nbytes

    def ahead(self, fork: Rows, readers: Sequence[Reading]) -> int:
        """Return the least distance of join and fork, in bytes, at which every row is read in time."""
        low = np.full(len(self.written), fork.rows)
        for i, read in readers:
            np.minimum(low, np.array((*read.first, fork.rows))[self.begun[i]], out=low)
        return max(int((self.written - low * fork.row_nbytes).max()), 0)
