"""The join of a region over its fork: how far before it the join begins, so that no row is overwritten that is read.

Idea: where rows of two images lie one behind the other, a region reads those of the *fork*, an image outside, from the
first on, and makes those of its join from the first on. So the join may begin before the fork, in bytes of its own, and
go on in those of rows that nobody reads any more.

Source: the diagonal overlap of an operator's result and operand of Blacker, Bridges and Hadfield 2020,
arXiv:2010.01668; here of a region, with the distance that its bands need.
Time O(bands of the join) for each fork.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.budget.bands.row_rings import Read, Rows

Reading = tuple[int, Read]  # the position of a reader, and the rows that it reads


class Bands:
    """The bands of a region's join, and how far every value is when they begin.

    Parameters
        join: the last value
        done: rows of each value after each event, as `cgraph.budget.bands.row_rings.row_counts` says
    """

    def __init__(self, join: Rows, done: np.ndarray) -> None:
        at = np.flatnonzero(np.diff(done[-1], prepend=0))
        self.begun = done[:, at]
        self.begun[-1, 1:], self.begun[-1, :1] = self.begun[-1, :-1].copy(), 0
        self.written = done[-1, at] * join.row_nbytes

    def ahead(self, fork: Rows, readers: Sequence[Reading]) -> int:
        """Bytes from where the join begins to where the fork begins, at least, so that every row is read in time."""
        low = np.full(len(self.written), fork.rows)
        for i, read in readers:
            np.minimum(low, np.array((*read.first, fork.rows))[self.begun[i]], out=low)
        return max(int((self.written - low * fork.row_nbytes).max()), 0)
