"""Placement of groups of slabs in one arena: slabs of a group keep their distances, and each is in use for some
steps.

Idea: place each group in turn as low as possible without overlapping a placed slab. Then, repeatedly, move every group
that ends above the top of the best arena to an earlier position, by a random share of all positions, and continue from
there, whether or not that was better. So groups that are hard to place come first, in an order that varies.

Source: first fit by falling size, as in Pisarchyk and Lee 2020, with several weights of the time in use; the search is
the squeaky wheel of Joslin and Clements 1999, JAIR 10, 353.
Time O(pairs of groups that meet) per trial, in compiled code; no bound on the distance to the optimum.
"""

from collections.abc import Sequence
from functools import cached_property
from random import Random

import numpy as np

from cgraph.kernels.bound import Bound
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.placing.signature import FIRST_FIT
from cgraph.kernels.target import host_target
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Plan, Problem, ProblemOperand, UsageInterval
from cgraph.record import Record
from cgraph.system.alignment import round_up

LONG = (0.0, 0.1, 0.3, 0.7, 1.0)  # exponents of a group's steps, which are weighed with its bytes
MOST_TRIALS = 400  # trials of one search
RISE = 0.1  # share of all turns by which a group that ends too high moves at most


class Slab(Record):
    """Bytes that are in use for some steps.

    Fields
        at: its first byte, counted from the beginning of the group
        nbytes: number of bytes
        first, last: steps, both included
    """

    at: int
    nbytes: int
    first: int
    last: int


class Group(Record):
    """Slabs that are placed as one.

    Fields
        name: whose bytes they are
        first: for a ring, the row at its front
    """

    name: str
    first: int
    slabs: tuple[Slab, ...]

    @cached_property
    def first_step(self) -> int:
        return min(x.first for x in self.slabs)

    @cached_property
    def last_step(self) -> int:
        return max(x.last for x in self.slabs)

    @property
    def steps(self) -> int:
        """Steps from the first in which it is in use to the last."""
        return self.last_step - self.first_step + 1

    @cached_property
    def nbytes(self) -> int:
        return max(slab.at + slab.nbytes for slab in self.slabs)


class Packing:
    """Offsets of groups, which a search improves. Mutable.

    Fields
        bases: offset of each group
        nbytes: bytes of the arena
        bound: the most bytes in use at a step; no arena is smaller
    """

    def __init__(self, groups: Sequence[Group], alignment: int) -> None:
        self.groups, self.alignment = groups, alignment
        breadths = breadths_of(groups)
        self.bound = int(breadths.max(initial=0))
        self.sizes = np.array([group.nbytes for group in groups], np.int64)
        self.meetings, self.chance = meetings(groups), Random(0)
        self.order, self.trial_bases = np.zeros((2, len(groups)), np.int64)
        self.bases, self.nbytes = self.trial_bases, 0
        if groups:
            best = min((*(by_size(groups, long) for long in LONG), by_breadth(groups, breadths)), key=self.tried)
            self.nbytes, self.bases = self.tried(best), self.trial_bases.copy()
            self.haste = np.empty(len(groups))  # of groups; the largest comes first
            self.haste[best] = np.arange(len(groups), 0.0, -1.0)

    @cached_property
    def trial(self) -> Bound:
        """First fit in `order`; `trial_bases` becomes the offsets of the groups."""
        names = ("order", "places", "others", "begins", "ends", "bases")
        arrays = dict(zip(names, map(Pointer, (self.order, *self.meetings, self.trial_bases))))
        call = FIRST_FIT.call((), 1, **arrays, alignment=self.alignment, count=len(self.groups))
        return Bound(call, host_target())

    def tried(self, order: np.ndarray) -> int:
        """Return the bytes of the arena with groups placed in this order."""
        self.order[:], self.trial_bases[:] = order, -1
        self.trial(0, 1)
        return round_up(int((self.trial_bases + self.sizes).max()), self.alignment)

    @property
    def is_least(self) -> bool:
        """True if no other offsets need fewer bytes."""
        return self.nbytes < self.bound + self.alignment

    def improve(self, work: int, enough: int = 0) -> None:
        """Search until the arena has at most `enough` bytes, or until about `work` pairs of groups were compared."""
        for _ in range(min(work // (len(self.meetings[1]) + 1), MOST_TRIALS)):
            if self.nbytes <= enough or self.is_least:
                break
            nbytes = self.tried(np.argsort(-self.haste, kind="stable"))
            if nbytes < self.nbytes:
                self.nbytes, self.bases = nbytes, self.trial_bases.copy()
            high = np.flatnonzero(self.trial_bases + self.sizes > self.nbytes - self.alignment)
            self.haste[high] += [RISE * len(self.haste) * self.chance.random() for _ in high]

    def check(self) -> None:
        """Raise PlanError if two slabs in use at one step share bytes, or one leaves the arena."""
        check_groups(self.groups, self.bases.tolist(), self.nbytes)


def check_groups(groups: Sequence[Group], bases: Sequence[int], nbytes: int) -> None:
    """Raise PlanError if two slabs in use at one step share bytes, or one leaves the arena."""
    operands = [
        ProblemOperand(x.nbytes, UsageInterval(x.first, x.last), group.name) for group in groups for x in group.slabs
    ]
    offsets = [base + x.at for base, group in zip(bases, groups) for x in group.slabs]
    check_plan(Problem(tuple(operands), 1), Plan(tuple(offsets), nbytes))


def by_size(groups: Sequence[Group], long: float) -> np.ndarray:
    """Return the groups by falling size; of equal ones those in use for longer first."""
    return np.argsort([-group.nbytes * group.steps**long for group in groups], kind="stable")


def by_breadth(groups: Sequence[Group], breadths: np.ndarray) -> np.ndarray:
    """Return the groups by the falling breadth of the broadest step in which they are in use, the largest of equals
    first.
    """
    most = [breadths[group.first_step : group.last_step + 1].max() for group in groups]
    return np.lexsort((np.array([-group.nbytes for group in groups]), -np.array(most)))


def breadths_of(groups: Sequence[Group]) -> np.ndarray:
    """Return the bytes in use at each step."""
    slabs = [x for group in groups for x in group.slabs]
    change = np.zeros(max((x.last for x in slabs), default=0) + 2, np.int64)
    for x in slabs:
        change[x.first] += x.nbytes
        change[x.last + 1] -= x.nbytes
    return change.cumsum()


# -- pairs of groups that meet -----------------------------------------------------------------------------------------

Meetings = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Per group the place of its neighbours in three lists: which group, and an open interval of bytes, counted from where
that one begins, in which the group may not begin."""


def meetings(groups: Sequence[Group]) -> Meetings:
    """Return the intervals of forbidden offsets for all pairs of groups with slabs in use at one step."""
    if all(len(group.slabs) == 1 for group in groups):
        return meetings_of_single([group.slabs[0] for group in groups])
    rows = [(i, x.at, x.nbytes, x.first, x.last) for i, group in enumerate(groups) for x in group.slabs]
    rows.sort(key=lambda row: row[3])
    group, at, nbytes, first, last = np.array(rows, np.int64).reshape(-1, 5).T
    counts = np.searchsorted(first, last, "right") - np.arange(1, len(rows) + 1)
    one = np.repeat(np.arange(len(rows)), counts)
    other = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts) + one + 1
    one, other = np.concatenate([one, other]), np.concatenate([other, one])
    begin, end = at[other] - at[one] - nbytes[one], at[other] + nbytes[other] - at[one]
    apart = group[one] != group[other]
    one, other, begin, end = united(*(x[apart] for x in (group[one], group[other], begin, end)))
    return np.searchsorted(one, np.arange(len(groups) + 1)), other, begin, end


def meetings_of_single(slabs: Sequence[Slab]) -> Meetings:
    """Return the same if every group is one slab: no intervals to unite, and a quarter of the temporary memory."""
    nbytes, first, last = np.array([(x.nbytes, x.first, x.last) for x in slabs], np.int64).reshape(-1, 3).T
    meets = [np.flatnonzero((first <= x.last) & (last >= x.first)) for x in slabs]
    counts = [len(x) for x in meets]
    one, other = np.repeat(np.arange(len(slabs)), counts), np.concatenate([*meets, np.zeros(0, np.int64)])
    other = other[one != other]
    places = np.concatenate([[0], np.cumsum(np.array(counts, np.int64) - 1)])
    return places, other, -np.repeat(nbytes, np.diff(places)), nbytes[other]


def united(one: np.ndarray, other: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Meetings:
    """Merge overlapping intervals of the same two groups; sorted by the first group.

    Ranks replace the numbers themselves, so that none becomes too large.
    """
    order = np.lexsort((begin, other, one))
    one, other, begin, end = one[order], other[order], begin[order], end[order]
    numbers, places = np.unique(np.concatenate([begin, end]), return_inverse=True)
    pair = np.concatenate([[0], ((one[1:] != one[:-1]) | (other[1:] != other[:-1])).cumsum()])[: len(one)]
    low, high = places.reshape(2, -1) + len(numbers) * pair
    most = np.maximum.accumulate(high)
    starts = np.flatnonzero(np.append(True, low[1:] >= most[:-1]))[: len(one)]
    stops = np.append(starts[1:], len(one))[: len(starts)] - 1
    return one[starts], other[starts], begin[starts], numbers[most[stops] - len(numbers) * pair[stops]]
