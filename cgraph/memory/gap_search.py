"""Placement of operands one after the other, in gaps of one arena; shared by the offset strategies.

`place_each` compares an operand with the placed operands whose usage intervals meet its own. If few intervals meet (an
inference graph), each operand has a list of its neighbours. If many do (a training graph), one table sorted by offset
has all placed operands, and compiled code scans it. Both give the same offsets.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.kernels.bound import Bound
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.placing.signature import IN_GAPS, VECTOR
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import host_target
from cgraph.memory.problem import Plan, Problem

FEW_NEIGHBOURS = 24  # average number of neighbours beyond which the table is faster
PIECE = 256  # operands placed between two checks for an interrupt: 20 ms among 100,000 others


def place_each(problem: Problem, order: Sequence[int], strategy: str) -> Plan:
    """Put each operand of `order` into the smallest gap where it fits, or above all operands that it meets.

    `order` names every operand once. Of equal gaps the lowest is taken.
    Time O(n + p log p) for p pairs of operands that meet, or O(n^2) where p is large, half a nanosecond each.
    """
    ranges = _meeting_ranges(problem)
    few = int((ranges[2] - ranges[1]).sum()) <= FEW_NEIGHBOURS * len(problem.operands)
    offsets = _place_by_neighbours(problem, order, ranges) if few else _place_by_table(problem, order)
    return plan_of(problem, offsets, strategy)


def plan_of(problem: Problem, offsets: np.ndarray, strategy: str) -> Plan:
    """Return a plan whose arena ends with the topmost operand."""
    return Plan(tuple(offsets.tolist()), int((offsets + problem.nbytes).max(initial=0)), strategy)


def smallest_gap(nbytes: int, occupied: list[tuple[int, int]]) -> int:
    """Return the offset of the smallest gap of at least `nbytes` between `taken` (sorted ``(begin, end)``), else their
    end.
    """
    best, best_gap, end = -1, 0, 0
    for begin, taken_end in occupied:
        gap = begin - end
        if gap >= nbytes and (best < 0 or gap < best_gap):
            best, best_gap = end, gap
        if taken_end > end:
            end = taken_end
    return end if best < 0 else best


def _meeting_ranges(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return operands by first step, and for each one the range in that list of the later ones that it meets."""
    by_first = np.argsort(problem.first, kind="stable")
    begin = np.arange(1, len(by_first) + 1)
    end = np.searchsorted(problem.first[by_first], problem.last[by_first], "right")
    return by_first, begin, end


def _place_by_neighbours(
    problem: Problem, order: Sequence[int], ranges: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Place operands by lists of neighbours: each avoids the bytes of those that are placed already."""
    starts, others = _neighbours(*ranges)
    sizes = problem.nbytes.tolist()
    begins = [-1] * len(sizes)  # until they are placed
    ends = begins.copy()
    for i in order:
        if sizes[i]:
            near = others[starts[i] : starts[i + 1]]
            begins[i] = smallest_gap(sizes[i], sorted([(begins[x], ends[x]) for x in near if begins[x] >= 0]))
            ends[i] = begins[i] + sizes[i]
    return np.maximum(np.array(begins, np.int64), 0)


def _neighbours(by_first: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the operands whose usage intervals meet that of operand i: ``others[starts[i]:starts[i + 1]]``."""
    count = end - begin
    each = np.repeat(by_first, count)
    later = by_first[np.arange(len(each)) + np.repeat(begin - np.cumsum(count) + count, count)]
    owners, others = np.concatenate((each, later)), np.concatenate((later, each))
    starts = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(by_first)))))
    return starts.tolist(), others[np.argsort(owners, kind="stable")].tolist()


def _place_by_table(problem: Problem, order: Sequence[int]) -> np.ndarray:
    """Place operands by one table of all placed operands, sorted by begin, which compiled code searches and extends."""
    turns = np.array(order, np.int64)
    turns = turns[problem.nbytes[turns] > 0]
    count, room = len(turns), len(turns) + VECTOR
    arrays = {name: getattr(problem, name)[turns] for name in ("nbytes", "first", "last")}
    offsets, table = np.zeros(count, np.int64), np.full((4, room), -1, np.int64)
    run_pieces(IN_GAPS, count, **arrays, offsets=offsets, placed=table, room=room)
    return scatter(offsets, turns, len(order))


def run_pieces(family: Signature, count: int, **args: np.ndarray | int) -> None:
    """Place `count` operands in compiled code, some at a time, with checks for interrupts in between."""
    arguments = {name: Pointer(x) if isinstance(x, np.ndarray) else x for name, x in args.items()}
    for start in range(0, count, PIECE):
        call = family.call((), 1, **arguments, start=start, stop=min(start + PIECE, count))
        Bound(call, host_target())(0, 1)


def scatter(x: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Return `count` zeros, with `x` at its indices."""
    out = np.zeros(count, np.int64)
    out[places] = x
    return out
