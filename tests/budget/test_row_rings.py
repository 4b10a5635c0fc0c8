"""Bands of rows: their order, the rings that hold what is still read, and what is in use."""

import numpy as np
import pytest

from cgraph.budget.bands.row_rings import (
    BandStep,
    Read,
    Rows,
    alive,
    bands_of,
    heights,
    homes_of,
    pull_events,
    reads_of,
    row_counts,
    steps_of,
    still_needed,
)
from cgraph.errors import PlanError
from cgraph.ir.bands import Event
from tests.support.rings import SEEDS, drawn, drawn_frame


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_computed_twice_and_no_frame_is_smaller_than_what_is_alive(seed):
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    events = pull_events(values, [value.band(2) for value in values])
    for i, value in enumerate(values):
        rows = [row for e in events if e.value == i for row in range(e.first, e.stop)]
        assert rows == list(range(len(rows)))
        assert len(rows) <= value.rows
    frame, rooms = drawn_frame(rng, values, events, False)
    assert frame.nbytes >= max(bytes_wanted(values, events, t) + rooms[t] for t in range(len(events)))
    about = sum(alive(values, row_counts(len(values), [(e.value, e.first, e.stop) for e in events]))[:-1])
    assert all(about[t] >= bytes_wanted(values, events, t) for t in range(len(events)))


def bytes_wanted(values, events, t) -> int:
    """Bytes of the rows that are there at an event and that it or a later one reads."""
    there = {(e.value, row) for e in events[: t + 1] for row in range(e.first, e.stop)}
    reads = ((r, e) for e in events[t:] for r in values[e.value].reads)
    wanted = {(r.source, row) for r, e in reads for row in range(r.first[e.first], r.stop[e.stop - 1])}
    return sum(values[i].row_nbytes for i, _ in there & wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_band_of_all_rows_is_one_event_for_each_value(seed):
    values = drawn(np.random.default_rng(seed))
    events = pull_events(values, [value.inside for value in values])
    assert len(events) == len({e.value for e in events})
    assert all((e.first, e.stop) == (0, values[e.value].rows) for e in events)


def test_rows_that_there_are_not_are_refused():
    x = Rows("x", 4, 64)
    with pytest.raises(PlanError, match="more are read"):
        pull_events([x, Rows("y", 1, 64, (Read(0, (0,), (5,)),))], [1, 1])
    with pytest.raises(PlanError, match="fall"):
        Rows("y", 2, 64, (Read(0, (1, 0), (2, 2)),))
    with pytest.raises(PlanError, match="its table"):
        Rows("y", 2, 64, (Read(0, (0,), (2,)),))
    with pytest.raises(PlanError, match="0 rows"):
        Rows("y", 2, 64, above=1, below=1)


def test_bands_are_whole_steps_and_frames_belong_to_the_first_and_last():
    value = Rows("x", 13, 64, above=1, below=2, step=4)
    assert [value.band(rows) for rows in (1, 4, 5, 99)] == [4, 4, 8, 10]
    assert [(e.first, e.stop) for e in pull_events([value], [4])] == [(0, 5), (5, 9), (9, 13)]


def chain_of_two() -> tuple[list[Rows], list[Event]]:
    """A window of three rows over six, in bands of one row."""
    table = Read(0, (0, 0, 1, 2, 3, 4), (2, 3, 4, 5, 6, 6))
    values = [Rows("x", 6, 10), Rows("y", 6, 7, (table,))]
    return values, pull_events(values, [1, 1])


def test_a_band_runs_when_the_rows_that_it_reads_are_there():
    _, events = chain_of_two()
    order = [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (0, 3), (1, 2), (0, 4), (1, 3), (0, 5), (1, 4), (1, 5)]
    assert events == [Event(i, row, row + 1) for i, row in order]


def test_rings_have_the_rows_from_the_first_one_still_read_to_the_band_that_is_written():
    values, events = chain_of_two()
    spans = [(e.value, e.first, e.stop) for e in events]
    assert heights(values, spans) == [3, 0]
    assert [low for i, _, _, low in still_needed(values, spans) if i == 0] == [0, 0, 0, 1, 2, 3]
    assert bands_of(2, spans) == [[0, 1, 3, 5, 7, 9], [2, 4, 6, 8, 10, 11]]
    assert reads_of(values, events, 0) == [2, 4, 6, 8, 10, 11] and reads_of(values, events, 1) == []
    counts = row_counts(2, spans)
    assert counts.tolist() == [[1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6]]
    x, y = alive(values, counts)
    assert x.tolist() == [10, 20, 20, 30, 30, 30, 30, 30, 30, 30, 30, 20] and y.tolist() == [0] * 12


def test_rows_slide_when_the_next_band_does_not_fit_behind_them():
    values, events = chain_of_two()
    steps = steps_of(values, events, False)
    slides = {t: step for t, step in enumerate(steps) if step.slides}
    assert list(slides.values()) == [BandStep(Event(0, low, low + 2), True, True) for low in (1, 2, 3)]
    assert [steps[t + 1].event for t in slides] == [Event(0, row, row + 1) for row in (3, 4, 5)]
    assert [step.anew for step in steps if not step.slides] == [True] + [False] * 11
    assert [step.event for step in steps if not step.slides] == events


def test_rows_move_home_before_an_edge_and_away_from_it_again():
    values, events = chain_of_two()
    assert homes_of(values, events, (0, 5, len(events)), 0) == [(5, BandStep(Event(0, 1, 3), True, True, True))]
    assert homes_of(values, events, (2,), 0) == [(2, BandStep(Event(0, 0, 2), True, True, True))]
    steps = steps_of(values, events, False, (5, 7))
    moves = [(step.event, step.home) for step in steps if step.slides]
    assert moves[0] == (Event(0, 1, 3), True)
    assert (Event(0, 2, 4), False) in moves and (Event(0, 2, 4), True) in moves
    assert moves.index((Event(0, 2, 4), False)) < moves.index((Event(0, 2, 4), True))


def test_a_value_that_nobody_reads_has_a_ring_of_its_band():
    values = [Rows("x", 4, 8), Rows("y", 4, 8, (Read(0, (0, 1, 2, 3), (1, 2, 3, 4)),))]
    events = [(0, 0, 2), (1, 0, 2), (0, 2, 4), (1, 2, 4)]
    assert heights(values, events) == [2, 0]
    assert [step.anew for step in steps_of(values, [Event(*e) for e in events], False)] == [True, False, True, False]


def test_rows_are_parked_from_the_last_read_of_others_to_the_next_band_if_bands_run_between():
    """`y` reads windows of `x` and `z` each row of `y` twice, so rows of `x` wait while `z` runs."""
    x = Rows("x", 6, 10)
    y = Rows("y", 3, 7, (Read(0, (0, 1, 3), (3, 5, 6)),))
    z = Rows("z", 6, 5, (Read(1, (0, 0, 1, 1, 2, 2), (1, 1, 2, 2, 3, 3)),))
    events = pull_events([x, y, z], [1, 1, 1])
    steps = [(s.event.value, s.event.first, s.event.stop, s.slides) for s in steps_of([x, y, z], events, True)]
    assert [step[:3] for step in steps if not step[3]] == [(e.value, e.first, e.stop) for e in events]
    assert steps[3:7] == [(1, 0, 1, False), (0, 1, 3, True), (2, 0, 1, False), (2, 1, 2, False)]
    assert steps[7:10] == [(0, 1, 3, True), (0, 3, 4, False), (0, 4, 5, False)], "and back before the next band"
    assert steps[10:14] == [(1, 1, 2, False), (0, 3, 5, True), (2, 2, 3, False), (2, 3, 4, False)]
    assert steps[14:] == [(0, 3, 5, True), (0, 5, 6, False), (1, 2, 3, False), (2, 4, 5, False), (2, 5, 6, False)]
    assert all(step.anew for step in steps_of([x, y, z], events, True) if step.slides)


def test_rows_are_not_parked_between_a_read_and_a_band_that_follows_at_once():
    values, events = chain_of_two()
    assert steps_of(values, events, True) == steps_of(values, events, False)
    values = [Rows("x", 6, 10), Rows("y", 2, 7, (Read(0, (0, 1), (3, 6)),))]
    steps = steps_of(values, pull_events(values, [1, 1]), True)
    assert steps == steps_of(values, pull_events(values, [1, 1]), False)
    assert [(i, s.event) for i, s in enumerate(steps) if s.slides] == [(6, Event(0, 1, 5))], "before its last band"
