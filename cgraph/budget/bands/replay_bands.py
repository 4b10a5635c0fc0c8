"""A check that every band finds the rows that it reads: a replay of a region over its band buffer, row by row.

`row_rings` computes bands, ring heights and slides. This check uses none of them. It gets the arguments of the kernels:
views of rows at addresses, and the tables of the rows that a row reads. Every piece of the buffer stores which row of
which value was written there last, so a row is present as long as no other row was written into any of its bytes. Time
O(bytes touched / piece).
"""

from collections.abc import Sequence
from math import gcd

import numpy as np

from cgraph.budget.bands.row_rings import Rows
from cgraph.errors import PlanError
from cgraph.kernels.kernel import View
from cgraph.ops.physical.stream import Act, Lines

NOTHING = -1
MOST_ROWS = 1 << 32


def check_rows(
    values: Sequence[Rows],
    acts: Sequence[Act],
    frame: object,
    nbytes: int,
    fork: Lines | None = None,
    slides_overlap: bool = False,
) -> None:
    """Raise PlanError unless every band reads exactly the rows that it should, and every row of the join is computed
    once.

    Parameters
        values: names, rows and tables; the join is the last
        acts: in running order
        frame: base of the addresses in the band buffer
        nbytes: bytes of the band buffer
        fork: all rows of the operand that the join overwrites, if any
        slides_overlap: slides may overlap the previous place of their rows
    Raises
        PlanError: the first fault
    """
    replay = _Replay(values, acts, frame, nbytes, fork, slides_overlap)
    for act in acts:
        replay.run(act)
    rows = replay.counts[len(values) - 1]
    if rows != values[-1].rows:
        raise PlanError(f"{rows} of {values[-1].rows} rows of {values[-1].name} are made")
    for act in acts:
        if act.out.value == len(values) - 1:
            replay.require(act, act.out)


class _Replay:
    """The content of every piece of the band buffer, and of the bytes that join and fork share. Changes as bands run.

    Fields
        holds: for each base of addresses and each piece, the value and the row written last, or NOTHING
        counts: number of rows of each value that are computed
    """

    def __init__(
        self,
        values: Sequence[Rows],
        acts: Sequence[Act],
        frame: object,
        nbytes: int,
        fork: Lines | None,
        slides_overlap: bool,
    ) -> None:
        self.values, self.frame, self.slides_overlap = values, frame, slides_overlap
        self.sizes = {id(frame): nbytes}
        if fork:
            shared = [fork.view, *(x.view for act in acts for x in (act.out, *act.reads))]
            ends = (end_of(view) for view in shared if view.at.base is fork.view.at.base)
            self.sizes[id(fork.view.at.base)] = max(ends)
        places = [lines.view for act in acts for lines in (act.out, *act.reads) if self.is_known(lines)]
        self.piece = gcd(*self.sizes.values(), *(x for view in places for x in measures(view))) or 1
        self.holds = {base: np.full(size // self.piece, NOTHING, np.int64) for base, size in self.sizes.items()}
        self.counts = [0] * len(values)
        if fork:
            self.write(fork)

    def is_inside(self, lines: Lines) -> bool:
        return lines.view.at.base is self.frame

    def is_known(self, lines: Lines) -> bool:
        return id(lines.view.at.base) in self.sizes

    def write(self, lines: Lines) -> None:
        """Record that these rows are stored at their addresses."""
        pieces, rows = self.pieces(lines)
        self.holds[id(lines.view.at.base)][pieces] = lines.value * MOST_ROWS + rows

    def run(self, act: Act) -> None:
        """Check what the band reads, then record what it writes."""
        for lines in act.reads:
            self.require(act, lines)
        if act.slides:
            self.check_slide(act)
        else:
            self.check_band(act)
        at, size = (act.workspace.at.offset, act.workspace.size) if act.workspace else (0, 0)
        self.holds[id(self.frame)][at // self.piece : -(-(at + size) // self.piece)] = NOTHING
        if self.is_inside(act.out):
            pieces, _ = self.pieces(act.out)
            if size and ((pieces >= at // self.piece) & (pieces < -(-(at + size) // self.piece))).any():
                raise PlanError(f"the workspace of {self.name(act.out)} lies in its rows")
        if self.is_known(act.out):
            self.write(act.out)
        if act.slides and self.slides_overlap:
            return
        for lines in act.reads:  # nothing was overwritten before it was read
            self.require(act, lines)

    def check_band(self, act: Act) -> None:
        """Check that the band is the next one of its value, and reads the rows that it must read."""
        value, first = act.out.value, act.out.first
        stop = first + act.out.view.shape[2]
        if first != self.counts[value] or not first < stop <= self.values[value].rows:
            raise PlanError(f"rows {first} to {stop} of {self.name(act.out)} follow {self.counts[value]} rows")
        self.counts[value] = stop
        inputs = {(x.value, x.first, x.first + x.view.shape[2]) for x in act.reads}
        for read in self.values[value].reads:
            rows = read.first[first], read.stop[stop - 1]
            if not any(v == read.source and a <= rows[0] and rows[1] <= b for v, a, b in inputs):
                source = self.values[read.source].name
                raise PlanError(f"{self.name(act.out)} needs rows {rows[0]} to {rows[1]} of {source}, and reads others")

    def check_slide(self, act: Act) -> None:
        """Check that the rows stay the same and move inside the buffer."""
        (source,) = act.reads
        same = (source.value, source.first, source.view.shape) == (act.out.value, act.out.first, act.out.view.shape)
        if not same or not self.is_inside(act.out) or not self.is_inside(source):
            raise PlanError(f"rows of {self.name(act.out)} do not slide inside the frame")

    def require(self, act: Act, lines: Lines) -> None:
        """Raise PlanError if some of the rows are not present."""
        if not self.is_known(lines):
            return
        pieces, rows = self.pieces(lines)
        wrong = self.holds[id(lines.view.at.base)][pieces] != lines.value * MOST_ROWS + rows
        if wrong.any():
            row = int(np.broadcast_to(rows, wrong.shape)[wrong][0])
            raise PlanError(f"{self.name(act.out)} reads row {row} of {self.name(lines)}, which is not there")

    def pieces(self, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
        """Return the pieces of some rows, and the row of each: int64 ``[n, planes, rows, pieces]``."""
        view = lines.view
        n, planes, count = view.shape[:3]
        row = row_nbytes(view)
        starts = [np.arange(size) * step for size, step in zip((n, planes, count), view.strides)]
        at = view.at.offset + starts[0][:, None, None] + starts[1][:, None] + starts[2]
        nbytes = self.sizes[id(view.at.base)]
        if at.size and (at.min() < 0 or at.max() + row > nbytes):
            raise PlanError(f"rows of {self.name(lines)} leave the frame of {nbytes} bytes")
        pieces = at[..., None] // self.piece + np.arange(row // self.piece)
        return pieces, (lines.first + np.arange(count))[:, None]

    def name(self, lines: Lines) -> str:
        return self.values[lines.value].name if lines.value >= 0 else "what is outside"


def row_nbytes(view: View) -> int:
    """Return the bytes of a row, from its first to its last element."""
    return view.itemsize + sum((n - 1) * step for n, step in zip(view.shape[3:], view.strides[3:]))


def end_of(view: View) -> int:
    """Return the address after the last element."""
    return view.at.offset + view.itemsize + sum((n - 1) * step for n, step in zip(view.shape, view.strides))


def measures(view: View) -> tuple[int, ...]:
    """Return all sizes and strides of a view, whose common divisor is the size of a piece."""
    return view.at.offset, *(s for n, s in zip(view.shape[:3], view.strides) if n > 1), row_nbytes(view)
