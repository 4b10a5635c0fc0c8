"""greedy_in_order: operands in running order, each in the smallest gap where it fits.

Source: Lee et al. 2019, arXiv:1907.01989, as measured by Pisarchyk and Lee 2020, arXiv:2001.03288, table 2 ("Greedy").
Time O(n log n) and the pairs of operands that meet; no bound on the distance to the optimum.
"""

import numpy as np

from cgraph.memory.gap_search import place_each
from cgraph.memory.problem import Plan, Problem


def greedy_in_order(problem: Problem) -> Plan:
    """Place operands by rising first step; ties by position."""
    order = np.argsort(problem.first, kind="stable").tolist()
    return place_each(problem, order, "greedy_in_order")
