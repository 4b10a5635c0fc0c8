"""greedy_by_size: largest operand first, each in the smallest gap where it fits.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, algorithm 3.
Time O(n log n) and the pairs of operands that meet; no bound on the distance to the optimum.
"""

import numpy as np

from cgraph.memory.gap_search import place_each
from cgraph.memory.problem import Plan, Problem


def greedy_by_size(problem: Problem) -> Plan:
    """Place operands in falling order of size; ties by first step, then by position."""
    order = np.lexsort((problem.first, -problem.nbytes)).tolist()
    return place_each(problem, order, "greedy_by_size")
