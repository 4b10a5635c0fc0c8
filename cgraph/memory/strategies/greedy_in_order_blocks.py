"""greedy_in_order_blocks: operands in running order, each in the free block nearest in size.

Source: Lee et al. 2019, arXiv:1907.01989, section 4.2 ("Greedy"); Pisarchyk and Lee 2020, arXiv:2001.03288, table 1.
Time O(n log n); no bound on the distance to the optimum.
"""

from bisect import bisect_left

from cgraph.memory.pool import run_in_order
from cgraph.memory.problem import Plan, Problem


def greedy_in_order_blocks(problem: Problem) -> Plan:
    """Reuse a free block of nearest size (of two equally near the larger); it grows if it is too small."""
    return run_in_order(problem, nearest_in_size, "greedy_in_order_blocks")


def nearest_in_size(free: list[tuple[int, int]], nbytes: int) -> int:
    """Return the position in `free`, sorted ``(size, block)``, of the block nearest to `nbytes`."""
    at = bisect_left(free, (nbytes, 0))
    if at == 0:
        return 0
    if at == len(free) or nbytes - free[at - 1][0] < free[at][0] - nbytes:
        return at - 1
    return at
