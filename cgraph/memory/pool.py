"""Blocks taken and returned as a schedule runs; shared by the block strategies that follow the running order."""

import heapq
from bisect import insort
from collections.abc import Callable

import numpy as np

from cgraph.memory.blocks import blocks_plan
from cgraph.memory.problem import Plan, Problem

Choose = Callable[[list[tuple[int, int]], int], int]


def run_in_order(problem: Problem, choose: Choose, strategy: str) -> Plan:
    """Assign each operand, by first step, a block that is free; a block grows to its largest operand.

    `choose` gets the free blocks, sorted ``(size, block)`` and never empty, and the operand's bytes; it returns a
    position in them. Time O(n log n) and what `choose` takes.
    """
    sizes, first, last = problem.nbytes.tolist(), problem.first.tolist(), problem.last.tolist()
    block_of = [-1] * len(sizes)
    block_sizes: list[int] = []
    free: list[tuple[int, int]] = []
    busy: list[tuple[int, int]] = []  # (last step, block)
    for i in np.argsort(problem.first, kind="stable").tolist():
        if not sizes[i]:
            continue
        while busy and busy[0][0] < first[i]:
            block = heapq.heappop(busy)[1]
            insort(free, (block_sizes[block], block))
        if free:
            block = free.pop(choose(free, sizes[i]))[1]
            block_sizes[block] = max(block_sizes[block], sizes[i])
        else:
            block = len(block_sizes)
            block_sizes.append(sizes[i])
        block_of[i] = block
        heapq.heappush(busy, (last[i], block))
    return blocks_plan(problem, block_of, strategy)
