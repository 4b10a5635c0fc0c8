"""greedy_by_breadth_blocks: operands of the broadest operator first, each in the block that wastes least.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, algorithm 1. Ties as in `greedy_by_breadth`.
Time O(k n log n) for k blocks; no bound on the distance to the optimum.
"""

from cgraph.memory.blocks import BlockBuffers
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.strategies.greedy_by_breadth import breadth_order


def greedy_by_breadth_blocks(problem: Problem) -> Plan:
    """Choose the smallest free block that is large enough, else the largest free one, which grows, else a new one."""
    blocks = BlockBuffers(problem)
    sizes = problem.nbytes.tolist()
    for i in breadth_order(problem):
        if not sizes[i]:
            continue
        block = _least_waste(blocks, i, sizes[i])
        if block < 0:
            blocks.open(i)
        else:
            blocks.put(i, block)
    return blocks.plan("greedy_by_breadth_blocks")


def _least_waste(blocks: BlockBuffers, i: int, nbytes: int) -> int:
    """Return the best free block by (large enough, nearest in size, lowest); -1 if none is free."""
    best, best_key = -1, (False, 0)
    for block, size in enumerate(blocks.sizes):
        key = (size >= nbytes, -abs(size - nbytes))
        if (best < 0 or key > best_key) and blocks.fits(i, block):
            best, best_key = block, key
    return best
