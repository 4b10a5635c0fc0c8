"""Blocks that operands reuse: sizes are those of the largest operand, in whichever order operands are put."""

from itertools import permutations

import pytest

from cgraph.memory.blocks import BlockBuffers
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
