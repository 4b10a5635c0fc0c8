"""Does every band find the rows that it reads? A replay of a region over the bytes of its frame, row by row.

`memory.rows` works out bands, ring heights and slides. This check sees none of them: it is given what kernels get,
views of rows at addresses, and the tables that say which rows a row reads. Every piece of the frame knows which row of
which value was written there last, so a row is there as long as nothing else was written into any of its bytes.
Time O(bytes touched / piece).
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
    values: Sequence[Rows], acts: Sequence[Act], frame: object, nbytes: int, fork: Lines | None = None
) -> None:
    """Return if every band reads exactly the rows that it should, and all rows of the join are made once.

    Parameters
        values: names, rows and tables; the last is the join
        acts: in running order
        frame: the base of addresses in the frame
        nbytes: bytes of the frame
        fork: all rows of an operand, where the join may lie over it
    Raises
        PlanError: the first thing that is wrong
    """
    replay = _Replay(values, acts, frame, nbytes, fork)
    for act in acts:
        replay.run(act)
    rows = replay.counts[len(values) - 1]
    if rows != values[-1].rows:
        raise PlanError(f"{rows} of {values[-1].rows} rows of {values[-1].name} are made")
    for act in acts:
        if act.out.value == len(values) - 1:
            replay.require(act, act.out)


class _Replay:
    """What is in every piece of the frame, and of the bytes that the join and its fork share. Changes as bands run.

    Fields
        holds: by the base of addresses, per piece, value and row written last, or NOTHING
        counts: rows of each value that are computed
    """

    def __init__(
        self, values: Sequence[Rows], acts: Sequence[Act], frame: object, nbytes: int, fork: Lines | None
    ) -> None:
        self.values, self.frame = values, frame
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
        """These rows are where they lie."""
        pieces, rows = self.pieces(lines)
        self.holds[id(lines.view.at.base)][pieces] = lines.value * MOST_ROWS + rows

    def run(self, act: Act) -> None:
        """Look at what the band reads, then write."""
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
        for lines in act.reads:  # nothing was overwritten before it was read
            self.require(act, lines)

    def check_band(self, act: Act) -> None:
        """The band is the next one of its value, and what it must read is read."""
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
        """The rows stay what they are, and are moved inside the frame."""
        (source,) = act.reads
        same = (source.value, source.first, source.view.shape) == (act.out.value, act.out.first, act.out.view.shape)
        if not same or not self.is_inside(act.out) or not self.is_inside(source):
            raise PlanError(f"rows of {self.name(act.out)} do not slide inside the frame")

    def require(self, act: Act, lines: Lines) -> None:
        """Refuse if some of the rows are not there."""
        if not self.is_known(lines):
            return
        pieces, rows = self.pieces(lines)
        wrong = self.holds[id(lines.view.at.base)][pieces] != lines.value * MOST_ROWS + rows
        if wrong.any():
            row = int(np.broadcast_to(rows, wrong.shape)[wrong][0])
            raise PlanError(f"{self.name(act.out)} reads row {row} of {self.name(lines)}, which is not there")

    def pieces(self, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of some rows, and which row each belongs to: int64 ``[n, planes, rows, pieces]``."""
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
    """Bytes of a row, from its first to its last element."""
    return view.itemsize + sum((n - 1) * step for n, step in zip(view.shape[3:], view.strides[3:]))


def end_of(view: View) -> int:
    """The byte behind the last element."""
    return view.at.offset + view.itemsize + sum((n - 1) * step for n, step in zip(view.shape, view.strides))


def measures(view: View) -> tuple[int, ...]:
    """Everything that the pieces of a view are multiples of."""
    return view.at.offset, *(s for n, s in zip(view.shape[:3], view.strides) if n > 1), row_nbytes(view)
