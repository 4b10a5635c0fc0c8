"""The best set of regions of a schedule: a shortest path over its positions, from the last to the first.

A join that lies over its fork begins *ahead* bytes before it. A fork that is itself such a join pushes its own fork to
higher addresses: at each step of such a chain the bytes below count as lost.

Source: the shortest path over cuts is that of Bellman 1957.
Time O(regions) a path. Not exact with chains: only one way is stored for each position.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np

from cgraph.record import Record, replace

Row = tuple[int, int, int, int, int, int, int, int, float]
"""A region: the first fields of `Units`, in order."""


class Overlap(Record):
    """A fork that a join may lie over.

    Fields
        fork: the step that makes it, -1 for none
        reader: the first that reads it
        ahead: bytes from where the join begins to where it begins
        shared: bytes that both have in common
    """

    fork: int = -1
    reader: int = -1
    ahead: int = 0
    shared: int = 0


def closest(forks: Iterable[Overlap], steps: Sequence[int]) -> list[Overlap]:
    """Return, for each step, the fork with most shared bytes of a region that begins with this step."""
    nearest = [Overlap()] * len(steps)
    for x in forks:
        for i in range(bisect_right(steps, x.fork), bisect_right(steps, x.reader)):
            if x.shared > nearest[i].shared:
                nearest[i] = x
    return nearest


class Units(Record, eq=False):
    """Candidate regions as columns. Changes: bytes of planned band buffers.

    Fields
        first, join, pixels: of each region
        around: bytes in use outside of its frame
        fork, ahead, shared: what its join may lie over, as `Overlap` says
        alive: bytes of rows and workspaces that are in use at one time, and a frame is hardly smaller
        nanoseconds: what its bands cost beyond those of whole steps
        is_planned: the frame was planned
        frame: bytes of the frame, or about as many
    """

    first: np.ndarray
    join: np.ndarray
    pixels: np.ndarray
    around: np.ndarray
    fork: np.ndarray
    ahead: np.ndarray
    shared: np.ndarray
    alive: np.ndarray
    nanoseconds: np.ndarray
    is_planned: np.ndarray
    frame: np.ndarray

    def unplanned(self, shared: np.ndarray) -> "Units":
        """Return the same regions, none of them planned, with other bytes in common with a fork."""
        planned = np.zeros_like(self.is_planned)
        return replace(self, shared=shared, is_planned=planned, frame=self.alive.copy())

    def expect(self, which: np.ndarray, gaps: float) -> None:
        """Frames of these regions that were not planned have at least so many gaps, as a part of what is alive."""
        about = np.where(which & ~self.is_planned, self.alive * (1 + gaps), 0).astype(int)
        np.maximum(self.frame, about, out=self.frame)


def units_of(rows: Sequence[Row]) -> Units:
    """Return regions by their first step, none of them planned."""
    *columns, ns = list(zip(*sorted(rows, key=itemgetter(0)))) or [()] * 9
    first, join, pixels, around, fork, ahead, shared, alive = (np.array(column, np.int64) for column in columns)
    planned = np.zeros(len(rows), bool)
    return Units(first, join, pixels, around, fork, ahead, shared, alive, np.array(ns), planned, alive.copy())


class Way(Record):
    """The best way to run the steps from a position on.

    Fields
        nbytes: in use at most
        unit: the first region; -1 for a step that runs whole
        is_over: its join lies over its fork
        lost: bytes below the join that a chain loses
    """

    nbytes: int = 0
    unit: int = -1
    is_over: bool = False
    lost: int = 0


class RegionChoice(Record):
    """A region on the best path; fields as in `Way`."""

    unit: int
    is_over: bool
    lost: int

    def need(self, units: Units) -> int:
        """Return the bytes in use with the region: exact if it is planned, else estimated."""
        shared = units.shared[self.unit] if self.is_over else 0
        return int(units.around[self.unit] + units.frame[self.unit] - shared + self.lost)


def ways_of(units: Units, whole: Sequence[int], most: int | None, chains_lose: bool = True) -> list[Way]:
    """Return the best way from each position on; the last entry has no steps.

    Parameters
        whole: bytes in use while a step runs by itself
        most: bytes within which a way is to be cheap; None for the fewest bytes
        chains_lose: the bytes below a join over a fork that goes on further down; other values may lie there
    """
    count = len(whole)
    nbytes, ns, below = np.zeros((3, count + 1))
    opened, ways = np.full(count + 1, -1), [Way()] * (count + 1)
    starts = np.searchsorted(units.first, np.arange(count + 1))
    apart, after = units.around + units.frame, units.join + 1
    over = apart - units.shared
    for t in range(count - 1, -1, -1):
        some = slice(starts[t], starts[t + 1])
        ends, single = after[some], apart[some]
        rest = nbytes[ends]
        lost = np.where(opened[ends] == ends - 1, below[ends], 0)
        both = over[some] + lost
        enough = rest if most is None else np.maximum(rest, most)
        is_over = (single > enough) & (both < single)
        needs = np.append(np.maximum(rest, np.where(is_over, both, single)), max(nbytes[t + 1], whole[t]))
        costs = np.append(ns[ends] + units.nanoseconds[some], ns[t + 1])
        counted = needs if most is None else np.maximum(needs, most)
        best = int(np.where(counted == counted.min(), costs, np.inf).argmin())
        nbytes[t], ns[t] = needs[best], costs[best]
        end = int(ends[best]) if best < len(ends) else t + 1
        if best < len(ends) and is_over[best]:
            unit = starts[t] + best
            opened[t], below[t] = units.fork[unit], (units.ahead[unit] + lost[best]) * chains_lose
            ways[t] = Way(int(nbytes[t]), int(unit), True, int(lost[best]))
            continue
        if opened[end] < t:
            opened[t], below[t] = opened[end], below[end]
        ways[t] = Way(int(nbytes[t]), int(starts[t] + best) if best < len(ends) else -1)
    return ways


def best_regions(units: Units, ways: Sequence[Way]) -> list[RegionChoice]:
    """Return the regions on the best path from the first position."""
    regions, t = list[RegionChoice](), 0
    while t < len(ways) - 1:
        way = ways[t]
        if way.unit >= 0:
            regions.append(RegionChoice(way.unit, way.is_over, way.lost))
        t = int(units.join[way.unit]) + 1 if way.unit >= 0 else t + 1
    return regions
