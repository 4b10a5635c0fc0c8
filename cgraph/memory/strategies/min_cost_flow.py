"""min_cost_flow: assign each operand's block to a later operand, so that blocks grow least in total.

A flow sends each operand a block: a new one at the cost of its bytes, or that of an operand whose usage interval has
ended, at the cost of the bytes by which it is too small. Each operand passes its block on once. The cheapest flow is
the assignment of predecessors that saves most; passing on saves the smaller of the two sizes. Growth is counted from
the last operand, not from the block, so the cheapest flow need not be the smallest plan.

Source: Lee et al. 2019, arXiv:1907.01989, section 4.2; Pisarchyk and Lee 2020, arXiv:2001.03288, table 1. Many flows
are equally cheap and differ in bytes; the one that SciPy's solver finds gives the published figures of MobileNet v1,
v2, DeepLab and PoseNet.
Time O(n^3), and n^2 numbers in memory; no bound on the distance to the optimum.
"""

import numpy as np

from cgraph.memory.blocks import blocks_plan
from cgraph.memory.problem import Plan, Problem


def min_cost_flow(problem: Problem) -> Plan:
    """Follow the blocks from operand to operand, in running order."""
    sizes = problem.nbytes.tolist()
    giver = _givers(problem)
    block_of = [-1] * len(sizes)
    count = 0
    for i in np.argsort(problem.first, kind="stable").tolist():
        if giver[i] >= 0:
            block_of[i] = block_of[giver[i]]
        elif sizes[i]:
            block_of[i] = count
            count += 1
    return blocks_plan(problem, block_of, "min_cost_flow")


def _givers(problem: Problem) -> list[int]:
    """Return, for each operand, the one that passes it its block, or -1 if the block is new."""
    from scipy.optimize import linear_sum_assignment

    if not problem.operands:
        return []
    has_ended = problem.last < problem.first[:, None]  # [operand, giver]
    saved = np.minimum(problem.nbytes[:, None], problem.nbytes) * has_ended
    receivers, givers = linear_sum_assignment(saved, maximize=True)
    pays = saved[receivers, givers] > 0
    giver = np.full(len(saved), -1)
    giver[receivers[pays]] = givers[pays]
    return giver.tolist()
