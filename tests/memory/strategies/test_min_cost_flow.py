"""Blocks are passed on so that most bytes are saved, as trying every assignment has it."""

from itertools import permutations

import pytest

from cgraph.memory.problem import problem_of
from cgraph.memory.strategies.min_cost_flow import _givers, min_cost_flow
from tests.support.problems import random_problem


@pytest.mark.parametrize("seed", range(15))
def test_givers_save_the_most_bytes_and_give_once_after_they_ended(seed):
    rows = [
        (int(n), int(a), int(b)) for n, a, b in zip(*(lambda p: (p.nbytes, p.first, p.last))(random_problem(seed, 6)))
    ]

    def saved(i: int, k: int) -> int:
        return min(rows[i][0], rows[k][0]) if rows[k][2] < rows[i][1] else 0

    most = max(sum(saved(i, k) for i, k in enumerate(order)) for order in permutations(range(6)))
    givers = _givers(problem_of(rows))
    chosen = [(i, k) for i, k in enumerate(givers) if k >= 0]
    assert sum(saved(i, k) for i, k in chosen) == most and all(saved(i, k) for i, k in chosen)
    assert len({k for _, k in chosen}) == len(chosen)


def test_an_operand_has_the_block_of_its_giver_which_is_as_large_as_its_largest():
    plan = min_cost_flow(problem_of([(4, 0, 0), (3, 0, 1), (6, 1, 2), (2, 2, 3)]))
    assert plan.offsets == (0, 6, 0, 6) and plan.nbytes == 9 and plan.strategy == "min_cost_flow"


def test_a_block_is_free_from_the_step_after_its_operand_on():
    assert min_cost_flow(problem_of([(4, 0, 1), (4, 1, 1)])).nbytes == 8
    assert min_cost_flow(problem_of([(4, 0, 1), (4, 2, 2)])).nbytes == 4
    assert min_cost_flow(problem_of([])).nbytes == 0 == min_cost_flow(problem_of([(0, 0, 1), (0, 2, 2)])).nbytes
