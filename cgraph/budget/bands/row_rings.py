"""Values computed one band of rows at a time: the order of the bands, and the rows that each value stores.

Idea: the last value of a region, its *join*, is computed band by band. Before a band runs, the bands with the missing
rows that it reads run, and before them those that they read; every row is computed once. A value inside the region
stores the rows that are yet to be read, and the band that is being written, in a *ring*: if a band does not fit after
the stored rows, those that are still needed slide to the front of the ring.

Rows count along one axis of an array, halo included: the first band includes the halo above, the last the halo below.
This module does not depend on ops: tables state which rows each row of a value reads.

Source: line buffers, as in Goetschalckx and Verhelst 2019 (depth-first execution); here with forks and joins.
Time O(bands × reads).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from cgraph.errors import PlanError
from cgraph.ir.bands import Event
from cgraph.record import Record, replace
from cgraph.system.alignment import round_up


class Read(Record):
    """The rows of another value that a value reads.

    Fields
        source: position of the other value in the region
        first, stop: for each row, the first row that it reads and the one after the last; neither decreases
    """

    source: int
    first: Sequence[int]
    stop: Sequence[int]


class Rows(Record):
    """A value of a region.

    Fields
        name: used in messages
        rows: number of rows, halo included
        row_nbytes: bytes of a row in a ring
        reads: the rows that it reads of other values of the region
        above, below: rows of the halo, which belong to the first and to the last band
        step: the rows of a band are a multiple of it
    Raises
        PlanError: a table does not have one entry for each row, or decreases; there is no row inside the halo
    """

    name: str
    rows: int
    row_nbytes: int
    reads: tuple[Read, ...] = ()
    above: int = 0
    below: int = 0
    step: int = 1

    def __post_init__(self) -> None:
        if self.inside < 1 or self.step < 1 or self.row_nbytes < 0:
            raise PlanError(f"{self.name} has {self.inside} rows of {self.row_nbytes} bytes, {self.step} a step")
        for read in self.reads:
            if len(read.first) != self.rows or len(read.stop) != self.rows:
                raise PlanError(f"{self.name} has {self.rows} rows, its table {len(read.first)} and {len(read.stop)}")
            if any((np.diff(rows) < 0).any() for rows in (read.first, read.stop)):
                raise PlanError(f"{self.name} reads rows that fall from one to the next")

    @cached_property
    def inside(self) -> int:
        """Rows without the halo."""
        return self.rows - self.above - self.below

    def band(self, rows: int) -> int:
        """Return the number of rows of a band: at least `rows`, in whole steps, at most all rows."""
        return min(round_up(max(rows, 1), self.step), self.inside)

    def stop(self, first: int, band: int) -> int:
        """Return the row after the band that begins at row `first`."""
        stop = max(first, self.above) + band
        return self.rows if stop >= self.rows - self.below else stop


def pull_events(values: Sequence[Rows], bands: Sequence[int]) -> list[Event]:
    """Return the bands of a region in running order. The join, whose rows are all computed, is the last value.

    Parameters
        values: operands before users
        bands: rows of a band of each value, as `Rows.band` returns them
    Raises
        PlanError: a value reads a row that does not exist
    """
    return [Event(*entry) for entry in pull(values, bands)]


def pull(values: Sequence[Rows], bands: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield each band as value, first row, and the row after the last."""
    reads = [[(r.source, r.stop) for r in value.reads] for value in values]
    done, stops = [0] * len(values), [v.stop(0, band) for v, band in zip(values, bands)]
    join = len(values) - 1
    while done[join] < values[join].rows:
        waiting = [join]
        while waiting:
            i = waiting[-1]
            first, stop = done[i], stops[i]
            if first == stop:
                raise PlanError(f"{values[i].name} has {values[i].rows} rows, more are read")
            for source, table in reads[i]:
                if done[source] < table[stop - 1]:
                    waiting.append(source)
                    break
            else:
                yield i, first, stop
                done[i], stops[i] = stop, values[i].stop(stop, bands[i])
                waiting.pop()


def heights(values: Sequence[Rows], events: Iterable[tuple[int, int, int]]) -> list[int]:
    """Return the number of rows that each ring must have; 0 for the join."""
    most = [0] * len(values)
    for i, _, stop, low in still_needed(values, events):
        if stop - low > most[i]:
            most[i] = stop - low
    most[-1] = 0
    return most


def still_needed(values: Sequence[Rows], events: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield each band with the first row of its value that is read from then on."""
    readers: list[list[tuple[int, Sequence[int]]]] = [[] for _ in values]
    for i, value in enumerate(values):
        for read in value.reads:
            readers[read.source].append((i, read.first))
    rows, done = [value.rows for value in values], [0] * len(values)
    for i, first, stop in events:
        low = first
        for k, table in readers[i]:
            if done[k] < rows[k] and table[done[k]] < low:
                low = table[done[k]]
        yield i, first, stop, low
        done[i] = stop


def row_counts(count: int, events: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """Return the rows of each value that are computed after each event, int64 ``[values, events]``."""
    counts = np.zeros((count, len(events)), np.int64)
    for t, (i, _, stop) in enumerate(events):
        counts[i, t] = stop
    return np.maximum.accumulate(counts, 1)


def alive(values: Sequence[Rows], done: np.ndarray) -> list[np.ndarray]:
    """Return, for each value, the bytes of rows that are present and yet to be read, during each event.

    Parameters
        done: as `row_counts` returns it
    """
    low = [rows.copy() for rows in done]
    for i, x in enumerate(values):
        before = np.concatenate([[0], done[i][:-1]])
        for read in x.reads:
            needed = np.array((*read.first, values[read.source].rows), np.int64)[before]
            np.minimum(low[read.source], needed, out=low[read.source])
    return [(most - least) * x.row_nbytes for most, least, x in zip(done, low, values)]


class BandStep(Record):
    """A band or a slide.

    Fields
        event: the rows that are computed or moved
        slides: True if they are moved
        anew: True if the ring begins with them at another offset
        home: True if that offset is the ring's home, where it is in every repetition of the bands
    """

    event: Event
    slides: bool = False
    anew: bool = False
    home: bool = False


def steps_of(values: Sequence[Rows], events: Sequence[Event], rests: bool, edges: Sequence[int] = ()) -> list[BandStep]:
    """Return the bands, with slides between them that move rows still needed to where the next band fits after them.

    Parameters
        rests: rows still needed also move as soon as others are not, to be parked
        edges: events before which all rows still needed move home, and then away again; requires `rests` to be False
    """
    spans = [(e.value, e.first, e.stop) for e in events]
    rows, runs = heights(values, spans), list(still_needed(values, spans))
    before: list[list[BandStep]] = [[] for _ in events]
    after: list[list[BandStep]] = [[] for _ in events]
    anew = [False] * len(events)
    for i, own in enumerate(bands_of(len(values), runs)[:-1]):
        read, front, waits = reads_of(values, events, i), 0, False
        homes, is_home = homes_of(values, events, edges, i), False
        for t, following in zip(own, (*own[1:], None)):
            _, first, stop, low = runs[t]
            while homes and homes[0][0] <= t:
                edge, home = homes.pop(0)
                before[edge] += [replace(home, home=False), home] if is_home else [home]
                front, is_home = home.event.first, True
            if low >= first:
                anew[t], front, is_home = True, first, False
            elif waits or stop - front > rows[i]:
                before[t].append(BandStep(Event(i, low, first), True, True))
                front, is_home = low, False
            waits = False
            if rests and following is not None:
                low, ended = runs[following][3], max((e for e in read if t <= e < following), default=t)
                waits = front < low < stop and ended + 1 < following
                after[ended] += [BandStep(Event(i, low, stop), True, True)] if waits else []
    return [x for t, event in enumerate(events) for x in (*before[t], BandStep(event, anew=anew[t]), *after[t])]


def homes_of(
    values: Sequence[Rows], events: Sequence[Event], edges: Sequence[int], value: int
) -> list[tuple[int, BandStep]]:
    """Return the edges before which rows of a value are still needed, each with the slide home."""
    slides = []
    for edge in edges:
        done = [0] * len(values)
        for event in events[:edge]:
            done[event.value] = event.stop
        reads = ((r, k) for k, x in enumerate(values) for r in x.reads if r.source == value and done[k] < x.rows)
        low = min((r.first[done[k]] for r, k in reads), default=done[value])
        if low < done[value]:
            slides.append((edge, BandStep(Event(value, low, done[value]), True, True, True)))
    return slides


def bands_of(count: int, runs: Iterable[tuple[int, ...]]) -> list[list[int]]:
    """Return, for each value, the events that are its bands."""
    bands: list[list[int]] = [[] for _ in range(count)]
    for t, run in enumerate(runs):
        bands[run[0]].append(t)
    return bands


def reads_of(values: Sequence[Rows], events: Sequence[Event], value: int) -> list[int]:
    """Return the events that read a value."""
    readers = {i for i, x in enumerate(values) if any(read.source == value for read in x.reads)}
    return [t for t, event in enumerate(events) if event.value in readers]
