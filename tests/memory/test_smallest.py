"""Which uses of the permission to make parts in place are tried, and which is kept."""

from functools import partial

from hypothesis import given, settings

import cgraph as cg
from cgraph.memory.auto import auto
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.smallest import Candidate, candidates, chains_of, join_where_free, smaller, smallest
from cgraph.memory.strategies import STRATEGIES
from cgraph.memory.usage import StepValue, usage_of
from tests.memory.test_usage import many_values
from tests.support.planned import planned
from tests.support.problems import random_problem


class Counted:
    """A strategy that counts its calls. Changes: `calls`."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, problem: Problem) -> Plan:
        self.calls += 1
        return auto(problem, nodes=0)


def value(step: int, nbytes: int, last: int, *parts: int) -> StepValue:
    """A value of so many bytes; `parts` lie in it one after another, each of 64 bytes."""
    return StepValue(nbytes, step, f"v{step}", last, parts=tuple((x, 64 * i) for i, x in enumerate(parts)))


def test_chains_are_results_that_share_bytes():
    values = [
        value(0, 64, 2), value(1, 64, 2), value(2, 128, 5, 0, 1), value(3, 64, 4), value(4, 64, 9, 3),
        value(5, 128, 9, 2), value(6, 64, 9), value(7, 64, 9, 6),
    ]  # fmt: skip
    assert chains_of(values) == [[2, 5], [4], [7]]
    values[7].parts = ((6, 0), (1, 0))
    assert chains_of(values) == [[2, 5, 7], [4]]
    assert chains_of([value(0, 64, 1)]) == []


def test_there_is_a_second_way_where_parts_can_be_made_in_place():
    plain, joined = cg.sin(cg.Var((64,))), cg.concat([cg.sin(cg.Var((64,))), cg.exp(cg.Var((64,)))])
    assert len(candidates("depth_first", planned(plain).layout, 64)) == 1
    with_parts, without = candidates("depth_first", planned(joined).layout, 64)
    assert any(x >= 0 for x in with_parts.usage.inside) and not any(x >= 0 for x in without.usage.inside)


def way(values: list[StepValue], join: bool) -> Candidate:
    return Candidate("depth_first", None, usage_of(values, 64, True, join))


EARLY = [value(0, 64, 3), value(1, 256, 1), value(2, 64, 3), value(3, 128, 4, 0, 2)]  # the result from step 0 on costs
LATE = [value(0, 64, 2), value(1, 64, 2), value(2, 128, 3, 0, 1)]


def test_the_way_of_fewest_bytes_is_taken_and_the_first_of_equals():
    ways = [way(EARLY, True), way(EARLY, False)]
    best, plan = smallest(ways, STRATEGIES["greedy_by_size"])
    assert plan.nbytes == min(lower_bound(w.usage.problem) for w in ways) < lower_bound(ways[0].usage.problem)
    alike = [way(LATE, True), way(LATE, True)]
    assert smallest(alike, auto)[0] is alike[0]
    assert smaller((alike[0], Plan((), 8)), (alike[1], Plan((), 8)))[0] is alike[0]
    assert smaller((alike[0], Plan((), 8)), (alike[1], Plan((), 7)))[0] is alike[1]


def test_auto_searches_once_where_the_cheap_plans_miss_the_bound():
    problem = random_problem(33, 25)
    spans = [x.interval for x in problem.operands]
    values = [StepValue(x.nbytes, s.first, x.name, s.last) for x, s in zip(problem.operands, spans)]
    only = Candidate("depth_first", None, usage_of(values, problem.alignment))
    assert only.usage.problem.nbytes.tolist() == problem.nbytes.tolist()
    found, cheap = smallest([only], auto)[1], auto(problem, nodes=0)
    assert lower_bound(problem) <= found.nbytes < cheap.nbytes
    assert smallest([only], partial(auto, nodes=0))[1].nbytes == cheap.nbytes


def test_a_way_whose_bound_is_no_better_is_not_planned():
    ways = [way(LATE, True), way(LATE, True), way(LATE, False)]
    counted = Counted()
    smallest(ways, counted)
    assert counted.calls == 1


def test_parts_are_made_in_place_where_the_plan_stays_as_small():
    later = [
        StepValue(v.nbytes, v.step + 5, v.name, v.last + 5, parts=tuple((x + 4, at) for x, at in v.parts)) for v in LATE
    ]
    both = [*EARLY, *later]
    known = way(both, False)
    plan = auto(known.usage.problem)
    found, better = join_where_free((known, plan), partial(auto, nodes=0))
    assert better.nbytes <= plan.nbytes
    assert found.usage.inside == [-1, -1, -1, -1, 6, 6, -1]


def test_a_plan_that_is_larger_for_parts_in_place_is_not_taken():
    """A bound promises nothing: the strategy may miss it."""
    separate = way(LATE, False)
    plan = auto(separate.usage.problem)
    larger = Plan(plan.offsets, plan.nbytes + 1)
    assert join_where_free((separate, plan), lambda problem: larger) == (separate, plan)
    equal = Plan(plan.offsets, plan.nbytes)
    assert join_where_free((separate, plan), lambda problem: equal)[1] is equal


def test_of_a_chain_whose_first_half_costs_bytes_the_second_is_made_in_place():
    """The first concat's bytes would lie beside the large value; those of the concat around it do not."""
    values = [
        value(0, 64, 3), value(1, 512, 1), value(2, 64, 3), value(3, 128, 5, 0, 2), value(4, 64, 5), value(5, 192, 6)
    ]  # fmt: skip
    values[5].parts = ((3, 0), (4, 128))
    separate = way(values, False)
    plan = auto(separate.usage.problem)
    found, better = join_where_free((separate, plan), partial(auto, nodes=0))
    assert chains_of(values) == [[3, 5]] and better.nbytes <= plan.nbytes == 576
    assert found.usage.inside == [-1, -1, -1, 5, 5, -1]


def test_nothing_is_tried_where_parts_lie_in_place_or_there_are_none():
    counted = Counted()
    for known in (way(LATE, True), way([value(0, 64, 1), value(1, 64, 1)], True)):
        plan = auto(known.usage.problem)
        assert join_where_free((known, plan), counted) == (known, plan)
    assert counted.calls == 0


@settings(max_examples=100)
@given(values=many_values())
def test_no_plan_is_larger_for_parts_in_place(values):
    ways = [way(values, join) for join in (True, False)]
    found, plan = smallest(ways, auto)
    assert plan.nbytes <= min(auto(w.usage.problem, nodes=0).nbytes for w in ways)
    assert len(plan.offsets) == len(found.usage.problem.operands)
    known = ways[1], auto(ways[1].usage.problem)
    assert join_where_free(known, auto)[1].nbytes <= known[1].nbytes


def test_where_no_part_can_be_made_in_place_the_plan_stays_the_one_that_was_there():
    separate = way(EARLY, False)
    plan = auto(separate.usage.problem)
    assert way(EARLY, True).bound > plan.nbytes
    found, better = join_where_free((separate, plan), lambda problem: Plan(plan.offsets, plan.nbytes))
    assert found is separate and better is plan
