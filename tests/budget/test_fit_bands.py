"""Plans with regions in bands: the cheapest that fits, the smallest, sizes of bands, and streamed rows."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.bands import fit_bands as bands
from cgraph.budget.bands.fit_bands import FREE_ROWS, fit_bands, fit_row_streams, regional, search_of
from cgraph.budget.bands.regions import PIXELS
from cgraph.budget.bands.streamed_rows import by_rows
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.traverse import post_order
from cgraph.memory.smallest import Candidate
from cgraph.memory.strategies.one_each import one_each
from cgraph.ops.physical.ports import RowPort, RowSink, RowSource
from cgraph.ops.physical.stream import Stream
from tests.support.schedules import conv, lowered, planner_of, residual, scheduled


def streams(choice) -> list:
    return [node for node in choice[0].layout.steps if isinstance(node.op, Stream)]


@pytest.fixture(scope="module")
def network():
    """The planner, the plan of whole steps and the smallest plan in bands."""
    planner = planner_of()
    whole = scheduled(planner, *lowered(residual()[0]))
    return planner, whole, fit_bands(whole, None, None, planner)


def test_the_smallest_plan_does_not_depend_on_the_budget(network):
    planner, whole, least = network
    assert least[1].nbytes < whole[1].nbytes / 3 and streams(least)
    for nbytes in (64, least[1].nbytes - 1):
        assert fit_bands(whole, nbytes, None, planner)[1].nbytes == least[1].nbytes


def test_a_budget_between_is_met_by_fewer_bands(network):
    planner, whole, least = network
    count = []
    for nbytes in np.linspace(least[1].nbytes, whole[1].nbytes, 5).astype(int).tolist():
        choice = fit_bands(whole, nbytes, None, planner)
        assert choice[1].nbytes <= nbytes
        count.append(sum(len(node.op.frame.moves) for node in streams(choice)))
    assert count[0] > 3 * count[-1] and count == sorted(count, reverse=True)


def test_a_search_is_continued_without_its_plans(network):
    planner, whole, least = network
    search = search_of(whole, None, planner)
    first = fit_bands(whole, None, None, planner, search)
    assert first[1].nbytes == least[1].nbytes == fit_bands(whole, None, None, planner, search)[1].nbytes


def test_bands_have_at_least_the_pixels_that_are_asked_for(network):
    planner, whole, least = network
    assert search_of(whole, None, planner).pixels == PIXELS
    assert search_of(whole, 448, planner).pixels == (3136, 1568, 784, 448)
    assert search_of(whole, 500, planner).pixels == (3136, 1568, 784, 500)
    assert search_of(whole, 9999, planner).pixels == (9999,)
    wide = fit_bands(whole, None, 100, planner)
    assert least[1].nbytes < wide[1].nbytes < whole[1].nbytes
    for node in streams(wide):
        columns = 26 if node.shape[2] == 34 else 12
        bands = [m.event for m in node.op.frame.moves if not m.slides and m.event.value == len(node.op.inner) - 1]
        assert all((e.stop - e.first) * columns >= 100 for e in bands[:-1])


def test_only_auto_places_joins_over_their_forks(network):
    planner, whole, _ = network
    other = planner_of(one_each)
    assert any(stage.by_rows for stage in search_of(whole, None, planner).stages)
    assert not any(stage.by_rows for stage in search_of(whole, None, other).stages)
    choice = fit_bands(scheduled(other, *lowered(residual()[0])), None, None, other)
    assert not any(node.op.over for node in streams(choice))


def test_an_arrangement_keeps_outputs_and_tells_its_regions(network):
    planner, whole, _ = network
    search = search_of(whole, None, planner)
    regions = search.fitting(search.least)
    ways = regional(whole[0], regions, planner)
    assert {way.order for way in ways} == {f"depth_first, {len(regions)} regions in bands"}
    for way in ways:
        assert [x.shape for x in way.layout.lasting] == [x.shape for x in whole[0].layout.lasting]
        assert len(way.layout.steps) == len(whole[0].layout.steps) - sum(len(r.steps) - 1 for r in regions)
    (plain, *_) = regional(whole[0], [], planner)
    assert plain.layout.steps == whole[0].layout.steps


def test_what_later_runs_read_again_keeps_its_bytes():
    """Values that do not depend on a changing input stay in memory: nothing is cut, and no plan drops them."""
    y, x = residual()
    other = cg.Var((1, 8, 16, 12), name="other")
    planner = planner_of()
    (root,) = lowered(y + cg.tanh(other) * 2)
    stays = next(node for node in post_order([root]) if node.operands == (other,))
    whole = scheduled(planner, root, always=(stays,))
    assert all(way.layout.always == {stays} for way in regional(whole[0], [], planner))
    for nbytes in (None, 64, whole[1].nbytes):
        choice = fit_bands(whole, nbytes, None, planner)
        assert choice[0].layout.always == {stays} and choice[1].nbytes == whole[1].nbytes


def test_several_outputs_stay_in_their_order():
    y, x = residual()
    planner = planner_of()
    choice = fit_bands(scheduled(planner, *lowered(y, cg.sum(x, (2, 3)))), None, None, planner)
    assert [node.shape for node in choice[0].layout.lasting] == [(1, 8, 16, 12), (1, 8)] and streams(choice)


def streamed():
    """The planner and the plan of an image that goes by rows through two convolutions."""
    x = cg.Var((1, 4, 90, 20), name="x")
    y = conv(conv(x, 6), 3)
    planner = planner_of()
    (root,) = by_rows((y,), {0: RowPort("y", y.spec)}, (x,))
    layout = lowered(root)
    return planner, scheduled(planner, *layout)


def rows_of(choice) -> int:
    (node,) = streams(choice)
    sinks = [i for i, inner in enumerate(node.op.inner) if isinstance(inner.op, RowSink)]
    return max(m.event.stop - m.event.first for m in node.op.frame.moves if m.event.value in sinks and not m.slides)


def test_streamed_rows_have_the_largest_bands_that_fit():
    planner, whole = streamed()
    free = fit_row_streams(whole, None, planner)
    assert rows_of(free) == FREE_ROWS and free[1].nbytes < whole[1].nbytes
    (node,) = streams(free)
    assert isinstance(node.op.inner[0].op, RowSource) and len(free[0].layout.steps) == 1
    sizes = []
    for nbytes in (10**6, free[1].nbytes, free[1].nbytes // 2, 1):
        choice = fit_row_streams(whole, nbytes, planner)
        sizes.append(rows_of(choice))
        assert choice[1].nbytes <= nbytes or rows_of(choice) == 1
    assert sizes[0] == 64 and sizes[1] >= 16 and sizes == sorted(sizes, reverse=True) and sizes[-1] == 1


@pytest.mark.parametrize("others, want", [((), 90), ((85, 70, 75), 70), ((95,), 90), ((120,), 90)])
def test_where_the_cheapest_plan_is_beyond_the_budget_the_smallest_of_all_searches_counts(monkeypatch, others, want):
    """A search's estimate may fit in the budget where its plan does not: then its other ways to count are tried."""

    def choice(nbytes: int):
        return None, SimpleNamespace(nbytes=nbytes)

    searches = [SimpleNamespace(plan=nbytes) for nbytes in others]
    first = SimpleNamespace(least=50, plan=90, others=lambda most: searches)
    first.fresh = lambda: first
    monkeypatch.setattr(bands, "cheapest", lambda whole, nbytes, search, planner: choice(95))
    monkeypatch.setattr(bands, "least_of", lambda whole, search, planner: choice(search.plan))
    assert fit_bands(choice(100), 80, None, None, first)[1].nbytes == want
    assert fit_bands(choice(60), 80, None, None, first)[1].nbytes == 60, "the plan without bands"


@pytest.mark.parametrize("window, pad, stride", [(1, 1, 1), (2, 3, 2), (1, 3, 1)])
def test_bands_with_windows_completely_in_the_padding_have_the_same_bits(window, pad, stride):
    x = cg.Var((1, 2, 28, 21))
    rng = np.random.default_rng(0)
    f, g = (rng.normal(size=shape).astype("f4") for shape in ((16, 2, window, window), (8, 16, 3, 3)))
    y = cg.max(cg.conv2d(cg.sigmoid(cg.conv2d(x, f, stride, pad)), g, 1, 1), axis=(2, 3))
    value = rng.normal(size=x.shape).astype("f4")
    whole = cg.compile(y, [x])
    for pixels in (1, 30):
        banded = cg.compile(y, [x], engine=CpuEngine(poison=True), bands=pixels)
        assert banded.nbytes < whole.nbytes
        np.testing.assert_array_equal(banded(value), whole(value))


@pytest.mark.parametrize(
    ("sizes", "goals", "size"),
    [
        ([130, 110, 100], [100, 70, 60], 100),
        ([130, 103, 99], [100, 70, 62], 99),
        ([100], [100], 100),
        ([190, 190], [100, 10], 190),
        ([130, 130, 130, 130], [100, 70, 40, 10], 130),
    ],
    ids=str,
)
def test_a_goal_falls_by_the_excess_of_a_plan_until_it_fits_or_no_regions_need_less(sizes, goals, size, monkeypatch):
    """Bytes at an alignment of 8, within 100; regions need at least 10."""
    asked, plans = [], iter(sizes)
    search = SimpleNamespace(least=10, fitting=lambda most: asked.append(most) or most)
    planner = SimpleNamespace(alignment=8, smallest=lambda ways: (ways, SimpleNamespace(nbytes=next(plans))))
    monkeypatch.setattr(bands, "regional", lambda candidate, regions, planner: regions)
    goal, plan = bands.cheapest((None, None), 100, search, planner)
    assert asked == goals and goal == goals[-1] and plan.nbytes == size


@pytest.mark.parametrize("asked", [None, 80, 40])
def test_the_search_for_the_smallest_plan_begins_without_the_band_buffers_of_others(asked, monkeypatch):
    class Search:
        least = 50

        def __init__(self, before: "Search | None" = None) -> None:
            self.before = before

        def fresh(self) -> "Search":
            return Search(self)

        def others(self, most: int) -> list:
            return []

    def choice(nbytes: int):
        return None, SimpleNamespace(nbytes=nbytes)

    given, used = Search(), {}
    monkeypatch.setattr(
        bands, "cheapest", lambda whole, nbytes, search, planner: used.update(first=search) or choice(95)
    )
    monkeypatch.setattr(bands, "least_of", lambda whole, search, planner: used.update(least=search) or choice(90))
    assert fit_bands(choice(100), asked, None, None, given)[1].nbytes == 90
    assert ("first" in used) == (asked == 80)
    if asked == 80:
        assert used["first"].before is given and used["least"].before is used["first"]
    else:
        assert used["least"].before is given


@pytest.mark.parametrize(
    ("sizes", "rows"), [([90, 70, 80, 95, 75, 85, 99], 32), ([90, 70, 60, 40, 30, 20, 10], 1), ([50] * 7, 64)], ids=str
)
def test_where_no_bands_of_streamed_rows_fit_the_smallest_plan_of_all_is_taken(sizes, rows, monkeypatch):
    """The first of equal ones; frames fit, and plans around them do not."""
    steps = (None, SimpleNamespace(shape=(1, 1, 64, 5)))
    plans = dict(zip(bands.STREAMED_ROWS, sizes))
    frames = SimpleNamespace(frame=lambda rows: SimpleNamespace(nbytes=1, rows=rows))
    planner = SimpleNamespace(facts=SimpleNamespace(target=None), alignment=64)
    planner.smallest = lambda found: (found[0], SimpleNamespace(nbytes=plans[found[0].frame.rows]))
    monkeypatch.setattr(bands, "region_of", lambda layout, facts: (SimpleNamespace(steps=steps), 0, 1))
    monkeypatch.setattr(bands, "Fed", lambda *_: frames)
    monkeypatch.setattr(bands, "regional", lambda candidate, regions, planner: regions)
    region, plan = fit_row_streams((Candidate("depth_first", None, None), None), 5, planner)
    assert region.frame.rows == rows and plan.nbytes == min(sizes)
    assert region.steps == (0, 1) and region.pixels == 5 * rows
