"""greedy_by_size_improved: by size in stages; inside a stage the operand that leaves a block idle for the fewest steps.

Sizes between two positional maximums count as equal, since a block that large is needed anyway: they form a stage. In a
stage, an operand that fits no block opens one at once (the largest such, then the earliest); otherwise the operand and
the block closest in time come next.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, section 4.4. A size equal to a positional maximum shares a stage with
the sizes below it, as in TensorFlow Lite; the paper separates them. Ties go to the larger operand, then the earlier,
then the lower block, which gives the published figures of MobileNet v1, v2, DeepLab and PoseNet.
Time O(n (n + k)) in NumPy for k blocks; no bound on the distance to the optimum.
"""

import heapq
from bisect import bisect_right
from itertools import groupby

import numpy as np

from cgraph.memory.blocks import BlockBuffers
from cgraph.memory.bounds import positional_maximums
from cgraph.memory.problem import Plan, Problem

NEVER = np.iinfo(np.int64).max  # idle steps of a block that is in use


def greedy_by_size_improved(problem: Problem) -> Plan:
    """Fill blocks stage by stage."""
    blocks = BlockBuffers(problem)
    rising = [-nbytes for nbytes in positional_maximums(problem)]
    sizes = problem.nbytes.tolist()
    order = np.lexsort((np.arange(len(sizes)), problem.first, -problem.nbytes)).tolist()
    for _, group in groupby((i for i in order if sizes[i]), key=lambda i: bisect_right(rising, -sizes[i])):
        _Stage(problem, blocks, list(group)).fill()
    return blocks.plan("greedy_by_size_improved")


class _Stage:
    """Operands of one stage that wait for a block, larger and earlier ones first; changes while it is filled."""

    def __init__(self, problem: Problem, blocks: BlockBuffers, operands: list[int]) -> None:
        self.blocks = blocks
        self.operands = operands
        self.first, self.last = problem.first[operands], problem.last[operands]
        self.waiting = np.ones(len(operands), bool)
        rows = [[blocks.idle(i, block) for i in operands] for block in range(len(blocks.sizes))]
        self.idle = [np.where((row := np.array(steps)) > 0, row, NEVER) for steps in rows]
        self.choices = np.zeros(len(operands), np.int64)  # the blocks that each operand fits
        self.queue: list[tuple[int, int, int]] = []  # (idle steps, operand, block), some of them out of date
        for block, row in enumerate(self.idle):
            self.choices += row < NEVER
            self._offer(block)

    def fill(self) -> None:
        """Place every operand of the stage."""
        for _ in self.operands:
            homeless = np.flatnonzero(self.waiting & (self.choices == 0))
            if len(homeless):
                self._open(int(homeless[0]))
            else:
                self._put_closest()

    def _open(self, at: int) -> None:
        block = self.blocks.open(self.operands[at])
        self.waiting[at] = False
        self.idle.append(self._idle_around(at))
        self.choices += self.idle[block] < NEVER
        self._offer(block)

    def _put_closest(self) -> None:
        """Place the closest pair that is not out of date. An out-of-date pair is replaced by its block's next one."""
        while True:
            steps, at, block = heapq.heappop(self.queue)
            if self.waiting[at] and self.idle[block][at] == steps:
                break
            self._offer(block)
        self.blocks.put(self.operands[at], block)
        self.waiting[at] = False
        around = self._idle_around(at)
        self.choices -= (self.idle[block] < NEVER) & (around == NEVER)
        fits = (self.idle[block] < NEVER) & (around < NEVER)
        self.idle[block] = np.where(fits, np.minimum(self.idle[block], around), NEVER)
        self._offer(block)

    def _offer(self, block: int) -> None:
        """Queue the waiting operand closest to the block, the first of equals."""
        steps = np.where(self.waiting, self.idle[block], NEVER)
        at = int(steps.argmin())
        if steps[at] < NEVER:
            heapq.heappush(self.queue, (int(steps[at]), at, block))

    def _idle_around(self, at: int) -> np.ndarray:
        """Return the steps between the usage interval of one operand and those of others; NEVER if they meet."""
        before, after = self.first[at] - self.last, self.first - self.last[at]
        apart = np.maximum(before, after)
        return np.where(apart > 0, apart, NEVER)
