"""The best set of regions of a schedule: a shortest path over its positions, from the last to the first.

An in-place join begins *ahead* bytes before its fork. If the fork is itself an in-place join, its own fork moves to
higher addresses: at each step of such a chain the bytes below count as lost.

Source: Bellman 1957 (the shortest path over cuts). Time O(regions) for each path. With chains the path is not always
the best, since each position stores only one way.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np

from cgraph.record import Record, replace

Row = tuple[int, int, int, int, int, int, int, int, float]
"""The fields of `Units` that identify a region, in order."""


class Overlap(Record):
    """A fork that a join may overwrite.

    Fields
        fork: the step that computes it, -1 for none
        reader: the first region step that reads it
        ahead: bytes from the beginning of the join to that of the fork
        shared: bytes that the two have in common
    """

    fork: int = -1
    reader: int = -1
    ahead: int = 0
    shared: int = 0


def closest(forks: Iterable[Overlap], steps: Sequence[int]) -> list[Overlap]:
    """Return, for each step, the fork with the most shared bytes of a region that begins with this step."""
    nearest = [Overlap()] * len(steps)
    for x in forks:
        for i in range(bisect_right(steps, x.fork), bisect_right(steps, x.reader)):
            if x.shared > nearest[i].shared:
                nearest[i] = x
    return nearest


class Units(Record, eq=False):
    """Candidate regions as columns. Changes: the bytes of band buffers, as they are planned.

    Fields
        first, join, pixels: of each region
        around: bytes in use outside the band buffer
        fork, ahead, shared: as in `Overlap`
        alive: bytes of rows and workspaces in use at one time, which is close to the least size of the band buffer
        nanoseconds: extra time of the bands compared with whole steps
        is_planned: True if the band buffer was planned
        frame: bytes of the band buffer, an estimate until it is planned
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
        """Raise the estimates of band buffers that are not planned: gaps take at least this share of the bytes
        alive.
        """
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
        nbytes: maximum bytes in use
        unit: the first region; -1 for a step that runs whole
        is_over: the join overwrites its fork
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
        """Return the bytes in use with the region: exact if its band buffer is planned, else estimated."""
        shared = units.shared[self.unit] if self.is_over else 0
        return int(units.around[self.unit] + units.frame[self.unit] - shared + self.lost)


def ways_of(units: Units, whole: Sequence[int], most: int | None, chains_lose: bool = True) -> list[Way]:
    """Return the best way from each position on; the last entry has no steps.

    Parameters
        whole: bytes in use while a step runs whole
        most: return the cheapest way within these bytes; None for the way with the fewest bytes
        chains_lose: True if the bytes below a chain of in-place joins are lost; other values may use them
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
