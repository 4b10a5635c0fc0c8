"""Some contiguous rows at a time: their chains of operations overlap, and their lanes are joined together.

The last vector of a row overlaps its neighbour. Emitters compute it first and write it last, so an output may be the
operand; sums ignore the lanes that both have. Rows of a block have the bits of a row alone.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from cgraph.kernels.llvm.accumulate import Accumulator, get, put
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.row_totals import join_rows
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.views.layout import CHAIN


class RowBlock:
    """The columns of some rows, a vector or more.

    Fields
        end: the first column of the last vector
        whole: columns before the last vector, in whole vectors; from 1 to `lanes` are left
        is_inside: True in the lanes of the last vector that its neighbour does not have
    """

    def __init__(self, k: Builder, columns: Val, lanes: int) -> None:
        self.k, self.lanes, self.end = k, lanes, columns - lanes
        self.whole = (columns - 1) // lanes * lanes
        self.is_inside = k.iota("i4", lanes) >= k.splat(k.cast(self.whole - self.end, "i4"), lanes)

    def vectors(self) -> AbstractContextManager[Val]:
        """Return a loop over the columns of all vectors but the last."""
        return self.k.loop(0, self.whole, self.lanes)

    def total(
        self, reduction: Accumulator, ends: list[Val], terms: Callable[[Val], list[Val]]
    ) -> tuple[Val, list[int]]:
        """Return a vector with the total of each row in a lane, and the lane of each row.

        Parameters
            ends: the terms of the last vector of each row
            terms: a function that emits those of the vector at a column
        """
        k, lanes = self.k, self.lanes
        identity, *errors = reduction.total_start(lanes)
        totals = [[k.slot(x) for x in (k.select(self.is_inside, end, identity), *errors)] for end in ends]
        states = [[k.slot(x) for x in reduction.start(lanes)] for _ in ends]
        step = CHAIN * lanes if reduction.keeps_errors else 1 << 40
        with k.loop(0, self.whole, step) as chunk:
            for state in states:
                put(state, reduction.start(lanes))
            with k.loop(chunk, k.smaller(chunk + step, self.whole), lanes) as column:
                for state, term in zip(states, terms(column)):
                    put(state, reduction.add(get(state), term, None))
            for state, total in zip(states, totals):
                put(total, reduction.flush(get(total), get(state)))
        joint, lane = join_rows(k, [get(total) for total in totals], reduction.join)
        return reduction.finish(joint)[0], lane

    def spread(self, values: Val, lane: list[int]) -> list[Val]:
        """Return the value of each row in all lanes of a vector."""
        return [self.k.splat(self.k.lane(values, i), self.lanes) for i in lane]
