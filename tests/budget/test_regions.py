"""Which regions of a schedule can run in bands, and what is in use: as plain counting says."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.budget.bands import regions
from cgraph.budget.bands.in_place_joins import Bands
from cgraph.budget.bands.regions import Search, Stage
from cgraph.budget.bands.row_rings import Read, Rows, pull, row_counts
from cgraph.ir.bands import Event
from cgraph.record import replace

ALIGNMENT = 8


@st.composite
def schedules(draw: st.DrawFn, most: int = 12) -> list[Stage]:
    """Steps of which most can run in bands; values read later, kept, or read whole by each band."""
    count = draw(st.integers(1, most))
    found = []
    for t in range(count):
        rows = Rows(f"v{t}", 4, 64) if draw(st.integers(0, 5)) else None
        last = draw(st.sampled_from((t, min(t + 1, count - 1), min(t + 3, count - 1), count)))
        nbytes, workspace, taken = (draw(st.sampled_from((0, 3, 8, 20))) for _ in range(3))
        whole = draw(st.integers(-1, t - 1)) if not draw(st.integers(0, 4)) else -1
        free = rows is None and draw(st.booleans())
        found.append(Stage(nbytes, last, workspace, taken, rows, whole=whole, free=free))
    return found


def rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@given(stages=schedules())
def test_a_region_is_as_long_as_it_can_be(stages):
    """All its steps run in bands, nobody outside reads a value inside, no band reads a whole value inside.

    Steps between that may run before it are not in it.
    """

    def is_region(first: int, join: int) -> bool:
        inside = [t for t in range(first, join + 1) if not stages[t].free or t in (first, join)]
        return all(stages[t].rows and stages[t].whole < first for t in inside) and all(
            stages[t].last <= join for t in inside[:-1]
        )

    search = Search(stages, ALIGNMENT)
    for join in range(len(stages)):
        firsts = [first for first in range(join + 1) if is_region(first, join)]
        first = search.first_of(join)
        assert first == min(firsts, default=join + 1)
        between = [stages[t] for t in range(first, join) if stages[t].free]
        room = max((rounded(x.workspace) for x in between), default=0)
        assert search.before(first, join) == sum(rounded(x.nbytes) for x in between) + room
        steps = search.steps(first, join)
        assert [stages[t] for t in range(first, join + 1) if t not in steps] == between


@pytest.mark.parametrize(
    ("band", "asked"), [(1, [(0, 1), (1, 2)]), (3, [(0, 3), (3, 4)]), (4, [(0, 4)]), (9, [(0, 4)])]
)
def test_the_workspace_of_a_region_is_that_of_its_largest_band(band, asked):
    """The first band has no rows above it and the second has, so either may need more."""
    for larger in range(len(asked)):
        sizes = {bands: 8 + 8 * (i == larger) for i, bands in enumerate(asked)}
        stage = Stage(64, 1, rows=Rows("v", 4, 16), band_nbytes=lambda first, stop, sizes=sizes: sizes[first, stop])
        assert Search([stage], ALIGNMENT).most_workspace(0, band) == 16


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_region_has_no_more_steps_than_said(most, monkeypatch):
    monkeypatch.setattr(regions, "MOST_STEPS", most)
    chain = [Stage(8, t + 1, rows=Rows(f"v{t}", 4, 64)) for t in range(9)]
    assert [Search(chain, ALIGNMENT).first_of(join) for join in range(9)] == [
        max(join - most + 1, 0) for join in range(9)
    ]


@given(stages=schedules())
def test_what_is_in_use_is_what_somebody_still_reads(stages):
    search = Search(stages, ALIGNMENT)
    for t, stage in enumerate(stages):
        before = sum(rounded(x.nbytes) for x in stages[:t] if x.last >= t)
        assert search.across[t] == before
        own = rounded(stage.nbytes) + rounded(stage.workspace)
        assert search.needed(t) == before + own - min(stage.overwritten, rounded(stage.nbytes))


def test_each_band_has_the_workspace_of_its_own_step():
    """Bands of several steps alternate; each needs bytes by the number of its step and its first row."""
    each = Read(0, tuple(range(6)), tuple(range(1, 7)))
    stages = [
        Stage(24, t + 1, rows=Rows(f"v{t}", 6, 4, (replace(each, source=t - 1),) if t else ()),
              band_nbytes=lambda first, stop, t=t: 100 * t + first)
        for t in range(3)
    ]  # fmt: skip
    framing = Search(stages, ALIGNMENT).framed((0, 1, 2), 2)
    assert {event.value for event in framing.events} == {0, 1, 2}
    assert list(framing.workspaces) == [100 * event.value + event.first for event in framing.events]


def test_each_band_is_asked_once_for_its_workspace_whatever_other_bands_of_its_step_need():
    """Bands of a step may begin at one row and have other heights, or have one height and begin at other rows."""
    asked = []

    def nbytes(first: int, stop: int) -> int:
        asked.append((first, stop))
        return 100 * first + stop

    stages = [Stage(24, t + 1, rows=Rows(f"v{t}", 6, 4), band_nbytes=nbytes) for t in range(2)]
    search, bands = Search(stages, ALIGNMENT), [(0, 2), (0, 4), (2, 4), (4, 6)]
    for _ in range(2):
        for t in range(2):
            assert [search.workspace(t, Event(t, *band)) for band in bands] == [2, 4, 204, 406]
    assert asked == bands * 2


@given(
    kinds=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=7),
    reads=st.data(),
)
def test_a_fork_is_a_value_row_by_row_that_bands_read_and_belongs_to_its_last_reader(kinds, reads):
    """By plain counting: rows or none, row by row or not; readers that read rows and readers that read the whole."""
    every, stages = tuple(range(4)), []
    for t, (has_rows, by_rows) in enumerate(kinds):
        sources = reads.draw(st.sets(st.integers(0, t - 1))) if t and has_rows else ()
        each = tuple(Read(x, every, tuple(n + 1 for n in every)) for x in sorted(sources))
        last = reads.draw(st.integers(t, len(kinds) - 1))
        stages.append(Stage(8, last, rows=Rows(f"v{t}", 4, 8, each) if has_rows else None, by_rows=by_rows))
    read = {x.source for stage in stages if stage.rows for x in stage.rows.reads}
    want = [[x for x in sorted(read) if stages[x].by_rows and stages[x].last == t] for t in range(len(stages))]
    search = Search(stages, ALIGNMENT)
    assert search.forks == want
    rows = [(t, r) for t, stage in enumerate(stages) if stage.rows for r in stage.rows.reads]
    assert search.readers == {x: [(t, r) for t, r in rows if r.source == x] for x in read}


def chain_of_bands() -> list[Stage]:
    """Four values in bands, each of which reads the one before and needs a workspace."""
    each = Read(0, tuple(range(6)), tuple(range(1, 7)))
    reads = [(replace(each, source=t - 1),) if t else () for t in range(4)]
    return [
        Stage(6000, t + 1, rows=Rows(f"v{t}", 6, 1000, read), band_nbytes=lambda first, stop: 800)
        for t, read in enumerate(reads)
    ]


def with_fork(reaches: tuple[int, ...]) -> list[Stage]:
    """A fork, values that read so many of its rows for each of theirs, and the join of the last with the fork."""
    rows, stages = 12, [Stage(12 * 48, 1 + len(reaches), rows=Rows("fork", 12, 48), by_rows=True)]
    for reach in (*reaches, 1):
        reads = [Read(0, tuple(range(rows)), tuple(min(r + reach, rows) for r in range(rows)))]
        if len(stages) > 1:
            reads.append(Read(len(stages) - 1, tuple(range(rows)), tuple(range(1, rows + 1))))
        stages.append(Stage(12 * 48, len(stages) + 1, rows=Rows(f"v{len(stages)}", rows, 48, tuple(reads))))
    stages[-1] = replace(stages[-1], by_rows=True)
    return stages


@pytest.mark.parametrize("reaches", [(1,), (5,), (5, 1), (1, 5), (1, 5, 1)])
def test_a_join_is_as_far_from_its_fork_as_the_reader_of_most_rows_requires(reaches):
    stages = with_fork(reaches)
    search, steps = Search(stages, ALIGNMENT), tuple(range(1, len(stages)))
    values = search.values(steps)
    done = row_counts(len(values), list(pull(values, (1,) * len(steps))))
    bands = Bands(values[-1], done)
    readers = [(t - 1, r) for t, stage in enumerate(stages) for r in stage.rows.reads if r.source == 0]
    assert len(readers) == len(reaches) + 1
    (overlap,) = search.overlaps(steps, bands)
    assert (overlap.fork, overlap.ahead) == (0, rounded(bands.ahead(stages[0].rows, readers)))
    assert overlap.shared == 12 * 48 - overlap.ahead > 0
    assert not search.overlaps(steps[1:], bands), "a reader runs before these steps"


def test_other_searches_are_those_that_may_need_less_than_the_bytes_given():
    """One whose chains lose no bytes, and one without in-place joins: each of them, both, or none."""
    search = Search(with_fork((1, 5)), ALIGNMENT)
    loose, none = list(search.others(1 << 40))
    assert (search.units.shared > 0).any() and search.chains_lose
    assert (loose.units.shared == search.units.shared).all() and not loose.chains_lose
    assert not none.units.shared.any() and none.chains_lose
    need, without = loose.ways(None)[0].nbytes, none.ways(None)[0].nbytes
    assert need < without
    for most, count in [(need, 0), (need + 1, 1), (without, 1), (without + 1, 2)]:
        assert len(list(search.others(most))) == count
    assert not list(none.others(1 << 40)), "nothing is in place"


def test_only_band_buffers_of_several_values_are_expected_to_have_gaps():
    search = Search(chain_of_bands(), ALIGNMENT)
    for each in (search, search.fresh(), search.another(search.units.shared, False)):
        units = each.units
        has_one = units.first == units.join
        assert (units.alive > 0).all() and has_one.any() and not has_one.all()
        expected = np.where(has_one, units.alive, (units.alive * (1 + regions.GAPS)).astype(int))
        assert (units.frame == expected).all()


@pytest.mark.parametrize("gaps", [0.5, 0.01])
def test_the_gaps_of_a_planned_band_buffer_are_expected_in_regions_that_contain_it(gaps, monkeypatch):
    search = Search(chain_of_bands(), ALIGNMENT)
    units, choice = search.units, SimpleNamespace(need=lambda units: 0)
    for unit in np.flatnonzero(units.join - units.first == 1):
        nbytes = int(units.alive[unit] * (1 + gaps))
        plan = SimpleNamespace(nbytes=nbytes, improve=lambda work, most: None)
        monkeypatch.setattr(search, "framing", lambda unit, plan=plan: plan)
        choice.unit, before = int(unit), units.frame.copy()
        search.plan(choice, 0, 0)
        contains = (units.first <= units.first[unit]) & (units.join >= units.join[unit]) & ~units.is_planned
        share = 1 + regions.ALIKE * (nbytes / units.alive[unit] - 1)
        expected = np.where(contains, np.maximum(before, (units.alive * share).astype(int)), before)
        expected[unit] = nbytes
        assert (units.frame == expected).all()


@pytest.mark.parametrize(("above", "below"), [(0, 0), (1, 2), (3, 0)])
def test_a_region_costs_the_calls_of_its_bands_beyond_one_of_each_step(above, below):
    """Rows of a halo have no bands of their own."""
    count = 6 + above + below
    each = Read(0, tuple(range(count)), tuple(range(1, count + 1)))
    stages = [
        Stage(6000, t + 1, rows=Rows(f"v{t}", count, 1000, (replace(each, source=t - 1),) if t else (), above, below))
        for t in range(3)
    ]
    search = Search([replace(x, columns=1 + t) for t, x in enumerate(stages)], ALIGNMENT, (12, 6, 4, 2, 1))
    units, counted = search.units, set()
    for unit in range(len(units.join)):
        steps = search.steps(int(units.first[unit]), int(units.join[unit]))
        values = search.values(steps)
        bands = list(pull(values, search.bands(values, steps, int(units.pixels[unit]))))
        assert units.nanoseconds[unit] == (len(bands) - len(steps)) * regions.CALL_NS
        counted.add(len(bands) - len(steps))
    assert counted >= {0, 5, 10}
