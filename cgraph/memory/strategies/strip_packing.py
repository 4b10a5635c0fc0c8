"""strip_packing: fill the lowest line of the skyline with the longest operand that fits between its walls.

Steps go across, bytes upwards. The skyline starts as one line at the bottom; each round takes its lowest line (the
leftmost of equals) and, of the operands whose usage interval lies inside it, places the longest (the earliest of
equals) there. If none fits, the line rises to its lower neighbour.

Source: Sekiyama et al. 2018, arXiv:1804.10001 (best fit); Pisarchyk and Lee 2020, arXiv:2001.03288, table 2.
Time O(n) rounds, each O(k + w) for k lines and w operands that start inside the lowest, in compiled code; no bound on
the distance to the optimum.
"""

import numpy as np

from cgraph.kernels.placing.signature import FAR, IN_LINES, VECTOR
from cgraph.memory.bounds import start_ranks
from cgraph.memory.gap_search import plan_of, run_pieces, scatter
from cgraph.memory.problem import Plan, Problem


def strip_packing(problem: Problem) -> Plan:
    """Place operands line by line, from the bottom. A column is a starting step."""
    first, last = (np.array(x, np.int64) for x in start_ranks(problem))
    order = np.argsort(problem.first, kind="stable")
    order = order[problem.nbytes[order] > 0]
    columns, offsets = len(problem.starts), np.zeros(len(order), np.int64)
    lines = np.full((2, columns + 2 + VECTOR), FAR)
    lines[:, 1], lines[0, 2] = 0, columns
    run_pieces(
        IN_LINES, len(order), nbytes=problem.nbytes[order], first=first[order], last=pad(last[order]),
        shortness=pad((problem.first - problem.last)[order]), offsets=offsets,
        operands=np.searchsorted(first[order], np.arange(columns + 1)),
        line_count=np.ones(1, np.int64), lines=lines, room=lines.shape[1],
    )  # fmt: skip
    return plan_of(problem, scatter(offsets, order, len(first)), "strip_packing")


def pad(x: np.ndarray) -> np.ndarray:
    """Return an array with a vector appended."""
    return np.concatenate((x, np.full(VECTOR, FAR)))
