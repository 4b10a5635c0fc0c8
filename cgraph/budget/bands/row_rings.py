"""Values computed a band of rows at a time: which bands run when, and how many rows of each value are held at once.

Idea: the last value of a region, its *join*, is made band by band. Before a band runs, it asks the values that it reads
for the rows that are missing, they ask theirs, and so on: every row is computed once. A value inside holds the rows
that somebody has yet to read, and the band that is being written, in a *ring*: when a band does not fit behind the
rows that are there, those that are still wanted slide to its front.

Rows count along one axis of an array, frame included: the first band has the frame above, the last the frame below.
Nothing here knows an op: which rows a row of a value reads are tables.

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
        first, stop: per row, the first row that is read, and the one behind the last; neither falls
    """

    source: int
    first: Sequence[int]
    stop: Sequence[int]


class Rows(Record):
    """A value of a region.

    Fields
        name: for messages
        rows: all of them, frame included
        row_nbytes: bytes of one in a ring
        reads: what it reads of other values of the region
        above, below: rows of the frame, which belong to the first and to the last band
        step: rows of a band are a multiple of it
    Raises
        PlanError: a table has not an entry for each row, or falls; there is no row inside the frame
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
        """Rows without the frame."""
        return self.rows - self.above - self.below

    def band(self, rows: int) -> int:
        """Rows of a band of at least so many, whole steps; all of them at most."""
        return min(round_up(max(rows, 1), self.step), self.inside)

    def stop(self, first: int, band: int) -> int:
        """The row behind the band that begins at row `first`."""
        stop = max(first, self.above) + band
        return self.rows if stop >= self.rows - self.below else stop


def pull_events(values: Sequence[Rows], bands: Sequence[int]) -> list[Event]:
    """The bands of a region in running order; the join, whose rows are all wanted, is the last value.

    Parameters
        values: operands before users
        bands: rows of a band of each value, as `Rows.band` gives them
    Raises
        PlanError: a row is read that there is not
    """
    return [Event(*entry) for entry in pull(values, bands)]


def pull(values: Sequence[Rows], bands: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each band as value, first row, and the row behind the last."""
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
    """The rows that each ring must have; 0 for the join."""
    most = [0] * len(values)
    for i, _, stop, low in still_needed(values, events):
        if stop - low > most[i]:
            most[i] = stop - low
    most[-1] = 0
    return most


def still_needed(values: Sequence[Rows], events: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Each band with the first row of its value that somebody reads from then on."""
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
    """The rows of each value that are there after each event, int64 ``[values, events]``."""
    counts = np.zeros((count, len(events)), np.int64)
    for t, (i, _, stop) in enumerate(events):
        counts[i, t] = stop
    return np.maximum.accumulate(counts, 1)


def alive(values: Sequence[Rows], done: np.ndarray) -> list[np.ndarray]:
    """Per value the bytes of the rows that are there and that somebody has yet to read, during each event.

    Parameters
        done: of the events, as `row_counts` says
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
        event: the rows that are computed, or moved
        slides: they are moved
        anew: their ring begins with them at another place
        home: that place is the ring's own, where it is each time that bands come again
    """

    event: Event
    slides: bool = False
    anew: bool = False
    home: bool = False


def steps_of(values: Sequence[Rows], events: Sequence[Event], rests: bool, edges: Sequence[int] = ()) -> list[BandStep]:
    """The bands, and the slides between them: rows that are still wanted move where the next band fits behind them.

    Parameters
        rests: rows that are still wanted also move as soon as others are not, to wait in a place of their own
        edges: events before which all rows that are still wanted move home, by way of another place from there; without
            rests
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
    """The edges before which rows of a value are still wanted, each with their slide home."""
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
    """Per value, which events are its bands."""
    bands: list[list[int]] = [[] for _ in range(count)]
    for t, run in enumerate(runs):
        bands[run[0]].append(t)
    return bands


def reads_of(values: Sequence[Rows], events: Sequence[Event], value: int) -> list[int]:
    """The events that read a value."""
    readers = {i for i, x in enumerate(values) if any(read.source == value for read in x.reads)}
    return [t for t, event in enumerate(events) if event.value in readers]
