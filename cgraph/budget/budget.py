"""The budget of a plan: its bytes, and the means that the options request."""

from cgraph.record import Record


class Budget(Record):
    """Bytes that a plan may take, and the options that change the graph to save bytes.

    Fields
        nbytes: bytes of the arena; None for any number
        bands: minimum pixels of a band; bands are then used wherever they make the plan smaller. None: only where
            `nbytes` requires them
        recompute: True for the smallest plan in which segments run twice; a number of bytes for the least extra work;
            a share of the work, below 1, to rematerialise only what is cheap
        best_effort: if no plan fits, return the smallest one instead of raising BudgetError
    """

    nbytes: int | None = None
    bands: int | None = None
    recompute: bool | float = False
    best_effort: bool = False

    @property
    def is_free(self) -> bool:
        """Return True if the plan may take any number of bytes and no option changes the graph."""
        return self.nbytes is None and self.bands is None and not self.recompute

    @property
    def limit(self) -> int | None:
        """Bytes that a plan may take, by `nbytes` and by `recompute`; None for any number."""
        limits = (self.nbytes, recompute_nbytes(self.recompute))
        return min((n for n in limits if n is not None), default=None)

    @property
    def recomputes_segments(self) -> bool:
        """Return True if `recompute` is True or a number of bytes."""
        return self.recompute is True or recompute_nbytes(self.recompute) is not None

    @property
    def share(self) -> float:
        """The largest share of the work that may run twice without need; 0 unless `recompute` is a share."""
        return self.recompute if 0 < self.recompute < 1 else 0.0

    def is_met(self, nbytes: int) -> bool:
        """Return True if a plan of `nbytes` bytes meets the budget."""
        return self.nbytes is None or nbytes <= self.nbytes


def recompute_nbytes(recompute: bool | float) -> int | None:
    """The bytes that `recompute` allows; None where it is True, False or a share of the work."""
    return None if isinstance(recompute, bool | float) else recompute
