"""That compile asks its checkers, and that limits are kept: each checker and limit is tested alone elsewhere."""

import re

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget import planner
from cgraph.errors import BudgetError, GraphError, PlanError
from cgraph.memory.auto import auto
from cgraph.memory.incremental import IncrementalPlan
from cgraph.memory.layout import Layout
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.strategies import STRATEGIES
from cgraph.planning import plan as planning
from cgraph.record import replace


def graph() -> tuple[cg.Var, cg.Node]:
    """Two values that are in use together, and a third one."""
    x = cg.Var((64,), name="x")
    y = cg.cumsum(x, 0)
    return x, cg.cumsum(y, 0) * cg.sort(y) + cg.sum(y)


def at_zero(problem: Problem) -> Plan:
    """Everything at the arena's begin."""
    largest = max(x.nbytes for x in problem.operands)
    return Plan((0,) * len(problem.operands), largest, "at_zero")


def too_small(problem: Problem) -> Plan:
    """An arena that ends one alignment early."""
    plan = auto(problem)
    return replace(plan, nbytes=plan.nbytes - problem.alignment)


def crooked(problem: Problem) -> Plan:
    """Everything a byte further on."""
    plan = auto(problem)
    return replace(plan, offsets=tuple(at + 1 for at in plan.offsets), nbytes=plan.nbytes + problem.alignment)


def short(problem: Problem) -> Plan:
    """One offset too few."""
    plan = auto(problem)
    return replace(plan, offsets=plan.offsets[:-1])


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("strategy", [at_zero, too_small, crooked])
def test_an_unsound_plan_is_refused(strategy, passes):
    x, y = graph()
    with pytest.raises(PlanError):
        cg.compile(y, [x], memory=strategy, passes=passes)


def test_an_unsound_plan_is_refused_when_values_are_computed_again():
    x, y = graph()
    with pytest.raises(PlanError):
        cg.compile(cg.gradient(cg.sum(y), x), [x], memory=at_zero, recompute=True)


def test_a_plan_without_all_offsets_is_refused():
    x, y = graph()
    with pytest.raises((PlanError, IndexError)):
        cg.compile(y, [x], memory=short)


def test_places_that_a_step_spoils_are_refused(monkeypatch):
    """The plan is sound; the views that are made of it are not."""
    place = Layout.place

    def moved(self, usage, plan):
        views = place(self, usage, plan)
        return dict(views) | {node: views[self.steps[0]] for node in self.steps if node.spec == self.steps[0].spec}

    monkeypatch.setattr(Layout, "place", moved)
    x, y = graph()
    with pytest.raises(PlanError):
        cg.compile(y, [x])


def test_what_must_stay_for_later_runs_is_checked(monkeypatch):
    """`changing` asks for bytes that nobody else uses; a layout that forgets it is refused."""
    x, w = cg.Var((64,), name="x"), cg.Var((64,), name="w")
    y = cg.cumsum(cg.sort(cg.cumsum(w, 0)), 0) * cg.cumsum(cg.sort(x), 0)
    layout = planner.layout_of
    monkeypatch.setattr(planner, "layout_of", lambda order, ends, always, *more: layout(order, ends, (), *more))
    asked = []
    check = planning.check_replay
    monkeypatch.setattr(planning, "check_replay", lambda *given: asked.append(given[-1]) or check(*given))
    with pytest.raises(PlanError):
        cg.compile(cg.sum(y), changing=[x])
    assert len(asked[0]) == 1


def test_beyond_a_number_of_steps_places_are_not_replayed(monkeypatch):
    calls = []
    monkeypatch.setattr(planning, "check_replay", lambda *given: calls.append(len(given[0])))
    x, y = graph()
    steps = len(cg.compile(y, [x]).compiled.layout.steps)
    assert calls == [steps]
    monkeypatch.setattr(planning, "MOST_REPLAYED", steps)
    cg.compile(y, [x])
    assert calls == [steps, steps]
    monkeypatch.setattr(planning, "MOST_REPLAYED", steps - 1)
    cg.compile(y, [x])
    assert calls == [steps, steps]


def test_a_graph_that_is_not_well_formed_is_refused():
    x, y = graph()
    y.operands[0].serial, serial = y.serial + 1, y.operands[0].serial
    try:
        with pytest.raises(GraphError, match="cycle"):
            cg.compile(y, [x])
        with pytest.raises(GraphError, match="cycle"):
            cg.compile([], updates={cg.Var((64,), name="z"): y})
    finally:
        y.operands[0].serial = serial


@pytest.mark.parametrize("memory", ["auto", *STRATEGIES])
def test_a_strategy_by_its_name_makes_the_plan(memory):
    x, y = graph()
    made = cg.compile(y, [x], memory=memory).plan.strategy
    assert made == memory or (memory == "auto" and made in STRATEGIES)


@pytest.mark.parametrize("options", [{}, {"order": "depth_first"}, {"memory": "greedy_by_size"}])
def test_the_least_budget_that_is_named_is_met_and_a_byte_less_is_refused(options):
    x, y = graph()
    with pytest.raises(BudgetError) as refusal:
        cg.compile(y, [x], budget=64, **options)
    least = int(re.search(r"the least budget of this graph is (\d+) bytes", str(refusal.value))[1])
    assert cg.compile(y, [x], budget=least, **options).plan.nbytes == least
    with pytest.raises(BudgetError):
        cg.compile(y, [x], budget=least - 1, **options)


def test_beyond_a_number_of_steps_every_run_is_a_full_one(monkeypatch):
    x, w = (cg.Var((8,), name=name).assign(np.ones(8, "float32")) for name in "xw")
    function = cg.compile(cg.cumsum(x, 0) * cg.sort(w))
    steps = function.incremental.count
    monkeypatch.setitem(IncrementalPlan.steps.__globals__, "MOST_STEPS", steps - 1)
    assert function.incremental.steps(None, frozenset()).after is None
    monkeypatch.setitem(IncrementalPlan.steps.__globals__, "MOST_STEPS", steps)
    assert function.incremental.steps(None, frozenset()).after is not None


def test_forgotten_answers_are_found_again(monkeypatch):
    monkeypatch.setattr("cgraph.system.bounded_cache.MOST_ENTRIES", 1)
    monkeypatch.setattr("cgraph.system.bounded_cache.LEAST_ENTRIES", 1)
    variables = [cg.Var((8,), name=f"v{i}").assign(np.full(8, i, "float32")) for i in range(4)]
    outputs = [cg.cumsum(v, 0) * cg.sort(w) for v, w in zip(variables, variables[1:])]
    function = cg.compile(outputs)
    function()
    for i in (0, 1, 2, 3, 1, 0, 3, 2):
        variables[i].assign(variables[i].value + 1)
        for got, want in zip(function(), cg.compile(outputs)()):
            np.testing.assert_array_equal(got, want)
        assert len(function.incremental.answers) <= 1
