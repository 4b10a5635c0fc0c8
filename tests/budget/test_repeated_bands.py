"""Bands that come again: planned once, they find their rows however often they run."""

import numpy as np
import pytest

from cgraph.budget.bands import repeated_bands
from cgraph.budget.bands.band_buffer import loop_frame
from cgraph.budget.bands.repeated_bands import MOST_BANDS, Period, between, period_of, shorten
from cgraph.budget.bands.replay_bands import check_rows
from cgraph.budget.bands.row_rings import Read, Rows, pull_events
from cgraph.errors import PlanError
from cgraph.ir.bands import BandBuffer, Event
from cgraph.record import replace
from tests.support.rings import FRAME, acts_of, reads_right, window_of


def tall(rng: np.random.Generator, rows: int) -> list[Rows]:
    """Windows over one another, with steps and frames, and a sum of two now and then."""
    values = [Rows("x0", rows, 64)]
    for i in range(1, int(rng.integers(3, 8))):
        values.append(window_of(rng, values, i, i - 1))
        like = [k for k in range(i - 1) if values[k].rows == values[i - 1].rows]
        if like:
            read = values[i].reads[0]
            values[i] = replace(values[i], reads=(read, replace(read, source=like[0])))
    return values


def looped(rng, values):
    """Values of the picture in which the loop runs once, its period, its frame, and the workspaces of its bands."""
    bands = [value.band(int(rng.integers(1, 5))) for value in values]
    period = period_of(values, bands)
    assert period is not None
    short = shorten(values, period)
    events = pull_events(short, bands)
    rooms = [128 * event.value for event in events]
    return bands, period, loop_frame(short, events, rooms, 64, period), rooms


def unrolled(frame: BandBuffer, rooms, times) -> tuple[BandBuffer, list[int]]:
    """The frame without its loop, whose moves come so many times."""
    moves = [move for move, _ in frame.turns(range(times))]
    size = {move.event.value: room for move, room in zip((m for m in frame.moves if not m.slides), rooms)}
    return BandBuffer(tuple(moves), frame.nbytes), [size[m.event.value] for m in moves if not m.slides]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(i, marks=pytest.mark.slow) for i in range(8, 20))])
def test_bands_that_come_again_find_their_rows_each_time(seed):
    rng = np.random.default_rng(seed)
    values = tall(rng, int(rng.integers(500, 800)))
    bands, period, frame, rooms = looped(rng, values)
    for times in (1, 2, 3):
        short = shorten(values, period, times)
        plain, sizes = unrolled(frame, rooms, times)
        events = [m.event for m in plain.moves if not m.slides]
        assert events == pull_events(short, bands)
        acts = acts_of(short, plain, sizes)
        check_rows(short, acts, FRAME, frame.nbytes)
        assert reads_right(short, acts, frame.nbytes)


def test_a_whole_picture_is_its_bands_that_came_again():
    rng = np.random.default_rng(3)
    values = tall(rng, 500)
    bands, period, frame, rooms = looped(rng, values)
    for whole, value in zip(shorten(values, period, period.count), values):
        assert [(r.source, *map(list, (r.first, r.stop))) for r in whole.reads] == [
            (r.source, *map(list, (r.first, r.stop))) for r in value.reads
        ]
        assert whole.rows == value.rows
    plain, _ = unrolled(frame, rooms, period.count)
    assert [m.event for m in plain.moves if not m.slides] == pull_events(values, bands)


def test_the_frame_and_its_moves_do_not_grow_with_the_picture():
    found = []
    for rows in (2_000, 20_000):
        rng = np.random.default_rng(7)
        *_, frame, _ = looped(rng, tall(rng, rows))
        found.append((frame.nbytes, len(frame.moves)))
    assert found[0][0] == found[1][0]
    assert found[1][1] < 2 * found[0][1]


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_not_at_home_the_second_time_are_caught(seed):
    rng = np.random.default_rng(seed)
    values = tall(rng, 900)
    _, period, frame, rooms = looped(rng, values)
    ends = {move.event.value: t for t, move in enumerate(frame.moves[: frame.loop.last])}
    homes = [t for t in ends.values() if frame.moves[t].slides]
    assert homes
    for t in homes:
        move = frame.moves[t]
        moves = (*frame.moves[:t], replace(move, at=move.at + 64), *frame.moves[t + 1 :])
        wrong, sizes = unrolled(replace(frame, moves=moves), rooms, 2)
        short = shorten(values, period, 2)
        acts = acts_of(short, wrong, sizes)
        first, apart = frame.loop.first, frame.loop.last - frame.loop.first
        one, two = ([addresses(act) for act in acts[at : at + apart]] for at in (first, first + apart))
        if one == two:  # kernels would not be told of another place
            with pytest.raises(PlanError):
                check_rows(short, acts, FRAME, frame.nbytes + 64)


def addresses(act) -> list[int]:
    """Where the rows of a band or a slide lie in the frame."""
    return [x.view.at.offset for x in (act.out, *act.reads) if x.view.at.base == FRAME]


def test_a_picture_whose_border_is_near_does_not_repeat():
    values = tall(np.random.default_rng(0), 24)
    assert period_of(values, [value.band(8) for value in values]) is None


def window(rows: int, read: int = 0) -> Read:
    return Read(read, tuple(max(r - 1, 0) for r in range(rows)), tuple(min(r + 2, rows) for r in range(rows)))


@pytest.mark.parametrize("below", [0, 1, 6])
def test_the_first_repetition_is_found_and_counted(below):
    """A window of three rows, bands of two: the first band has one row more above, and one band is left below."""
    values = [Rows("x", 41, 64, above=1), Rows("y", 41, 64, (window(41),), below=below)]
    bands = [2, 2]
    period = period_of(values, bands)
    events = pull_events(values, bands)
    assert period.shift == (2, 2)
    done = [0, 0]
    for event in events[: period.first]:
        done[event.value] = event.stop
    assert tuple(done) == period.begin
    turn = events[period.first : period.last]
    for i in range(period.count):
        at = period.first + i * len(turn)
        assert events[at : at + len(turn)] == [Event(e.value, e.first + 2 * i, e.stop + 2 * i) for e in turn]
    inside = 41 - max(below, 1)  # the last row reads no row below
    assert inside - 3 <= period.begin[1] + 2 * period.count + 2 < inside, "one more would reach the border"


def test_bands_that_run_once_more_only_do_not_repeat():
    counts = []
    for rows in range(6, 24):
        period = period_of([Rows("x", rows, 64), Rows("y", rows, 64, (window(rows),))], [2, 2])
        counts.append(period.count if period else 0)
    assert counts == sorted(counts) and counts[0] == 0 and min(x for x in counts if x) == 2


def test_bands_that_read_a_whole_value_do_not_repeat():
    whole = Read(0, (0,) * 40, (40,) * 40)
    values = [Rows("x", 40, 64), Rows("y", 40, 64, (whole,))]
    assert period_of(values, [2, 2]) is None


def test_a_shorter_picture_has_the_upper_and_the_lower_rows():
    values = [Rows("x", 41, 64), Rows("y", 41, 64, (window(41),))]
    period = Period(0, 0, (5, 4), (2, 2), 10)
    for count, rows in ((10, 41), (1, 23), (3, 27)):
        short = shorten(values, period, count)
        assert [value.rows for value in short] == [rows, rows]
        read, expected = short[1].reads[0], window(rows)
        assert list(read.first) == list(expected.first) and list(read.stop) == list(expected.stop)
    assert [value.rows for value in shorten(values, period)] == [23, 23]


def test_the_search_ends_after_a_number_of_bands(monkeypatch):
    values = [Rows("x", 400, 64), Rows("y", 400, 64, (window(400),))]
    states = list(between(values, [1, 1]))
    assert len(states) == MOST_BANDS and states[0] == (3, (2, 1)) and states[1] == (5, (3, 2))
    monkeypatch.setattr(repeated_bands, "MOST_BANDS", 1)
    assert period_of(values, [1, 1]) is None


@pytest.mark.parametrize(("band", "apart"), [(4, 2), (6, 3), (2, 1)])
def test_a_repetition_is_searched_for_among_so_many_bands_of_the_join(band, apart, monkeypatch):
    """A row of the join reads two rows, and a band of these serves several of its bands."""
    rows = 60
    reads = Read(0, tuple(range(0, 2 * rows, 2)), tuple(range(2, 2 * rows + 1, 2)))
    values = [Rows("x", 2 * rows, 10), Rows("y", rows, 7, (reads,))]
    monkeypatch.setattr(repeated_bands, "MOST_APART", apart)
    period = period_of(values, [band, 1])
    assert period is not None and period.shift == (band, apart) and period.last - period.first == apart + 1
    monkeypatch.setattr(repeated_bands, "MOST_APART", apart - 1)
    assert apart == 1 or period_of(values, [band, 1]) is None
