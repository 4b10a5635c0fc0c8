"""Plans that compute forward values again: the fewest segments that fit, the least work, cheap values, same bits."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget import fit_reruns
from cgraph.budget.fit_reruns import WORTH, Rematerialisation, rematerialise
from cgraph.memory.problem import Plan
from cgraph.rematerialise.reruns import rerun_positions
from tests.support.schedules import planner_of, scheduled


@pytest.fixture(scope="module")
def training():
    """The planner and the plan of the gradients of six equal layers."""
    h = cg.Var((16, 64), name="x")
    weights = [cg.Var(64, name=f"w{i}") for i in range(6)]
    for w in weights:
        h = cg.tanh(h * w)
    planner = planner_of()
    loss = cg.sum(h * h)
    return planner, scheduled(planner, loss, *cg.gradient(loss, weights))


def again(choice) -> int:
    return int(choice[0].order.rsplit(", ", 1)[1].split()[0]) if "again" in choice[0].order else 0


def test_true_gives_the_smallest_plan_of_segments(training):
    planner, whole = training
    choice = rematerialise(whole, True, planner)
    assert choice[1].nbytes < 0.95 * whole[1].nbytes and again(choice) > 0
    assert [x.spec for x in choice[0].layout.lasting] == [x.spec for x in whole[0].layout.lasting]


@pytest.mark.parametrize("least_nbytes", [[70], [120, 80], [120, 110]])
def test_a_plan_that_fits_is_made_lighter_and_one_that_does_not_is_made_smaller(monkeypatch, least_nbytes):
    """Segments first; if they do not fit, the smallest plan; if one fits, the one with the least work."""
    calls = []

    def choice(name, nbytes):
        return name, SimpleNamespace(nbytes=nbytes)

    class Reruns:
        def __init__(self, *given):
            pass

        def segmented(self, nbytes):
            calls.append(("segmented", nbytes))
            return choice("segmented", least_nbytes[0]), "order"

        def smallest(self, best, order):
            calls.append(("smallest", best[0], order))
            return choice("smallest", least_nbytes[1]), "shorter"

        def lightest(self, nbytes, best, order):
            calls.append(("lightest", nbytes, best[0], order))
            return choice("lightest", nbytes), "lighter"

    monkeypatch.setattr(fit_reruns, "Rematerialisation", Reruns)
    (name, plan) = rematerialise(None, 100.5, None)
    fits = least_nbytes[-1] <= 100
    smaller = [("smallest", "segmented", "order")] * (len(least_nbytes) - 1)
    best = ("smallest", "shorter") if smaller else ("segmented", "order")
    assert calls == [("segmented", 100), *smaller, *([("lightest", 100, *best)] if fits else [])]
    assert (name, plan.nbytes) == (("lightest", 100) if fits else ("smallest", least_nbytes[-1]))


def test_a_number_of_bytes_is_met_with_as_little_work_as_it_needs(training):
    planner, whole = training
    least = rematerialise(whole, 1, planner)
    counts = []
    for nbytes in np.linspace(least[1].nbytes, whole[1].nbytes, 3).astype(int).tolist():
        choice = rematerialise(whole, nbytes, planner)
        assert choice[1].nbytes <= nbytes
        counts.append(again(choice))
    assert counts[0] > counts[-1] == 0 and counts == sorted(counts, reverse=True)
    assert least[1].nbytes <= rematerialise(whole, True, planner)[1].nbytes


def test_a_plan_of_an_order_is_the_smaller_one(training):
    planner, whole = training
    reruns = Rematerialisation(whole, planner)
    order = list(range(len(whole[0].layout.steps)))
    assert reruns.plan(order, whole, planner.quick) is whole
    fresh = reruns.plan(order, None, planner.quick)
    assert fresh is not whole and fresh[1].nbytes >= whole[1].nbytes
    assert fresh[0].order == "depth_first, 0 steps computed again"
    best, runs = reruns.segmented(-1)
    assert again(best) == len(rerun_positions(runs)) > 0


def test_segments_are_not_tried_where_the_plan_fits_already(training):
    planner, whole = training
    best, order = Rematerialisation(whole, planner).segmented(whole[1].nbytes)
    assert best[1].nbytes <= whole[1].nbytes and order == list(range(len(whole[0].layout.steps)))
    assert again(best) == 0


def test_the_lightest_order_has_less_work_or_is_the_same(training):
    planner, whole = training
    reruns = Rematerialisation(whole, planner)
    best, order = reruns.segmented(-1)
    lighter, runs = reruns.lightest(best[1].nbytes, best, order)
    assert lighter[1].nbytes <= best[1].nbytes
    assert reruns.problem.extra(runs) < reruns.problem.extra(order) or (lighter is best and runs == order)
    smallest, shortest = reruns.smallest(best, order)
    assert smallest[1].nbytes <= best[1].nbytes and reruns.problem.extra(shortest) >= 0
    assert reruns.lightest(1, best, order) == (best, order), "nothing fits in a byte"


def test_cheap_values_are_computed_again_only_where_that_saves_enough(monkeypatch):
    """Between two products, a value times its sigmoid: of the three arrays that wait, two follow from one."""
    h = cg.Var((256, 64), name="x")
    weights = [cg.Var((64, 64), name=f"w{i}") for i in range(5)]
    for w in weights:
        h = h @ w
        h = h * cg.sigmoid(h)
    planner = planner_of()
    loss = cg.sum(h * h)
    whole = scheduled(planner, loss, *cg.gradient(loss, weights))
    reruns = Rematerialisation(whole, planner)
    choice = reruns.cheap(0.5)
    assert choice[1].nbytes < WORTH * whole[1].nbytes and choice[0].order.startswith("eager, ") and again(choice) > 0
    assert reruns.cheap(0.0) is whole
    monkeypatch.setattr(fit_reruns, "WORTH", choice[1].nbytes / whole[1].nbytes - 1e-9)
    assert reruns.cheap(0.5) is whole


def stand_in(steps: int, nbytes: int = 100) -> Rematerialisation:
    """Reruns of a graph of so many steps whose plan has so many bytes; a test gives its orders and plans."""
    reruns = object.__new__(Rematerialisation)
    reruns.whole = SimpleNamespace(layout=SimpleNamespace(steps=range(steps))), Plan((), nbytes)
    reruns.planner = SimpleNamespace(
        quick=None, strategy=None, alignment=64, smallest=lambda ways: (ways[0], Plan((), 10**9))
    )
    return reruns


GROWING = [2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38]


@pytest.mark.parametrize(
    ("steps", "nbytes", "sizes", "tried", "order"),
    [
        (38, -1, {n: 100 - n for n in GROWING}, GROWING, 38),
        (37, -1, {n: 100 - n for n in GROWING}, GROWING[:-1], 29),
        (38, -1, {}, GROWING[:4], None),
        (38, 95, {n: 100 - n for n in GROWING}, GROWING[:4], 5),
        (38, 100, {n: 100 - n for n in GROWING}, [], None),
        (38, -1, {2: 99, 6: 90}, GROWING[:9], 6),
        (1, -1, {}, [], None),
    ],
    ids=[
        "always smaller",
        "no more than steps",
        "never smaller",
        "it fits",
        "the whole graph fits",
        "again",
        "one step",
    ],
)
def test_segments_grow_by_a_third_until_a_plan_fits_or_four_in_a_row_are_no_smaller(
    steps, nbytes, sizes, tried, order, monkeypatch
):
    reruns, asked = stand_in(steps), []
    monkeypatch.setattr(fit_reruns, "in_segments", lambda layout, n: asked.append(n) or [n])

    def plan(order, best, strategy):
        size = sizes.get(order[0], 100)
        return (order, Plan((), size)) if size < best[1].nbytes else best

    reruns.plan = plan
    best, found = reruns.segmented(nbytes)
    assert asked == tried and found == (list(range(steps)) if order is None else [order])
    assert best[1].nbytes == (100 if order is None else sizes[order])


@pytest.mark.parametrize(
    ("sizes", "works", "limits", "is_lighter"),
    [
        ([1000], [5], [1000], True),
        ([1100, 1010, 1000], [5, 5, 5], [1000, 900, 836], True),
        ([1001] * 4, [5] * 4, [1000, 936, 872, 808], False),
        ([1100], [5, None], [1000, 900], False),
        ([1100], [5, 10], [1000, 900], False),
        ([], [10], [1000], False),
    ],
)
def test_a_lighter_order_is_asked_for_with_fewer_bytes_until_its_plan_fits(
    sizes, works, limits, is_lighter, monkeypatch
):
    """The known order has 10 units of extra work; an order without less ends the search, and so does the fourth try."""
    reruns, asked = stand_in(3), []
    reruns.problem = SimpleNamespace(extra=len, cost=(1, 1, 1))

    def least_work(problem, most, starts):
        asked.append(most)
        assert [list(start) for start in starts] == [[0] * 10, [0, 1, 2]]
        work = works[len(asked) - 1]
        return None if work is None else [1] * work

    monkeypatch.setattr(fit_reruns, "least_work", least_work)
    plans = iter(sizes)
    reruns.plan = lambda order, best, strategy: ("lighter", Plan((), next(plans)))
    best = "best", Plan((), 990)
    found, order = reruns.lightest(1000, best, [0] * 10)
    assert asked == limits
    assert (found, order) == ((("lighter", Plan((), 1000)), [1] * 5) if is_lighter else (best, [0] * 10))
