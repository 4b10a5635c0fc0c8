"""Repeated first fit of groups: ties keep their distances, whichever operand is tied."""

import pytest

from cgraph.memory.bounds import lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Problem, Tie, problem_of
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.memory.strategies.squeaky_wheel import squeaky_wheel
from cgraph.record import replace


def tied(rows: list[tuple[int, int, int]], *ties: tuple[tuple[int, int], ...], alignment: int = 1) -> Problem:
    return replace(problem_of(rows, alignment), ties=tuple(tuple(Tie(*tie) for tie in each) for each in ties))


@pytest.mark.parametrize("at", [(0, 4), (-4, 0), (4, 0), (9, 5), (-7, 3)])
def test_tied_operands_keep_their_distance_wherever_their_origin_lies(at):
    """Between them are two that are not tied, so that numbers of groups and of operands differ."""
    problem = tied([(4, 0, 2), (3, 0, 1), (5, 1, 3), (4, 1, 2)], ((3, at[0]), (0, at[1])))
    plan = squeaky_wheel(problem)
    check_plan(problem, plan)
    assert plan.offsets[3] - plan.offsets[0] == at[0] - at[1] and min(plan.offsets) == 0
    assert plan.nbytes == max(x + y.nbytes for x, y in zip(plan.offsets, problem.operands))


def test_two_groups_of_ties_move_apart():
    rows = [(2, 0, 1), (2, 0, 1), (2, 0, 1), (2, 0, 1)]
    plan = squeaky_wheel(tied(rows, ((0, 0), (2, 2)), ((3, 0), (1, 2))))
    at = plan.offsets
    assert at[2] - at[0] == 2 == at[1] - at[3] and sorted(at) == [0, 2, 4, 6] and plan.nbytes == 8


def test_the_bound_is_reached_where_one_order_by_size_does_not_reach_it():
    problem = problem_of([(2, 3, 5), (4, 2, 3), (2, 3, 5), (2, 4, 6), (2, 0, 0), (3, 4, 5)])
    plan = squeaky_wheel(problem)
    check_plan(problem, plan)
    assert plan.nbytes == lower_bound(problem) == 9 < greedy_by_size(problem).nbytes
    assert plan.strategy == "squeaky_wheel" and squeaky_wheel(problem_of([])).nbytes == 0
