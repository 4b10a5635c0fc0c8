"""Operands of the broadest operator first, then the larger, then the later one."""

import numpy as np
import pytest
from hypothesis import given

from cgraph.memory.problem import Problem, problem_of
from cgraph.memory.strategies.greedy_by_breadth import _least_in_ranges, breadth_order, greedy_by_breadth
from tests.support.problems import problems


def test_operands_come_by_the_breadth_of_their_broadest_operator():
    """Steps have 3, 8, 9 and 4 bytes in use: step 2 first, then step 1, then the rest."""
    problem = problem_of([(3, 0, 1), (5, 1, 2), (4, 2, 3)])
    assert breadth_order(problem) == [1, 2, 0]
    assert greedy_by_breadth(problem).offsets == (5, 0, 5) and greedy_by_breadth(problem).nbytes == 9
    assert greedy_by_breadth(problem).strategy == "greedy_by_breadth"


def test_of_one_operator_the_larger_comes_first_and_of_equals_the_later():
    assert breadth_order(problem_of([(2, 0, 0), (5, 0, 0), (2, 0, 0)])) == [1, 2, 0]
    assert breadth_order(problem_of([])) == []


@given(problem=problems())
def test_every_operand_comes_once_and_breadths_fall(problem: Problem):
    order = breadth_order(problem)
    assert sorted(order) == list(range(len(problem.operands)))
    broadest = [max(breadth(problem, step) for step in ends(problem, i)) for i in order]
    assert broadest == sorted(broadest, reverse=True)


def breadth(problem: Problem, step: int) -> int:
    return int(problem.nbytes[(problem.first <= step) & (problem.last >= step)].sum())


def ends(problem: Problem, i: int) -> list[int]:
    """Steps inside the interval of operand i where another one, or it, begins or ends."""
    steps = {*problem.first.tolist(), *problem.last.tolist()}
    return [s for s in steps if problem.first[i] <= s <= problem.last[i]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
def test_the_least_of_every_range(count):
    values = np.random.default_rng(count).permutation(count)
    first, last = np.array([(a, b) for a in range(count) for b in range(a, count)]).T
    least = [values[a : b + 1].min() for a, b in zip(first, last)]
    assert _least_in_ranges(values, first, last).tolist() == least
