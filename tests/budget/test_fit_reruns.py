"""Plans that compute forward values again: the fewest segments that fit, the least work, cheap values, same bits."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget import fit_reruns
from cgraph.budget.fit_reruns import WORTH, Rematerialisation, rematerialise
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
