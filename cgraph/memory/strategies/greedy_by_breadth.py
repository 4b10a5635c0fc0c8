"""greedy_by_breadth: operands of the broadest operator first, each in the smallest gap where it fits.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, section 5.3.
Time O(n log n) and the pairs of operands that meet; no bound on the distance to the optimum.

The paper does not say how ties are broken, and its figures depend on it. Here operators come from a priority queue
ordered by breadth only, and of equal operands the later one goes first: this gives the published figures of MobileNet
v1, v2, DeepLab and PoseNet, in blocks and in offsets. It is a fit, not a rule of the paper.
"""

import heapq

import numpy as np

from cgraph.memory.bounds import breadths_at
from cgraph.memory.gap_search import place_each
from cgraph.memory.problem import Plan, Problem, distinct


def greedy_by_breadth(problem: Problem) -> Plan:
    """Place operands by falling breadth of the broadest operator that uses them; then larger first, then later."""
    return place_each(problem, breadth_order(problem), "greedy_by_breadth")


def breadth_order(problem: Problem) -> list[int]:
    """Return the positions of the operands: those of the broadest operator, then the rest of the next one's, and so
    on.
    """
    if not problem.operands:
        return []
    steps = distinct(np.concatenate((problem.first, problem.last)))
    turns = np.empty(len(steps), np.int64)
    turns[_by_falling_breadth(breadths_at(problem, steps).tolist())] = np.arange(len(steps))
    first, last = np.searchsorted(steps, problem.first), np.searchsorted(steps, problem.last)
    turn = _least_in_ranges(turns, first, last)
    later = -np.arange(len(problem.operands))
    return np.lexsort((later, -problem.nbytes, turn)).tolist()


class _Operator(int):
    """An entry of the priority queue, ordered by falling breadth only; equal breadths stay equal."""

    rank: int


def _by_falling_breadth(breadths: list[int]) -> list[int]:
    queue: list[_Operator] = []
    for rank, breadth in enumerate(breadths):
        operator = _Operator(-breadth)
        operator.rank = rank
        heapq.heappush(queue, operator)
    return [heapq.heappop(queue).rank for _ in breadths]


def _least_in_ranges(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the smallest of ``values[first..last]`` for each pair, from two overlapping runs whose length is a power
    of two.
    """
    power = np.log2(last - first + 1).astype(np.int64)  # exact: ranges are far shorter than 2**53
    least = np.empty(len(first), np.int64)
    runs = values
    for k in range(int(power.max()) + 1):
        now = power == k
        least[now] = np.minimum(runs[first[now]], runs[last[now] + 1 - (1 << k)])
        runs = np.minimum(runs[: -(1 << k)], runs[1 << k :])
    return least
