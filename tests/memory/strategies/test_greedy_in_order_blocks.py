"""Operands in running order, each in the free block nearest in size."""

import pytest

from cgraph.memory.problem import problem_of
from cgraph.memory.strategies.greedy_in_order_blocks import greedy_in_order_blocks, nearest_in_size

FREE = [(2, 5), (4, 0), (4, 3), (8, 1)]


@pytest.mark.parametrize(("nbytes", "at"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 3), (7, 3), (8, 3), (9, 3)])
def test_of_two_equally_near_blocks_the_larger_is_reused(nbytes, at):
    assert nearest_in_size(FREE, nbytes) == at
    assert nearest_in_size([(4, 7)], nbytes) == 0


def test_a_block_that_is_too_small_grows():
    plan = greedy_in_order_blocks(problem_of([(2, 0, 0), (8, 0, 0), (4, 1, 1), (9, 1, 1)]))
    assert plan.offsets == (0, 4, 0, 4) and plan.nbytes == 13 and plan.strategy == "greedy_in_order_blocks"


def test_a_block_is_free_from_the_step_after_its_operand_on():
    assert greedy_in_order_blocks(problem_of([(4, 0, 1), (4, 1, 2), (4, 2, 3)])).offsets == (0, 4, 0)
