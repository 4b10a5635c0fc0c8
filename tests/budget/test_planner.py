"""Settings of all plans of a graph: alignment, strategy, and the strategy without its exact search."""

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.memory.auto import auto
from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.memory.strategies.one_each import one_each
from tests.support.schedules import planner_of


def one_step_later(problem: Problem) -> Plan:
    return one_each(problem)


def test_only_auto_has_a_quicker_form():
    for strategy in (one_each, one_step_later):
        planner = planner_of(strategy)
        assert not planner.is_auto and planner.quick is strategy
    planner = planner_of()
    assert planner.is_auto and planner.quick is not auto
    rows = [(3, 0, 1), (5, 1, 2), (4, 2, 3), (6, 3, 4), (2, 0, 4)]
    problem = Problem(tuple(ProblemOperand(64 * n, UsageInterval(a, b)) for n, a, b in rows), 64)
    assert planner.quick(problem) == auto(problem, nodes=0)


def test_candidates_have_the_alignment_and_the_name_of_their_order():
    x = cg.Var((3,), name="x")
    y = cg.cumsum(x, 0)
    for alignment in (64, 256):
        planner = planner_of()
        planner = type(planner)(one_each, alignment, planner.facts)
        layout = planner.layout(post_order((y + 1, y)), (y + 1, y), ())
        ways = planner.candidates("an order", layout)
        assert {way.order for way in ways} == {"an order"} and all(way.layout is layout for way in ways)
        assert {way.usage.problem.alignment for way in ways} == {alignment}
        assert planner.smallest(ways)[1].nbytes == 2 * alignment


def test_a_layout_has_its_outputs_stored_values_and_rows():
    x = cg.Var((1, 4, 6, 5), name="x")
    y = cg.relu(x)
    z = cg.max_pool2d(y, 3, 1, pad=1)
    planner = planner_of()
    layout = planner.layout(post_order((z,)), (z,), (y,))
    assert layout.lasting == (z,) and layout.always == {y} and list(layout.steps) == [y, z]
    assert layout.views[y].strides[1] > layout.views[y].strides[2]
    by_rows = planner.layout(post_order((z,)), (z,), (), {y})
    assert by_rows.views[y].strides[2] > by_rows.views[y].strides[1], "row by row"
    assert by_rows.views[z].strides[1] > by_rows.views[z].strides[2]
