"""The frame of a region: where its rings and workspaces lie, a planning problem of its own.

Idea: a ring's rows lie one behind the other, so what is not written yet, or read no more, is somebody else's meanwhile.
Neighbouring rows that are there for the same steps are a *slab*; a step is a slide or a band. From one slide to the
next a ring stays where it is, and its slabs keep their distances; when it slides, it may move to another place. So a
*group*, the slabs of a ring between two slides or the workspace of a band, is placed as one: as low as none of its
slabs meets one that is placed. Rows that must wait may *rest*: they slide to a place of their size at once, and behind
the next band's place later, so that the rest of their ring is free between.

Source: first fit by falling size, as in Pisarchyk and Lee 2020, long use counted more or less; then a local search over
the best order: what ends highest, or any group, is placed earlier, which is kept unless the frame grows.
Time O(pairs of groups that meet) a trial.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from random import Random

import numpy as np

from cgraph.ir.bands import Event, Frame, Move
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Operand, Plan, Problem, UsageInterval
from cgraph.memory.rows import Rows, Step, steps_of
from cgraph.record import Record

WORK = 200_000  # pairs of groups compared for a frame that is used
MOST_TRIALS = 40
LONG = (0.0, 0.1, 0.3, 0.7)  # powers of a group's steps that count beside its bytes
WORTH = 0.97  # of the bytes that a frame without rests needs


class Slab(Record):
    """Bytes that are in use for some steps.

    Fields
        at: the first, counted from where the group begins
        nbytes: how many
        first, last: steps, both included
    """

    at: int
    nbytes: int
    first: int
    last: int


class Group(Record):
    """Slabs that are placed as one.

    Fields
        name: whose they are
        first: of a ring, the row that lies at its front
    """

    name: str
    first: int
    slabs: tuple[Slab, ...]

    @cached_property
    def steps(self) -> int:
        """From the first that it is in use to the last."""
        return max(x.last for x in self.slabs) - min(x.first for x in self.slabs) + 1

    @cached_property
    def nbytes(self) -> int:
        return max(slab.at + slab.nbytes for slab in self.slabs)


def frame_of(
    values: Sequence[Rows], events: Sequence[Event], workspaces: Sequence[int], alignment: int, work: int = WORK
) -> Frame:
    """A checked frame; rows rest where that makes it smaller by a part that is worth the copies.

    Parameters
        values: of a region, the join last
        events: its bands in running order
        workspaces: the bytes that each band needs besides
        alignment: rings and workspaces begin at multiples of it
        work: pairs of groups that may be compared
    """
    plain, bound = framed(values, steps_of(values, events, False), workspaces, alignment, work)
    if plain.nbytes < bound + alignment:
        return plain
    resting, _ = framed(values, steps_of(values, events, True), workspaces, alignment, work)
    return resting if resting.nbytes < plain.nbytes * WORTH else plain


def framed(
    values: Sequence[Rows], steps: Sequence[Step], workspaces: Sequence[int], alignment: int, work: int
) -> tuple[Frame, int]:
    """The frame of these bands and slides, checked, and the most bytes that are in use in it at a step."""
    groups, ring_of, room_of = groups_of(values, steps, workspaces)
    bases, nbytes = placed(groups, alignment, work)
    check_groups(groups, bases, nbytes)
    found = []
    for step, ring, room in zip(steps, ring_of, room_of):
        rows = 0 if ring < 0 else step.event.first - groups[ring].first
        at = 0 if ring < 0 else bases[ring] + rows * values[step.event.value].row_nbytes
        found.append(Move(step.event, at, step.slides, 0 if room < 0 else bases[room]))
    return Frame(tuple(found), nbytes), bound_of(groups)


def check_groups(groups: Sequence[Group], bases: Sequence[int], nbytes: int) -> None:
    """PlanError when two slabs in use at one step share bytes, or one leaves the frame."""
    operands = [Operand(x.nbytes, UsageInterval(x.first, x.last), group.name) for group in groups for x in group.slabs]
    offsets = [base + x.at for base, group in zip(bases, groups) for x in group.slabs]
    check_plan(Problem(tuple(operands), 1), Plan(tuple(offsets), nbytes))


# -- groups ------------------------------------------------------------------------------------------------------------


def groups_of(
    values: Sequence[Rows], steps: Sequence[Step], workspaces: Sequence[int]
) -> tuple[list[Group], list[int], list[int]]:
    """All groups, and for each step that of its ring and that of its workspace; -1 for none."""
    found, rooms, join = _Groups(values), iter(workspaces), len(values) - 1
    for t, step in enumerate(steps):
        i, first, stop = step.event.value, step.event.first, step.event.stop
        if step.slides:
            found.rings[i].read(first, stop, t)
        if step.anew:
            found.ended(i)
            found.rings[i].begin(first)
        if not step.slides:
            for read in values[i].reads:
                found.rings[read.source].read(read.first[first], read.stop[stop - 1], t)
        found.room_of.append(-1 if step.slides else found.room(i, next(rooms), t))
        found.ring_of.append(-1)
        if i != join:
            found.rings[i].write(stop - first, t)
    for i in range(join):
        found.ended(i)
    return found.groups, found.ring_of, found.room_of


class _Groups:
    """The groups as steps pass. Changes."""

    def __init__(self, values: Sequence[Rows]) -> None:
        self.values, self.groups = values, list[Group]()
        self.rings = [_Ring(value.row_nbytes) for value in values]
        self.ring_of, self.room_of = list[int](), list[int]()

    def ended(self, i: int) -> None:
        """The ring of a value is a group."""
        ring = self.rings[i]
        if ring.since:
            for t in set(ring.since):
                self.ring_of[t] = len(self.groups)
            self.groups.append(Group(self.values[i].name, ring.first, tuple(ring.slabs())))

    def room(self, i: int, nbytes: int, t: int) -> int:
        """The group of a workspace."""
        if not nbytes:
            return -1
        self.groups.append(Group(f"workspace of {self.values[i].name}", 0, (Slab(0, nbytes, t, t),)))
        return len(self.groups) - 1


class _Ring:
    """The rows of a value from one slide to the next. Changes as bands run.

    Fields
        first: the row in slot 0
        since, last: per row, the step from which it is there, and the last that reads it
    """

    def __init__(self, row_nbytes: int) -> None:
        self.row_nbytes = row_nbytes
        self.begin(0)

    def begin(self, first: int) -> None:
        self.first, self.since, self.last = first, [], []  # type: ignore[var-annotated]

    def write(self, count: int, step: int) -> None:
        self.since += [step] * count
        self.last += [step] * count

    def read(self, first: int, stop: int, step: int) -> None:
        for row in range(max(first - self.first, 0), stop - self.first):
            self.last[row] = step

    def slabs(self) -> Iterator[Slab]:
        """Neighbouring rows that are there for the same steps."""
        row = 0
        for (since, last), some in groupby(zip(self.since, self.last)):
            count = sum(1 for _ in some)
            yield Slab(row * self.row_nbytes, count * self.row_nbytes, since, last)
            row += count


# -- places ------------------------------------------------------------------------------------------------------------

Apart = list[list[tuple[int, int, int]]]
"""Per group, of others: which, and an open interval of bytes that the group may not begin behind that other one."""


def meetings(groups: Sequence[Group]) -> Apart:
    """What follows of every pair of slabs of different groups that are in use at one step."""
    rows = [(i, x.at, x.nbytes, x.first, x.last) for i, group in enumerate(groups) for x in group.slabs]
    rows.sort(key=lambda row: row[3])
    group, at, nbytes, first, last = np.array(rows, np.int64).T
    counts = np.searchsorted(first, last, "right") - np.arange(1, len(rows) + 1)
    one = np.repeat(np.arange(len(rows)), counts)
    other = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts) + one + 1
    one, other = np.concatenate([one, other]), np.concatenate([other, one])
    begin, end = at[other] - at[one] - nbytes[one], at[other] + nbytes[other] - at[one]
    found: Apart = [[] for _ in groups]
    apart = group[one] != group[other]
    for i, *rest in zip(*united(*(x[apart] for x in (group[one], group[other], begin, end)))):
        found[i].append(tuple(rest))  # type: ignore[arg-type]
    return found


def united(one: np.ndarray, other: np.ndarray, begin: np.ndarray, end: np.ndarray) -> list[list[int]]:
    """Intervals of the same two groups that overlap become one."""
    order = np.lexsort((begin, other, one))
    one, other, begin, end = one[order], other[order], begin[order], end[order]
    pair = np.concatenate([[0], ((one[1:] != one[:-1]) | (other[1:] != other[:-1])).cumsum()])[: len(one)]
    far = 1 + np.abs(begin).max(initial=0) + np.abs(end).max(initial=0)
    most = np.maximum.accumulate(end + 2 * far * pair)
    starts = np.flatnonzero(np.append(True, (begin + 2 * far * pair)[1:] >= most[:-1]))[: len(one)]
    stops = np.append(starts[1:], len(one))[: len(starts)] - 1
    ends = most[stops] - 2 * far * pair[stops]
    return [x.tolist() for x in (one[starts], other[starts], begin[starts], ends)]


def bound_of(groups: Sequence[Group]) -> int:
    """The most bytes in use at a step."""
    slabs = [x for group in groups for x in group.slabs]
    change = np.zeros(max((x.last for x in slabs), default=0) + 2, np.int64)
    for x in slabs:
        change[x.first] += x.nbytes
        change[x.last + 1] -= x.nbytes
    return int(change.cumsum().max())


def placed(groups: Sequence[Group], alignment: int, work: int) -> tuple[list[int], int]:
    """Where each group begins, and the bytes of all."""
    if not groups:
        return [], 0
    apart, sizes, bound = meetings(groups), [group.nbytes for group in groups], bound_of(groups)
    chance = Random(0)
    tried = [Trial(apart, sizes, falling(groups, long), alignment) for long in LONG]
    best = min(tried, key=lambda trial: trial.nbytes)
    for _ in range(min(work // (sum(map(len, apart)) + 1), MOST_TRIALS)):
        if best.nbytes < bound + alignment:
            break
        moved = best.worst if chance.random() < 0.5 else chance.choice(best.order)
        trial = Trial(apart, sizes, earlier(best.order, moved, chance), alignment)
        best = trial if trial.nbytes <= best.nbytes else best
    return best.bases, -(-best.nbytes // alignment) * alignment


class Trial:
    """A first fit in an order: where groups begin, the one that ends highest, and where that is."""

    def __init__(self, apart: Apart, sizes: Sequence[int], order: Sequence[int], alignment: int) -> None:
        self.order, self.bases = order, first_fit(apart, order, alignment)
        tops = [base + size for base, size in zip(self.bases, sizes)]
        self.worst = max(order, key=tops.__getitem__)
        self.nbytes = tops[self.worst]


def falling(groups: Sequence[Group], long: float) -> list[int]:
    """The groups by falling size, those that are in use for long before others."""
    return sorted(range(len(groups)), key=lambda i: (-groups[i].nbytes * groups[i].steps ** long, i))


def earlier(order: Sequence[int], group: int, chance: Random) -> list[int]:
    """The order with one group anywhere before its place."""
    found = [i for i in order if i != group]
    found.insert(chance.randrange(order.index(group) + 1), group)
    return found


def first_fit(apart: Apart, order: Sequence[int], alignment: int) -> list[int]:
    """Where each group begins: each in turn as low as none of its slabs meets one that is placed."""
    bases = [-1] * len(order)
    for i in order:
        taken = sorted((bases[k] + begin, bases[k] + end) for k, begin, end in apart[i] if bases[k] >= 0)
        base = 0
        for begin, end in taken:
            if begin >= base:
                break
            base = max(base, -(-end // alignment) * alignment)
        bases[i] = base
    return bases
