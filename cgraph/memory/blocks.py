"""Buffers that several operands reuse as a whole; shared by the block strategies."""

from bisect import bisect_left
from itertools import accumulate

from cgraph.memory.problem import Plan, Problem


class BlockBuffers:
    """Blocks that grow while operands are put into them; `sizes[b]` is the largest operand of block `b`.

    Changes with `open` and `put`. Each block keeps its operands' usage intervals sorted, so that a look-up is O(log n).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sizes: list[int] = []
        self.block_of: list[int] = [-1] * len(problem.operands)
        self._nbytes: list[int] = problem.nbytes.tolist()
        self._first: list[int] = problem.first.tolist()
        self._last: list[int] = problem.last.tolist()
        self._firsts: list[list[int]] = []
        self._lasts: list[list[int]] = []

    def open(self, i: int) -> int:
        """Open a new block with operand `i` in it, and return its number."""
        self.sizes.append(0)
        self._firsts.append([])
        self._lasts.append([])
        self.put(i, len(self.sizes) - 1)
        return len(self.sizes) - 1

    def put(self, i: int, block: int) -> None:
        """Put operand `i` into a block that is free for it; the block grows if it is too small."""
        at = bisect_left(self._firsts[block], self._first[i])
        self._firsts[block].insert(at, self._first[i])
        self._lasts[block].insert(at, self._last[i])
        self.sizes[block] = max(self.sizes[block], self._nbytes[i])
        self.block_of[i] = block

    def idle(self, i: int, block: int) -> int:
        """Return the steps from operand `i` to the nearest usage interval in the block; -1 if one meets its own."""
        firsts, lasts = self._firsts[block], self._lasts[block]
        at = bisect_left(firsts, self._first[i])
        after = firsts[at] - self._last[i] if at < len(firsts) else None
        before = self._first[i] - lasts[at - 1] if at else None
        if (after is not None and after <= 0) or (before is not None and before <= 0):
            return -1
        return min(x for x in (after, before) if x is not None)

    def fits(self, i: int, block: int) -> bool:
        """Return True if the block is free during the usage interval of operand `i`."""
        return self.idle(i, block) > 0

    def closest(self, i: int) -> int:
        """Return the block that is idle for the fewest steps around operand `i`, the lowest on a tie; -1 if none is
        free.
        """
        best, best_idle = -1, 0
        for block in range(len(self.sizes)):
            idle = self.idle(i, block)
            if idle > 0 and (best < 0 or idle < best_idle):
                best, best_idle = block, idle
        return best

    def plan(self, strategy: str) -> Plan:
        """Return the plan with blocks side by side in the order of their opening; an operand without a block has no
        bytes.
        """
        return blocks_plan(self.problem, self.block_of, strategy)


def blocks_plan(problem: Problem, block_of: list[int], strategy: str) -> Plan:
    """Return the plan of operands in numbered blocks (-1: an operand of no bytes), each as large as its largest
    operand.
    """
    sizes = [0] * (max(block_of, default=-1) + 1)
    for nbytes, block in zip(problem.nbytes.tolist(), block_of):
        if nbytes:
            sizes[block] = max(sizes[block], nbytes)
    starts = list(accumulate(sizes, initial=0))
    offsets = tuple(starts[block] if block >= 0 else 0 for block in block_of)
    return Plan(offsets, starts[-1], strategy)
