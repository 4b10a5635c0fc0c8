"""Band buffers: rings that share bytes by time, rows that rest, and groups that are refused where they overlap."""

import numpy as np
import pytest

from cgraph.budget.bands.band_buffer import Framed, Framing, groups_of, loop_frame
from cgraph.budget.bands.repeated_bands import period_of, shorten
from cgraph.budget.bands.row_rings import Read, Rows, pull_events, steps_of
from cgraph.errors import PlanError
from cgraph.memory.packing import Group, Slab, check_groups
from tests.support.rings import framed


def test_rows_that_rest_make_room_for_others():
    values = [Rows("x0", 40, 640), *(Rows(f"x{i + 1}", 40, 640, (window(i),)) for i in range(6))]
    events = pull_events(values, [value.band(5) for value in values])
    rooms = [20_000 if event.value == 6 else 0 for event in events]
    plain, resting = (framed(values, events, rooms, rests, 10**7).nbytes for rests in (False, True))
    assert resting < 0.9 * plain
    framing = Framing(values, events, rooms, 64)
    framing.improve(10**7)
    assert framing.best.frame().nbytes == framing.nbytes == resting
    framing = Framing(values, events, rooms, 64)
    framing.improve(10**7, enough=plain)
    assert framing.nbytes == plain


def test_slides_overlap_where_that_saves_bytes():
    """Six of seven rows slide; apart, both places lie in the buffer at the same time."""
    table = Read(0, tuple(range(12)), tuple(r + 7 for r in range(12)))
    values = [Rows("x", 18, 64), Rows("y", 12, 64, (table,))]
    events = pull_events(values, [1, 1])
    apart, over = (Framing(values, events, [0] * len(events), 64, overlap) for overlap in (False, True))
    for framing in (apart, over):
        framing.improve()
    assert over.nbytes == 7 * 64 < apart.nbytes
    assert over.plain.nbytes == apart.plain.nbytes and over.best is over.framed(True, False)


def window(source: int) -> Read:
    """Three of 40 rows, one beyond each border left out."""
    return Read(source, tuple(max(r - 1, 0) for r in range(40)), tuple(min(r + 2, 40) for r in range(40)))


def test_groups_that_share_bytes_are_refused():
    groups = [Group("x", 0, (Slab(0, 64, 0, 4), Slab(64, 64, 2, 4))), Group("y", 0, (Slab(0, 64, 3, 3),))]
    check_groups(groups, [0, 128], 192)
    check_groups([groups[0], Group("y", 0, (Slab(0, 64, 0, 1),))], [0, 64], 128)  # before the second slab is written
    with pytest.raises(PlanError, match="share bytes"):
        check_groups(groups, [0, 64], 192)
    with pytest.raises(PlanError, match="leaves"):
        check_groups(groups, [0, 128], 128)


def chain_of_two(row: int = 64) -> list[Rows]:
    """A window of three rows over six."""
    return [Rows("x", 6, row), Rows("y", 6, 64, (Read(0, (0, 0, 1, 2, 3, 4), (2, 3, 4, 5, 6, 6)),))]


def test_a_ring_is_one_group_from_slide_to_slide_and_a_workspace_is_a_group_of_its_band():
    values = chain_of_two()
    events = pull_events(values, [1, 1])
    steps = steps_of(values, events, False)
    groups, ring_of, room_of = groups_of(values, steps, [100 if e.value == 1 else 0 for e in events])
    rings = [group for group in groups if group.name == "x"]
    assert [group.name for group in groups if group.name != "x"] == ["workspace of y"] * 6
    assert [group.first for group in rings] == [0, 1, 2, 3] and [group.nbytes for group in rings] == [192] * 4
    assert rings[0].slabs == (Slab(0, 64, 0, 4), Slab(64, 64, 1, 5), Slab(128, 64, 3, 5))
    assert [ring_of[t][0] >= 0 for t in range(len(steps))] == [step.event.value == 0 for step in steps]
    assert [room_of[t] >= 0 for t in range(len(steps))] == [step.event.value == 1 for step in steps]
    assert all(ring_of[t][1] in (0, 1, 2, 3) for t, step in enumerate(steps) if step.event.value == 0)


def test_the_offset_of_a_band_counts_rows_from_the_front_of_its_ring():
    values = chain_of_two(192)
    events = pull_events(values, [1, 1])
    buffer = Framed(values, steps_of(values, events, False), [0] * len(events), 64).frame()
    at = [(move.event.first, move.at) for move in buffer.moves if move.event.value == 0]
    assert at[:3] == [(0, 0), (1, 192), (2, 384)] and all(offset + 192 <= buffer.nbytes for _, offset in at)
    assert all(move.at == 0 for move in buffer.moves if move.event.value == 1), "the join lies outside"
    assert all((move.workspace, move.room) == (0, 0) for move in buffer.moves)
    assert 3 * 192 <= buffer.nbytes <= 6 * 192


def test_workspaces_have_their_bytes_and_their_alignment():
    values = chain_of_two()
    events = pull_events(values, [1, 1])
    buffer = Framed(values, steps_of(values, events, False), [100] * len(events), 64).frame()
    rooms = [move for move in buffer.moves if not move.slides]
    assert all(move.room == 100 and move.workspace % 64 == 0 for move in rooms)
    assert all(move.workspace + 100 <= buffer.nbytes for move in rooms)
    for move in rooms:
        if move.event.value == 0:
            assert not (move.workspace < move.at + 64 and move.at < move.workspace + 100)


def test_nothing_is_searched_where_a_buffer_is_small_enough():
    values = [Rows("x0", 40, 640), *(Rows(f"x{i + 1}", 40, 640, (window(i),)) for i in range(6))]
    events = pull_events(values, [value.band(5) for value in values])
    framing = Framing(values, events, [0] * len(events), 64)
    first = framing.nbytes
    framing.improve(10**7, enough=first)
    assert framing.nbytes == first and list(framing.kinds) == [(False, False)] and framing.best is framing.plain


def test_repeated_bands_use_the_same_offsets_each_time():
    rows = 400
    table = Read(0, tuple(max(r - 1, 0) for r in range(rows)), tuple(min(r + 2, rows) for r in range(rows)))
    values = [Rows("x", rows, 64), Rows("y", rows, 64, (table,))]
    bands = [4, 4]
    period = period_of(values, bands)
    short = shorten(values, period)
    events = pull_events(short, bands)
    buffer = loop_frame(short, events, [64] * len(events), 64, period)
    loop = buffer.loop
    assert (loop.begin, loop.shift, loop.count) == (period.begin, period.shift, period.count)
    assert buffer.moves[loop.first].event == events[period.first] or buffer.moves[loop.first].slides
    assert [m.event for m in buffer.moves[loop.first : loop.last] if not m.slides] == events[period.first : period.last]
    assert buffer.nbytes < 20 * 64


def test_a_buffer_whose_rings_share_bytes_is_refused():
    values = chain_of_two()
    events = pull_events(values, [1, 1])
    framed_bands = Framed(values, steps_of(values, events, False), [64] * len(events), 64)
    framed_bands.packing.bases = np.zeros_like(framed_bands.packing.bases)
    with pytest.raises(PlanError, match="share bytes"):
        framed_bands.frame()
