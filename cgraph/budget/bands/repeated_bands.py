"""Repeated bands: the program of a region of a tall picture has a few bands, and its middle bands run many times.

Idea: the rows of each value that are present determine which band runs next. If between two bands of the join all
values advance, and the rows that they read advance by the same number, the bands in between repeat, each time that many
rows further down, until the lower border of the picture is near. They are planned for the shortest picture in which
they run once.

Time O(bands before the repetition × reads × rows); the result does not grow with the picture.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cgraph.budget.bands.row_rings import Read, Rows, pull
from cgraph.ir.bands import BandLoop
from cgraph.ir.cut import index_array
from cgraph.record import Record, replace

MOST_BANDS = 160  # bands of the join after which the search for a repetition ends
MOST_APART = 64  # bands of the join from one repetition to the next

Done = tuple[int, ...]  # for each value, the rows that are present


class Period(Record):
    """Bands that repeat.

    Fields
        first, last: positions among the events, the last excluded
        begin: for each value, the rows that are present before the first repetition
        shift: for each value, the rows by which it advances per repetition
        count: number of repetitions
    """

    first: int
    last: int
    begin: Done
    shift: Done
    count: int


def period_of(values: Sequence[Rows], bands: Sequence[int]) -> Period | None:
    """Return the first bands that run at least twice more; None if there are none.

    Parameters
        values, bands: as for `cgraph.budget.bands.row_rings.pull_events`
    """
    tables = [[(r.source, np.array(r.first), np.array(r.stop)) for r in value.reads] for value in values]
    history: list[tuple[int, Done]] = []
    for event, done in between(values, bands):
        for earlier, before in history[: -MOST_APART - 1 : -1]:
            shift = tuple(b - a for a, b in zip(before, done))
            count = min(shift) > 0 and times(values, tables, before, shift)
            if count > 1:
                return Period(earlier, event, before, shift, count)
        history.append((event, done))
    return None


def between(values: Sequence[Rows], bands: Sequence[int]) -> Iterator[tuple[int, Done]]:
    """Return, after each band of the join, the number of events and the rows that are present."""
    done, joined = [0] * len(values), 0
    for t, (i, _, stop) in enumerate(pull(values, bands)):
        done[i] = stop
        if i == len(values) - 1:
            yield t + 1, tuple(done)
            joined += 1
            if joined == MOST_BANDS:
                return


def times(values: Sequence[Rows], tables: Sequence[Sequence[tuple]], begin: Done, shift: Done) -> int:
    """Return how often bands that advance by `shift` run before they reach the lower border; one repetition is left for
    it.
    """
    count = min((value.rows - value.below - 1 - at) // far for value, at, far in zip(values, begin, shift))
    for reads, at, far in zip(tables, begin, shift):
        for source, *rows in reads:
            for table in rows:
                same = table[at + far :] - table[at:-far] == shift[source]
                agreeing = len(same) if same.all() else int(same.argmin())
                count = min(count, (agreeing + far) // far)
    return count - 1


def shorten(values: Sequence[Rows], period: Period | BandLoop, count: int = 1) -> list[Rows]:
    """Return the same values of a shorter picture, in which the bands run `count` times."""
    left_out = [far * (period.count - count) for far in period.shift]
    ends = [at + far * count for at, far in zip(period.begin, period.shift)]

    def shorter(table: Sequence[int], end: int, rows: int, read: int) -> Sequence[int]:
        return index_array(np.concatenate([table[:end], np.asarray(table[end + rows :]) - read]))

    short_values = []
    for value, end, rows in zip(values, ends, left_out):
        reads = tuple(
            Read(r.source, *(shorter(table, end, rows, left_out[r.source]) for table in (r.first, r.stop)))
            for r in value.reads
        )
        short_values.append(replace(value, rows=value.rows - rows, reads=reads))
    return short_values
