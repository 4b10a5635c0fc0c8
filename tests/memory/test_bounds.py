import numpy as np
from hypothesis import given

from cgraph.memory.bounds import (
    block_lower_bound,
    lower_bound,
    operator_breadths,
    operator_profiles,
    positional_maximums,
)
from cgraph.memory.problem import problem_of
from tests.support.problems import problems

PAPER = problem_of([(32, 0, 1), (28, 1, 4), (36, 2, 5), (16, 3, 3), (8, 4, 5), (64, 6, 7)])


def test_breadth_is_the_sum_of_a_profile():
    steps, breadths = operator_breadths(PAPER)
    assert steps.tolist() == [0, 1, 2, 3, 4, 6]
    assert breadths.tolist() == [32, 60, 64, 80, 72, 64]
    assert lower_bound(PAPER) == 36 + 28 + 16


def test_positional_maximums_are_columns_of_sorted_profiles():
    assert positional_maximums(PAPER) == [64, 28, 16]
    assert block_lower_bound(PAPER) == 64 + 28 + 16


@given(problem=problems())
def test_bounds_equal_their_definition(problem):
    nbytes = problem.nbytes.tolist()
    profiles = [
        sorted((nbytes[i] for i in range(len(nbytes)) if problem.first[i] <= step <= problem.last[i]), reverse=True)
        for step in range(14)
    ]
    assert lower_bound(problem) == max(map(sum, profiles))
    columns = [[p[k] for p in profiles if k < len(p)] for k in range(max(map(len, profiles)))]
    assert positional_maximums(problem) == [m for m in map(max, columns) if m]


@given(problem=problems())
def test_profiles_add_up_to_breadths(problem):
    sums = [int(problem.nbytes[profile].sum()) for profile in operator_profiles(problem)]
    assert sums == operator_breadths(problem)[1].tolist()


def test_bounds_of_huge_steps_and_sizes_are_exact():
    problem = problem_of([(2**60 - 1, 0, 10**15), (2**60, 10**15, 10**18)])
    assert lower_bound(problem) == 2**61 - 1
    assert positional_maximums(problem) == [2**60, 2**60 - 1]
    assert np.array_equal(operator_breadths(problem)[0], [0, 10**15])


def test_a_problem_without_operands_needs_nothing():
    assert lower_bound(problem_of([])) == 0
    assert block_lower_bound(problem_of([])) == 0
