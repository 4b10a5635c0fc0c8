"""strip_packing: fill the lowest line of the skyline with the longest operand that fits between its walls.

Steps go across, bytes upwards. The skyline starts as one line at the bottom; each round takes its lowest line (the
leftmost of equals) and, of the operands whose usage interval lies inside it, places the longest (the earliest of
equals) there. If none fits, the line rises to its lower neighbour.

Source: Sekiyama et al. 2018, arXiv:1804.10001 (best fit); Pisarchyk and Lee 2020, arXiv:2001.03288, table 2.
Time O(n log n) rounds, each O(w) in NumPy for w operands that start inside the line; no bound on the distance to the
optimum.
"""

import heapq

import numpy as np

from cgraph.memory.bounds import start_ranks
from cgraph.memory.place import plan_of
from cgraph.memory.problem import Plan, Problem


def strip_packing(problem: Problem) -> Plan:
    """Place operands line by line, from the bottom."""
    waiting = _Waiting(problem)
    sizes = problem.nbytes.tolist()
    offsets = [0] * len(sizes)
    skyline = _Skyline(waiting.columns)
    for _ in range(waiting.count):
        line = skyline.lowest()
        i = waiting.longest_inside(line, skyline.ends[line])
        while i < 0:
            line = skyline.lift(line)
            i = waiting.longest_inside(line, skyline.ends[line])
        offsets[i] = skyline.heights[line]
        skyline.put(line, waiting.first[i], waiting.last[i], offsets[i] + sizes[i])
    return plan_of(problem, offsets, "strip_packing")


class _Waiting:
    """Operands not placed yet; changes with `longest_inside`, which takes one out. Columns are starting steps."""

    def __init__(self, problem: Problem) -> None:
        self.first, self.last = start_ranks(problem)
        self.columns = max(self.last, default=-1) + 1
        by_first = np.argsort(problem.first, kind="stable")
        by_first = by_first[problem.nbytes[by_first] > 0]
        self.count = len(by_first)
        self._operands = by_first.tolist()
        self._lasts = np.array(self.last, np.int64)[by_first]
        self._steps = (problem.last - problem.first)[by_first]
        self._starts = np.searchsorted(np.array(self.first)[by_first], np.arange(self.columns + 1)).tolist()

    def longest_inside(self, begin: int, end: int) -> int:
        """Take out the longest operand inside columns ``[begin, end)``; -1 if there is none."""
        window = slice(self._starts[begin], self._starts[end])
        lasts, steps = self._lasts[window], self._steps[window]
        fitting = np.where(lasts < end, steps, -1)
        if not len(fitting):
            return -1
        best = int(fitting.argmax())
        if fitting[best] < 0:
            return -1
        steps[best] = -1
        return self._operands[window.start + best]


class _Skyline:
    """Lines ``[begin, ends[begin])`` at ``heights[begin]``, side by side; changes with `put` and `lift`."""

    def __init__(self, columns: int) -> None:
        self.ends = {0: columns}
        self.heights = {0: 0}
        self._begins = {columns: 0}  # by end
        self._queue = [(0, 0)]  # (height, begin), with entries of lines that are gone

    def lowest(self) -> int:
        """The begin of the lowest line, the leftmost of equals."""
        while self.heights.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        return self._queue[0][1]

    def put(self, line: int, first: int, last: int, top: int) -> None:
        """Raise columns ``first..last`` of a line to `top`; what is left of it on both sides stays."""
        end, height = self.ends[line], self.heights[line]
        if line < first:
            self._set(line, first, height)
        self._set(first, last + 1, top)
        if last + 1 < end:
            self._set(last + 1, end, height)

    def lift(self, line: int) -> int:
        """Raise a line to its lower neighbour and join them (both, if equally high); the begin of the lowest line."""
        begin, end = line, self.ends[line]
        left = self._begins.get(begin, -1)
        sides = [self.heights[x] for x in (left, end) if x in self.heights]
        height = min(sides)
        del self.heights[line]
        if left >= 0 and self.heights[left] == height:
            begin = left
        if self.heights.get(end) == height:
            del self.heights[end]
            end = self.ends[end]
        self._set(begin, end, height)
        return self.lowest()

    def _set(self, begin: int, end: int, height: int) -> None:
        self.ends[begin] = end
        self.heights[begin] = height
        self._begins[end] = begin
        heapq.heappush(self._queue, (height, begin))
