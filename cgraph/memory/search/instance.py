"""A planning problem as the compiled search reads it: arrays in units, time cut into sections.

A section is a stretch of steps at which a largest set of operands is in use together (a maximal clique of the interval
graph); every other step uses a subset of one of them, so the sections say all that capacity can demand. There are at
most as many sections as operands. Sizes are divided by their greatest common divisor, which is at least the alignment:
offsets of a plan in which every operand rests on another are sums of sizes, so nothing is lost.
"""

from typing import NamedTuple

import numpy as np

from cgraph.errors import PlanError
from cgraph.memory.problem import Problem

LARGEST_TOTAL = 1 << 62  # units; sums of two offsets stay inside int64


class Instance(NamedTuple):
    """n operands of positive size over m sections, in units; int64 throughout.

    Sections ``begin[i] .. end[i]-1`` use operand `i`; the operands that meet it in time are
    ``neighbour[neighbour_start[i]:neighbour_start[i+1]]``, those in use in section `s` are
    ``member[member_start[s]:member_start[s+1]]``.
    """

    size: np.ndarray  # [n]
    begin: np.ndarray  # [n]
    end: np.ndarray  # [n]
    neighbour_start: np.ndarray  # [n + 1]
    neighbour: np.ndarray
    member_start: np.ndarray  # [m + 1]
    member: np.ndarray


def instance_of(problem: Problem, kept: np.ndarray, unit: int) -> Instance:
    """The operands at positions `kept` (int64 ``[n]``, each larger than zero), sizes in `unit` bytes.

    Raises
        PlanError: all sizes together exceed what 64-bit sums can hold
    """
    size = problem.nbytes[kept] // unit
    if sum(size.tolist()) >= LARGEST_TOTAL:
        raise PlanError(f"exact: sizes add up to more than {LARGEST_TOTAL} units of {unit} bytes")
    begin, end, count = sections(problem.first[kept], problem.last[kept] + 1)
    neighbour_start, neighbour = meetings(begin, end, begin, end)
    at = np.arange(count)
    member_start, member = meetings(at, at + 1, begin, end)
    return Instance(size, begin, end, neighbour_start, neighbour, member_start, member)


def unit_of(sizes: np.ndarray) -> int:
    """The greatest common divisor of sizes larger than zero; 1 when there are none."""
    return int(np.gcd.reduce(sizes)) if len(sizes) else 1


def sections(first: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """First section and section after the last of each half-open interval, and the number of sections.

    A section starts at a step where an interval starts, if one stops before the next such step.
    """
    starts, stops = np.unique(first), np.unique(stop)
    stopped = np.searchsorted(stops, starts, side="right")  # how many stop at or before each start
    stopped = np.append(stopped, len(stops))
    marks = starts[stopped[1:] > stopped[:-1]]
    return np.searchsorted(marks, first), np.searchsorted(marks, stop), len(marks)


def meetings(
    begin: np.ndarray, end: np.ndarray, others: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each range ``begin..end-1`` the positions of the ranges ``others..stops-1`` that meet it, itself left out.

    Returned as starts ``[len(begin) + 1]`` and positions, one list after another.
    """
    same = begin is others
    lists = []
    for i in range(len(begin)):
        meets = (others < end[i]) & (stops > begin[i])
        meets[i] &= not same
        lists.append(np.flatnonzero(meets))
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(x) for x in lists], out=starts[1:])
    return starts, np.concatenate([np.zeros(0, np.int64), *lists])


def section_totals(instance: Instance) -> np.ndarray:
    """Units in use at each section ``[m]``; the largest is the lower bound."""
    running = np.concatenate([[0], np.cumsum(instance.size[instance.member])])
    return running[instance.member_start[1:]] - running[instance.member_start[:-1]]
