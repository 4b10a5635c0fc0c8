"""A planning problem as the compiled search reads it: arrays in units, time cut into sections.

A section is a range of steps at which a largest set of operands is in use together (a maximal clique of the interval
graph); every other step uses a subset of one of them, so only sections determine the capacity needed. There are at most
as many sections as operands. Sizes are divided by their greatest common divisor, which is at least the alignment:
offsets of a plan in which every operand rests on another are sums of sizes, so nothing is lost.
"""

from typing import NamedTuple

import numpy as np

from cgraph.memory.problem import Problem, distinct


class SearchInstance(NamedTuple):
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


def instance_of(problem: Problem, positions: np.ndarray, unit: int) -> SearchInstance:
    """Return the operands at positions `kept` (int64 ``[n]``, each larger than zero), with sizes in `unit` bytes.

    A Problem's sizes add up to less than 2^62 bytes, so sums of an offset and a size stay inside int64.
    """
    size = problem.nbytes[positions] // unit
    begin, end, count = sections(problem.first[positions], problem.last[positions] + 1)
    members = [np.flatnonzero((begin <= s) & (end > s)) for s in range(count)]
    others = np.arange(len(positions))
    neighbours = [np.flatnonzero((begin < e) & (end > b) & (others != i)) for i, (b, e) in enumerate(zip(begin, end))]
    return SearchInstance(size, begin, end, *concatenate(neighbours), *concatenate(members))


def unit_of(sizes: np.ndarray) -> int:
    """Return the greatest common divisor of sizes, of which there is at least one, all larger than zero."""
    return int(np.gcd.reduce(sizes))


def sections(first: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the first section and the section after the last of each half-open interval, and the number of sections.

    A section starts at a step where an interval starts, if one stops before the next such step.
    """
    starts, stops = distinct(first), distinct(stop)
    stopped = np.searchsorted(stops, starts, side="right")  # number that stop at or before each start
    stopped = np.append(stopped, len(stops))
    marks = starts[stopped[1:] > stopped[:-1]]
    return np.searchsorted(marks, first), np.searchsorted(marks, stop), len(marks)


def concatenate(lists: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of each list in their concatenation, followed by its length, and the concatenation."""
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(x) for x in lists], out=starts[1:])
    return starts, np.concatenate(lists)


def section_totals(instance: SearchInstance) -> np.ndarray:
    """Return the units in use at each section ``[m]``; the largest is the lower bound."""
    running = np.concatenate([[0], np.cumsum(instance.size[instance.member])])
    return running[instance.member_start[1:]] - running[instance.member_start[:-1]]
