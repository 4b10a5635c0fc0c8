"""Band buffers: the offsets of the rings and workspaces of a region. Placing them is a separate planning problem.

Idea: the rows of a ring are contiguous. Other rings can use the bytes of rows that are not written yet or no longer
read. A *slab* is a run of neighbouring rows in use for the same steps; a step is a slide or a band. Between two slides
a ring does not move, and its slabs keep their distances; a slide may move it. A *group* (the slabs of a ring between
two slides, or the workspace of a band) is therefore placed as one, at the lowest address where none of its slabs
overlaps another one in use. Idle rows may be *parked*: they slide to a slot of their size immediately, and back when
the next band needs them. Where bands repeat, rows slide home before the first repetition and after each, and the groups
that begin there are one group.

A slide may overlap the previous place of its rows where one call moves them (`cgraph.kernels.move.calls.move_calls`):
their previous bytes are in use up to the step before it.

Source: line buffers with slides; placement by `cgraph.memory.packing`.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, product

from cgraph.budget.bands.repeated_bands import Period
from cgraph.budget.bands.row_rings import BandStep, Rows, steps_of
from cgraph.ir.bands import BandBuffer, BandLoop, Event, Move
from cgraph.memory.packing import Group, Packing, Slab
from cgraph.record import replace

WORK = 10_000_000  # maximum number of pairs of groups compared for one band buffer
WORTH = 0.97  # share of the bytes of the band buffer without parked rows, or without slides that overlap


class Framing:
    """Band buffers of a region; a longer search gives smaller ones. Changes.

    Rows are parked, and slides overlap, where the saving is worth it.

    Parameters
        values: the values of a region; the join is the last
        events: the bands in running order
        workspaces: the workspace of each band, in bytes
        alignment: offsets of rings and workspaces are multiples of it
        slides_overlap: slides may overlap the previous place of their rows
    """

    def __init__(
        self,
        values: Sequence[Rows],
        events: Sequence[Event],
        workspaces: Sequence[int],
        alignment: int,
        slides_overlap: bool = False,
    ) -> None:
        self.values, self.events, self.workspaces, self.alignment = values, events, workspaces, alignment
        self.slides_overlap, self.kinds = slides_overlap, dict[tuple[bool, bool], Framed]()
        self.plain = self.framed(False, False)

    def framed(self, overlaps: bool, rests: bool) -> "Framed":
        """Return the bands in which slides overlap, or rows are parked; cached."""
        kind = overlaps, rests
        if kind not in self.kinds:
            steps = steps_of(self.values, self.events, rests)
            self.kinds[kind] = Framed(self.values, steps, self.workspaces, self.alignment, overlaps)
        return self.kinds[kind]

    def improve(self, work: int = WORK, enough: int = 0) -> None:
        """Search until the buffer has at most `enough` bytes, or `work` pairs of groups of a kind were compared."""
        self.plain.packing.improve(work, enough)
        for overlaps, rests in product((False, True)[: 1 + self.slides_overlap], (False, True)):
            if self.nbytes <= enough:
                return
            if rests and self.framed(overlaps, False).packing.is_least:
                continue
            packing = self.framed(overlaps, rests).packing
            if packing.bound < WORTH * self.nbytes:
                packing.improve(work, enough)

    @property
    def best(self) -> "Framed":
        """Return the smallest of the plans tried so far; of nearly equal ones the one with the fewest copies."""
        best = self.plain
        for kind in sorted(self.kinds):
            if self.kinds[kind].nbytes < WORTH * best.nbytes:
                best = self.kinds[kind]
        return best

    @property
    def nbytes(self) -> int:
        return self.best.nbytes


class Framed:
    """The bands and slides of a region with their offsets in the band buffer. Changes: the search improves the
    offsets.
    """

    def __init__(
        self,
        values: Sequence[Rows],
        steps: Sequence[BandStep],
        workspaces: Sequence[int],
        alignment: int,
        slides_overlap: bool = False,
    ) -> None:
        self.values, self.steps = values, steps
        groups, self.ring_of, self.room_of = groups_of(values, steps, workspaces, slides_overlap)
        self.packing = Packing(groups, alignment)

    @property
    def nbytes(self) -> int:
        return self.packing.nbytes

    def frame(self) -> BandBuffer:
        """Return the band buffer, checked."""
        self.packing.check()
        bases = self.packing.bases.tolist()
        moves = []
        for step, (ring, front), room in zip(self.steps, self.ring_of, self.room_of):
            rows = step.event.first - front
            at = 0 if ring < 0 else bases[ring] + rows * self.values[step.event.value].row_nbytes
            inside = (0, 0) if room < 0 else (bases[room], self.packing.groups[room].nbytes)
            moves.append(Move(step.event, at, step.slides, *inside))
        return BandBuffer(tuple(moves), self.nbytes)


def loop_frame(
    values: Sequence[Rows],
    events: Sequence[Event],
    workspaces: Sequence[int],
    alignment: int,
    period: Period,
) -> BandBuffer:
    """Return a checked band buffer in which every repetition of the bands uses the same offsets.

    Parameters
        values, events, workspaces, alignment: as for `Framing`, for a picture in which the bands run once
    """
    steps = steps_of(values, events, False, (period.first, period.last))
    framed = Framed(values, steps, workspaces, alignment)
    framed.packing.improve(WORK)
    frame = framed.frame()
    first, last = (next(t for t, x in enumerate(steps) if x.event == events[k]) for k in (period.first, period.last))
    return replace(frame, loop=BandLoop(first, last, period.begin, period.shift, period.count))


# -- groups ------------------------------------------------------------------------------------------------------------


def groups_of(
    values: Sequence[Rows], steps: Sequence[BandStep], workspaces: Sequence[int], slides_overlap: bool = False
) -> tuple[list[Group], list[tuple[int, int]], list[int]]:
    """Return all groups; for each step the group of its ring with the row at its front, and the group of its workspace
    or -1. If `slides_overlap`, the rows that a slide reads are in use up to the step before it.
    """
    groups, rooms, join = _Groups(values), iter(workspaces), len(values) - 1
    for t, step in enumerate(steps):
        i, first, stop = step.event.value, step.event.first, step.event.stop
        if step.slides:
            groups.rings[i].read(first, stop, t - slides_overlap)
        if step.anew:
            groups.ended(i)
            groups.rings[i].begin(first, step.home)
        if not step.slides:
            for read in values[i].reads:
                groups.rings[read.source].read(read.first[first], read.stop[stop - 1], t)
        groups.room_of.append(-1 if step.slides else groups.room(i, next(rooms), t))
        groups.ring_of.append((-1, first))
        if i != join:
            groups.rings[i].write(stop - first, t)
    for i in range(join):
        groups.ended(i)
    return groups.groups, groups.ring_of, groups.room_of


class _Groups:
    """Groups of slabs, built step by step. Changes.

    Fields
        homes: the groups that begin at their home offset, by value
    """

    def __init__(self, values: Sequence[Rows]) -> None:
        self.values, self.groups, self.homes = values, list[Group](), dict[int, int]()
        self.rings = [_Ring(value.row_nbytes) for value in values]
        self.ring_of, self.room_of = list[tuple[int, int]](), list[int]()

    def ended(self, i: int) -> None:
        """Close the ring of a value: as a new group, or as a part of the group at its home."""
        ring = self.rings[i]
        if not ring.since:
            return
        number = self.homes.get(i, len(self.groups)) if ring.home else len(self.groups)
        for t in set(ring.since):
            self.ring_of[t] = number, ring.first
        if ring.home and i in self.homes:
            group = self.groups[number]
            self.groups[number] = Group(group.name, group.first, (*group.slabs, *ring.slabs()))
        else:
            self.groups.append(Group(self.values[i].name, ring.first, tuple(ring.slabs())))
        if ring.home:
            self.homes[i] = number

    def room(self, i: int, nbytes: int, t: int) -> int:
        """Add the group of a workspace."""
        if not nbytes:
            return -1
        self.groups.append(Group(f"workspace of {self.values[i].name}", 0, (Slab(0, nbytes, t, t),)))
        return len(self.groups) - 1


class _Ring:
    """The rows of a value from one slide to the next. Changes as bands run.

    Fields
        first: the row in slot 0
        home: True if its offset is the ring's home
        since, last: for each row, the step that writes it and the last step that reads it
    """

    def __init__(self, row_nbytes: int) -> None:
        self.row_nbytes = row_nbytes
        self.begin(0)

    def begin(self, first: int, home: bool = False) -> None:
        self.first, self.home, self.since, self.last = first, home, [], []  # type: ignore[var-annotated]

    def write(self, count: int, step: int) -> None:
        self.since += [step] * count
        self.last += [step] * count

    def read(self, first: int, stop: int, step: int) -> None:
        for row in range(max(first - self.first, 0), stop - self.first):
            self.last[row] = step

    def slabs(self) -> Iterator[Slab]:
        """Yield the runs of neighbouring rows that are in use for the same steps."""
        row = 0
        for (since, last), some in groupby(zip(self.since, self.last)):
            count = sum(1 for _ in some)
            yield Slab(row * self.row_nbytes, count * self.row_nbytes, since, last)
            row += count
