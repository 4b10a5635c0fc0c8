"""greedy_by_size_blocks: largest operand first, in the block that was in use most recently or will be soonest.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, section 4.3.
Time O(k n log n) for k blocks; no bound on the distance to the optimum.

The paper's pseudo-code takes the smallest free block; its figures for MobileNet v1, v2, DeepLab and PoseNet come from
this rule, which was found by trial: of operands of equal size those that fit a block go first, each into the block
closest in
time, and only when none fits the earliest opens a new block.
"""

from itertools import groupby

import numpy as np

from cgraph.memory.blocks import BlockBuffers
from cgraph.memory.problem import Plan, Problem


def greedy_by_size_blocks(problem: Problem) -> Plan:
    """Fill blocks in falling order of size; inside one size by first step, then by position."""
    blocks = BlockBuffers(problem)
    sizes = problem.nbytes.tolist()
    order = np.lexsort((problem.first, -problem.nbytes)).tolist()
    for nbytes, group in groupby(order, key=sizes.__getitem__):
        if nbytes:
            _fill(blocks, list(group))
    return blocks.plan("greedy_by_size_blocks")


def _fill(blocks: BlockBuffers, group: list[int]) -> None:
    """Place operands of one size. Filling never frees a block, so after a new block only that one can fit the
    others.
    """
    waiting = []
    for i in group:
        block = blocks.closest(i)
        if block < 0:
            waiting.append(i)
        else:
            blocks.put(i, block)
    while waiting:
        block = blocks.open(waiting[0])
        refused = []
        for i in waiting[1:]:
            if blocks.fits(i, block):
                blocks.put(i, block)
            else:
                refused.append(i)
        waiting = refused
