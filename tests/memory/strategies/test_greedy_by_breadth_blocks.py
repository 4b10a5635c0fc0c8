"""The block that wastes least: large enough first, then the nearest in size, then the lowest."""

from cgraph.memory.blocks import BlockBuffers
from cgraph.memory.problem import problem_of
from cgraph.memory.strategies.greedy_by_breadth_blocks import _least_waste, greedy_by_breadth_blocks

ROWS = [(4, 0, 0), (8, 0, 0), (4, 0, 0), (9, 0, 5), (1, 2, 2)]


def test_the_smallest_free_block_that_is_large_enough_else_the_largest_free_one():
    blocks = BlockBuffers(problem_of(ROWS))
    assert _least_waste(blocks, 4, 1) == -1
    for i in range(4):
        blocks.open(i)
    assert [_least_waste(blocks, 4, nbytes) for nbytes in (1, 4, 5, 8, 9, 20)] == [0, 0, 1, 1, 1, 1]


def test_operands_of_a_broad_step_open_blocks_and_others_reuse_them():
    plan = greedy_by_breadth_blocks(problem_of(ROWS))
    at = plan.offsets
    assert plan.nbytes == 25 and at[4] in (at[0], at[2]) and plan.strategy == "greedy_by_breadth_blocks"
    grown = greedy_by_breadth_blocks(problem_of([(4, 0, 1), (3, 0, 1), (5, 2, 2), (0, 0, 9)]))
    assert grown.offsets == (0, 5, 0, 0) and grown.nbytes == 8
