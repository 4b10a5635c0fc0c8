"""vandenhove: operands in running order, each in the smallest free block that holds it, else the largest grows.

Source: Vandenhove, internship report on Owl's computation graph, algorithm 1. Its line "largest block in block" must
read "largest block in reusable": another block is in use. Operands that overwrite one another are one operand here,
so the algorithm's preference for a direct operand's block is already in the problem.
Time O(n log n); no bound on the distance to the optimum.
"""

from bisect import bisect_left

from cgraph.memory.pool import run_in_order
from cgraph.memory.problem import Plan, Problem


def vandenhove(problem: Problem) -> Plan:
    """Open a new block only if none is free."""
    return run_in_order(problem, smallest_that_holds, "vandenhove")


def smallest_that_holds(free: list[tuple[int, int]], nbytes: int) -> int:
    """Return the position in `free`, sorted ``(size, block)``, of the smallest of at least `nbytes`, else of the
    largest.
    """
    return min(bisect_left(free, (nbytes, 0)), len(free) - 1)
