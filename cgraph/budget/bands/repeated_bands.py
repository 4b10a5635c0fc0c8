"""Bands that repeat: a region of a tall picture has a program of a few bands, the middle ones of which run many times.

Idea: which band runs next follows from how many rows of each value are there. So when between two bands of the join all
values have moved on, and what rows read has moved on with them, the bands between come again and again, each time the
same number of rows further, until the picture's lower border is near. They are planned for a picture in which they run
once, which is as short as that makes it.

Time O(bands before they repeat × reads × rows); nothing of what is found grows with the picture.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cgraph.budget.bands.row_rings import Read, Rows, pull
from cgraph.ir.bands import BandLoop
from cgraph.ir.cut import index_array
from cgraph.record import Record, replace

MOST_BANDS = 160  # of the join, before no repetition is looked for any more
MOST_APART = 64  # bands of the join from one repetition to the next

Done = tuple[int, ...]  # per value, the rows that are there


class Period(Record):
    """Bands that come again.

    Fields
        first, last: of the events, the last one excluded
        begin: per value, the rows that are there before them the first time
        shift: per value, the rows from one time to the next
        count: how often they run
    """

    first: int
    last: int
    begin: Done
    shift: Done
    count: int


def period_of(values: Sequence[Rows], bands: Sequence[int]) -> Period | None:
    """The first bands that come at least twice more; None where none are found.

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
    """After each band of the join, how many events there were, and the rows that are there."""
    done, joined = [0] * len(values), 0
    for t, (i, _, stop) in enumerate(pull(values, bands)):
        done[i] = stop
        if i == len(values) - 1:
            yield t + 1, tuple(done)
            joined += 1
            if joined == MOST_BANDS:
                return


def times(values: Sequence[Rows], tables: Sequence[Sequence[tuple]], begin: Done, shift: Done) -> int:
    """How often bands that move on by `shift` run before they would meet the lower border; one time is left for it."""
    count = min((value.rows - value.below - 1 - at) // far for value, at, far in zip(values, begin, shift))
    for reads, at, far in zip(tables, begin, shift):
        for source, *rows in reads:
            for table in rows:
                same = table[at + far :] - table[at:-far] == shift[source]
                agreeing = len(same) if same.all() else int(same.argmin())
                count = min(count, (agreeing + far) // far)
    return count - 1


def shorten(values: Sequence[Rows], period: Period | BandLoop, count: int = 1) -> list[Rows]:
    """The same values of a shorter picture, in which the bands run `count` times."""
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
