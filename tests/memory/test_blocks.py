"""Blocks that operands reuse: sizes are those of the largest operand, in whichever order operands are put."""

from itertools import permutations

import pytest

from cgraph.memory.blocks import BlockBuffers, blocks_plan
from cgraph.memory.problem import problem_of

ROWS = [(9, 0, 1), (4, 3, 4), (6, 6, 6)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_block_has_the_size_of_its_largest_operand(order):
    blocks = BlockBuffers(problem_of(ROWS))
    block = blocks.open(order[0])
    so_far = ROWS[order[0]][0]
    assert blocks.sizes == [so_far]
    for i in order[1:]:
        blocks.put(i, block)
        so_far = max(so_far, ROWS[i][0])
        assert blocks.sizes == [so_far]
    assert blocks.block_of == [0, 0, 0]


def test_a_block_is_free_only_between_its_operands():
    blocks = BlockBuffers(problem_of([*ROWS, (1, 2, 2), (1, 1, 2), (1, 4, 5), (1, 7, 9), (1, 2, 6)]))
    block = blocks.open(0)
    for i in (1, 2):
        blocks.put(i, block)
    assert [blocks.idle(i, block) for i in range(3, 8)] == [1, -1, -1, 1, -1]
    assert [blocks.fits(i, block) for i in range(3, 8)] == [True, False, False, True, False]


def test_the_closest_of_free_blocks_is_the_first_of_equals():
    blocks = BlockBuffers(problem_of([(1, 2, 2), (1, 2, 2), (1, 0, 0), (1, 4, 4), (1, 6, 6), (1, 2, 2)]))
    for i in (0, 1):
        blocks.open(i)
    assert [blocks.closest(i) for i in (2, 3, 5)] == [0, 0, -1]
    blocks.put(4, 1)
    assert blocks.closest(3) == 0
    blocks.put(3, 1)
    assert blocks.closest(2) == 0 and BlockBuffers(problem_of([(1, 0, 0)])).closest(0) == -1


def test_an_operand_of_no_bytes_lies_at_the_beginning():
    plan = blocks_plan(problem_of([(9, 0, 1), (0, 0, 1), (5, 0, 1), (7, 2, 2)]), [0, -1, 1, 1], "mine")
    assert plan.offsets == (0, 0, 9, 9) and (plan.nbytes, plan.strategy) == (16, "mine")
    assert blocks_plan(problem_of([(0, 0, 1)]), [-1], "mine").nbytes == 0
