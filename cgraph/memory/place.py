"""Placing operands one after the other, in gaps of one arena: shared by the offset strategies.

`place_each` looks at the placed operands whose usage intervals meet the new one's. Where few intervals meet (an
inference graph) each operand has a list of its neighbours; where many do (a training graph) all placed operands stand
in one table sorted by offset. Both give the same offsets.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.memory.bounds import start_ranks
from cgraph.memory.problem import Plan, Problem

FEW_NEIGHBOURS = 24  # on average; beyond it the table is the faster one


def place_each(problem: Problem, order: Sequence[int], strategy: str) -> Plan:
    """Put each operand of `order` into the smallest gap where it fits, or on top of all that it meets.

    `order` names every operand once. Of equal gaps the lowest is taken.
    Time O(n + p log p) for p pairs of operands that meet, or O(n^2) in NumPy where p is large.
    """
    ranges = _meeting_ranges(problem)
    few = int((ranges[2] - ranges[1]).sum()) <= FEW_NEIGHBOURS * len(problem.operands)
    offsets = _place_by_neighbours(problem, order, ranges) if few else _place_by_table(problem, order)
    return plan_of(problem, offsets, strategy)


def plan_of(problem: Problem, offsets: Sequence[int], strategy: str) -> Plan:
    """A plan whose arena ends with the topmost operand."""
    top = max(map(int.__add__, offsets, problem.nbytes.tolist()), default=0)
    return Plan(tuple(offsets), top, strategy)


def smallest_gap(nbytes: int, taken: list[tuple[int, int]]) -> int:
    """The offset of the smallest gap of at least `nbytes` between `taken` (sorted ``(begin, end)``), else their end."""
    best, best_gap, end = -1, 0, 0
    for begin, taken_end in taken:
        gap = begin - end
        if gap >= nbytes and (best < 0 or gap < best_gap):
            best, best_gap = end, gap
        if taken_end > end:
            end = taken_end
    return end if best < 0 else best


def _meeting_ranges(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands by first step, and for each one where in that list begin and end the later ones that it meets."""
    by_first = np.argsort(problem.first, kind="stable")
    begin = np.arange(1, len(by_first) + 1)
    end = np.searchsorted(problem.first[by_first], problem.last[by_first], "right")
    return by_first, begin, end


def _place_by_neighbours(
    problem: Problem, order: Sequence[int], ranges: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> list[int]:
    """Each placed operand tells its neighbours which bytes it took."""
    neighbours = _neighbours(*ranges)
    sizes = problem.nbytes.tolist()
    taken: list[list[tuple[int, int]]] = [[] for _ in sizes]
    offsets = [0] * len(sizes)
    for i in order:
        if not sizes[i]:
            continue
        taken[i].sort()
        offsets[i] = smallest_gap(sizes[i], taken[i])
        span = (offsets[i], offsets[i] + sizes[i])
        for other in neighbours[i]:
            taken[other].append(span)
    return offsets


def _neighbours(by_first: np.ndarray, begin: np.ndarray, end: np.ndarray) -> list[list[int]]:
    """For each operand those whose usage intervals meet its own."""
    neighbours: list[list[int]] = [[] for _ in by_first]
    order = by_first.tolist()
    for i, first, last in zip(order, begin.tolist(), end.tolist()):
        later = order[first:last]
        neighbours[i] += later
        for other in later:
            neighbours[other].append(i)
    return neighbours


def _place_by_table(problem: Problem, order: Sequence[int]) -> list[int]:
    """All placed operands in one table, sorted by begin: ``begin, end`` and, in ranks of steps, ``first, last``."""
    sizes = problem.nbytes.tolist()
    firsts, lasts = start_ranks(problem)
    spans = np.zeros((2, len(sizes) + 1), np.int64)
    steps = np.zeros((2, len(sizes) + 1), np.int32)
    offsets = [0] * len(sizes)
    count = 0
    for i in order:
        if not sizes[i]:
            continue
        meets = ((steps[0, :count] <= lasts[i]) & (steps[1, :count] >= firsts[i])).nonzero()[0]
        offsets[i] = at = _smallest_gap_of_arrays(sizes[i], spans[0].take(meets), spans[1].take(meets))
        column = int(spans[0, :count].searchsorted(at, "right"))
        spans[:, column + 1 : count + 1] = spans[:, column:count]
        steps[:, column + 1 : count + 1] = steps[:, column:count]
        spans[:, column] = at, at + sizes[i]
        steps[:, column] = firsts[i], lasts[i]
        count += 1
    return offsets


def _smallest_gap_of_arrays(nbytes: int, begin: np.ndarray, end: np.ndarray) -> int:
    """`smallest_gap` for many taken spans, sorted by their begin."""
    floors = np.zeros(len(begin) + 1, np.int64)
    np.maximum.accumulate(end, out=floors[1:])
    gaps = begin - floors[:-1]
    fitting = (gaps >= nbytes).nonzero()[0]
    if not len(fitting):
        return int(floors[-1])
    return int(floors[fitting[gaps.take(fitting).argmin()]])
