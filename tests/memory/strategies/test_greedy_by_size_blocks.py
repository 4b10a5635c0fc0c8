"""Largest operands first; of equal ones those that fit a block, closest in time, before a block is opened."""

from cgraph.memory.problem import problem_of
from cgraph.memory.strategies.greedy_by_size_blocks import greedy_by_size_blocks


def test_the_block_closest_in_time_is_reused_and_the_lowest_of_equals():
    """The small operand lies three steps from block 0 and one from block 1."""
    rows = [(9, 0, 0), (8, 0, 2), (1, 3, 3)]
    assert greedy_by_size_blocks(problem_of(rows)).offsets == (0, 9, 9)
    assert greedy_by_size_blocks(problem_of([(9, 0, 2), (8, 1, 2), (1, 3, 3)])).offsets == (0, 9, 0)


def test_of_equal_operands_those_that_fit_a_block_go_first():
    """The first of the small ones meets the block; the second takes it, then the first opens its own."""
    plan = greedy_by_size_blocks(problem_of([(9, 0, 1), (4, 1, 3), (4, 3, 4)]))
    assert plan.offsets == (0, 9, 0) and plan.nbytes == 13
    plan = greedy_by_size_blocks(problem_of([(4, 1, 3), (4, 3, 4), (4, 4, 5), (0, 0, 9)]))
    assert plan.offsets == (0, 4, 0, 0) and plan.nbytes == 8 and plan.strategy == "greedy_by_size_blocks"
