"""The band buffer of streamed images: equal parts of all values, workspaces, and a loop whose turns are the same."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.bands import streamed_bands
from cgraph.budget.bands.repeated_bands import period_of
from cgraph.budget.bands.row_rings import Read, Rows, pull_events
from cgraph.budget.bands.streamed_bands import Fed, key_of, value_of
from cgraph.budget.bands.streamed_rows import by_rows, region_of
from cgraph.ir.bands import Event
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import Pointer
from cgraph.ops.physical.ports import RowPort
from cgraph.ops.physical.stream import ROWS, band_nbytes
from tests.support.schedules import PORTABLE, conv, lowered, planner_of, scheduled


def fed(rows: int, sink: bool = True) -> Fed:
    """Images of these rows through a convolution of half the size and another, whose result is delivered or kept."""
    x = cg.Var((1, 4, rows, 20), name="x")
    y = conv(conv(x, 6, 3, 2), 3)
    planner = planner_of()
    roots = by_rows((y,), {0: RowPort("y", y.spec)} if sink else {}, (x,))
    layout, first, last = region_of(scheduled(planner, *lowered(*roots))[0].layout, planner.facts)
    return Fed(layout, first, last, PORTABLE, 64)


def test_bands_are_the_same_share_of_every_value():
    region = fed(400)
    heights = [node.shape[2] for node in region.steps]
    assert heights[:2] == [400, 202] and heights[-1] == 200, "the second has a halo above and below"
    for rows in (1, 5, 16, 10**6):
        bands = region.bands(rows)
        assert bands == [v.band(rows * h // 200) for v, h in zip(region.values, heights)]
        assert bands[-1] == min(rows, 200) and bands[0] == min(2 * rows, 400)


def test_a_tall_picture_has_a_loop_and_its_buffer_does_not_grow():
    short, tall = (fed(rows).frame(4) for rows in (400, 4000))
    assert short.loop and tall.loop and tall.nbytes == short.nbytes and len(tall.moves) == len(short.moves)
    assert tall.loop.count > 9 * short.loop.count and tall.loop.shift == short.loop.shift


def test_small_pictures_and_results_that_stay_have_all_bands_written_out():
    for region in (fed(24), fed(400, sink=False)):
        buffer = region.frame(4)
        assert buffer.loop is None
        assert [m.event for m in buffer.moves if not m.slides] == pull_events(region.values, region.bands(4))


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_every_band_finds_its_rows(rows):
    region = fed(120)
    buffer = region.frame(rows)
    events = [m.event for m, _ in buffer.turns(range(buffer.loop.count) if buffer.loop else (0,)) if not m.slides]
    assert events == pull_events(region.values, region.bands(rows))
    for move in (m for m in buffer.moves if not m.slides and buffer.loop is None):
        assert move.room == region.nbytes(move.event)


def test_workspaces_are_those_of_the_bands():
    region = fed(60)
    for i, node in enumerate(region.steps):
        specs = tuple(x.spec for x in node.operands)
        for first, stop in ((0, 4), (4, 8)):
            assert region.nbytes(Event(i, first, stop)) == band_nbytes(region.cuts[i], specs, PORTABLE, first, stop)


def test_a_bands_workspace_is_that_of_all_rows_its_rows_read():
    """Rows of an operand: from the first that the first row reads to the last that the last row reads."""
    first_reads, behind_reads = np.array([0, 1, 3, 5, 7]), np.array([3, 4, 8, 9, 11])

    def work(target, *specs):
        return SimpleNamespace(nbytes=int("".join(str(s.shape[ROWS]) for s in specs)))

    cut = SimpleNamespace(reads=((first_reads, behind_reads), None), band=lambda i, j: SimpleNamespace(work=work))
    specs = (Spec((1, 2, 11, 3), np.dtype("f4")), Spec((1, 2, 6, 3), np.dtype("f4")))
    for first, stop in itertools.combinations(range(6), 2):
        rows = behind_reads[stop - 1] - first_reads[first]
        assert band_nbytes(cut, specs, PORTABLE, first, stop) == int(f"{rows}6")


def test_a_loop_whose_calls_differ_is_not_used(monkeypatch):
    region = fed(400)
    assert region.frame(4).loop is not None
    monkeypatch.setattr(Fed, "comes_again", lambda region, frame: False)
    buffer = region.frame(4)
    assert buffer.loop is None and [m.event for m in buffer.moves if not m.slides] == pull_events(
        region.values, region.bands(4)
    )


def test_one_act_that_differs_in_any_turn_is_enough_to_refuse_a_loop(monkeypatch):
    """Each act of each turn that is compared differs once, the others are the same."""
    region = fed(400)
    frame = region.frame(4)
    assert frame.loop is not None and len(frame.loop.checked_turns) == 3
    asked, odd = [0], [-1]

    def key(act):
        asked[0] += 1
        return ["other" if asked[0] - 1 == odd[0] else "same"]

    monkeypatch.setattr(streamed_bands, "key_of", key)
    assert region.comes_again(frame)
    assert asked[0] == 3 * (frame.loop.last - frame.loop.first) > 3
    for at in range(asked[0]):
        asked[0], odd[0] = 0, at
        assert not region.comes_again(frame), at


class Act:
    """An act with these calls."""

    def __init__(self, *calls) -> None:
        self._calls = calls

    def calls(self):
        return self._calls


class Call:
    """A kernel call."""

    def __init__(self, *args, kernel="k", tasks=1, chunk=1) -> None:
        self.kernel, self.args, self.tasks, self.chunk = kernel, args, tasks, chunk


def test_calls_are_the_same_if_they_do_the_same():
    base, array = object(), np.arange(3)
    key = key_of(Act(Call(Pointer(base, 8), 5)))
    assert key == key_of(Act(Call(Pointer(base, 8), 5)))
    for other in (
        Call(Pointer(base, 16), 5), Call(Pointer(object(), 8), 5), Call(Pointer(base, 8), 6),
        Call(Pointer(base, 8), 5, kernel="q"), Call(Pointer(base, 8), 5, tasks=2), Call(Pointer(base, 8), 5, chunk=2),
    ):  # fmt: skip
        assert key != key_of(Act(other))
    assert key != key_of(Act(Call(Pointer(base, 8), 5), Call())) and key_of(Act()) == []
    assert key_of(Act(Call(Pointer(array, 0)))) == key_of(Act(Call(Pointer(array.copy(), 0))))
    assert key_of(Act(Call(Pointer(array, 0)))) != key_of(Act(Call(Pointer(array + 1, 0))))
    assert value_of(base) is base and value_of(array) == array.tobytes()


@pytest.mark.parametrize(("band", "rows"), [(4, 60), (6, 60), (2, 31)])
def test_bands_behind_the_loop_have_the_workspaces_of_the_last_rows_of_the_picture(band, rows, monkeypatch):
    """A row of the join reads two rows of the other value."""
    reads = Read(0, tuple(range(0, 2 * rows, 2)), tuple(range(2, 2 * rows + 1, 2)))
    region, bands = Fed.__new__(Fed), [band, 1]
    values = [Rows("x", 2 * rows, 10), Rows("y", rows, 7, (reads,))]
    region.__dict__ |= {"values": values, "alignment": 64, "nbytes": lambda event: event}
    monkeypatch.setattr(streamed_bands, "loop_frame", lambda values, events, rooms, alignment, period: rooms)
    period, whole = period_of(values, bands), pull_events(values, bands)
    rooms = region.looped(bands, period)
    assert period.last < len(rooms) < len(whole)
    assert rooms == [*whole[: period.last], *whole[period.last - len(rooms) :]]
