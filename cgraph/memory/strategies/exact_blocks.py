"""exact_blocks: the smallest plan in blocks, by branch and bound over the sizes of the blocks.

Idea: sizes are chosen in falling order. The next size must be so large that all larger operands fit into the blocks
chosen so far, and at least its positional maximum. The sizes chosen plus the positional maximums still to come are a
lower bound. `memory/fit.py` decides exactly whether operands fit into blocks of given sizes. The cheapest next size is
tried first, so a good plan comes early.

Source: bounds from Pisarchyk and Lee 2020, arXiv:2001.03288, section 4.1; the search is this project's own. Choosing
blocks for intervals at least cost is known as weighted (max-)colouring of interval graphs and is NP-hard.
Time: exponential in the worst case, hence the limits; under 0.3 s for inference graphs of about 100 operands.
"""

from collections import defaultdict
from itertools import accumulate
from math import inf
from time import monotonic

import numpy as np

from cgraph.memory.blocks import blocks_plan
from cgraph.memory.bounds import positional_maximums
from cgraph.memory.fit import Limit, OutOfNodesError, Rows, choose_sizes
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.strategies.greedy_by_breadth_blocks import greedy_by_breadth_blocks
from cgraph.memory.strategies.greedy_by_size_blocks import greedy_by_size_blocks
from cgraph.memory.strategies.greedy_in_order_blocks import greedy_in_order_blocks
from cgraph.record import replace

NODES = 1_000_000


def exact_blocks(problem: Problem, *, seconds: float = inf, nodes: int = NODES) -> Plan:
    """Return the smallest plan found within the limits; `proved` if no plan in blocks is smaller.

    Without a time limit the result is the same every time.
    """
    greedy = (greedy_by_size_blocks, greedy_by_breadth_blocks, greedy_in_order_blocks)
    start = min((strategy(problem) for strategy in greedy), key=lambda plan: plan.nbytes)
    search = _Search(problem, start.nbytes, Limit(nodes, monotonic() + seconds))
    try:
        search.run()
        proved = True
    except OutOfNodesError:
        proved = False
    plan = _plan(problem, search.rows, search.best_sizes) if search.best_sizes else start
    return replace(plan, strategy="exact_blocks", proved=proved)


class _Search:
    """Branch and bound. `best_sizes`: block sizes per row of the best plan found that is smaller than `best`."""

    def __init__(self, problem: Problem, best: int, limit: Limit) -> None:
        self.rows = _rows(problem)
        self.sizes = [0, *sorted({nbytes for *_, nbytes in self.rows})]
        self.maximums = positional_maximums(problem)
        self.to_come = [*accumulate(reversed(self.maximums), initial=0)][::-1]
        self.best = best
        self.limit = limit
        self.best_sizes: list[int] = []

    def run(self) -> None:
        """Try all falling sequences of sizes that could be cheaper than the best one.

        Raises
            OutOfNodesError: the limit was reached
        """
        stack: list[list[int]] = [[self.sizes[-1]]] if self.rows else []
        while stack:
            blocks = stack.pop()
            self.limit.take(1)
            if sum(blocks) + self._still_to_come(len(blocks)) >= self.best:
                continue
            least = self._least_next(blocks)
            if not least:
                self._keep(blocks)
                continue
            larger = [size for size in self.sizes if least <= size <= blocks[-1]]
            stack += [[*blocks, size] for size in reversed(larger)]

    def _still_to_come(self, count: int) -> int:
        return self.to_come[count] if count < len(self.to_come) else 0

    def _least_next(self, blocks: list[int]) -> int:
        """Return the smallest size such that all larger operands fit into `blocks`; 0 if all operands do."""
        floor = self.maximums[len(blocks)] if len(blocks) < len(self.maximums) else 0
        low, high = self.sizes.index(floor), self.sizes.index(blocks[-1])
        while low < high:
            middle = (low + high) // 2
            larger = [row for row in self.rows if row[2] > self.sizes[middle]]
            if choose_sizes(blocks, larger, self.limit) is None:
                low = middle + 1
            else:
                high = middle
        return self.sizes[low]

    def _keep(self, blocks: list[int]) -> None:
        sizes = choose_sizes(blocks, self.rows, self.limit)
        if sizes:
            self.best_sizes, self.best = sizes, sum(blocks)


def _order(problem: Problem) -> list[int]:
    """Return the operands that have bytes, in running order."""
    order = np.argsort(problem.first, kind="stable")
    return order[problem.nbytes[order] > 0].tolist()


def _rows(problem: Problem) -> Rows:
    columns = np.stack([problem.first, problem.last, problem.nbytes], axis=1)
    return [(first, last, nbytes) for first, last, nbytes in columns[_order(problem)].tolist()]


def _plan(problem: Problem, rows: Rows, sizes: list[int]) -> Plan:
    """Return the plan that gives each operand the first free block of its chosen size."""
    block_of = [-1] * len(problem.operands)
    blocks: dict[int, list[int]] = defaultdict(list)  # by size
    held_until: list[int] = []  # by block
    for i, (first, last, _), size in zip(_order(problem), rows, sizes):
        block = next((block for block in blocks[size] if held_until[block] < first), None)
        if block is None:
            block = len(held_until)
            blocks[size].append(block)
            held_until.append(-1)
        held_until[block] = last
        block_of[i] = block
    return blocks_plan(problem, block_of, "exact_blocks")
