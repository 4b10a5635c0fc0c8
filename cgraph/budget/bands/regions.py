"""Choice of the steps to compute in bands of rows, so that a schedule fits into a number of bytes.

Idea: a region is a run of steps of which only the last value, its join, is read outside. To the rest of the schedule it
is one step that needs what is alive around it, its join, and a frame: rings of a few rows in place of whole images.
Steps between that read nothing which is computed, as the packing of a Var's filters, run before the region. So what a
region needs does not depend on other regions, and the cheapest set of regions in which everything needs at most so many
bytes is a shortest path over the positions of the schedule. What a ring holds depends on its readers alone, so bands
are simulated once for each join and band size, over the longest region that ends there.

Source: the shortest path over cuts is that of Bellman 1957; bands are those of `row_rings`.
Time: the bands of the longest region of each join, for each band size; O(regions) a path.
What it does not do: change the order of steps, or compute a row twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np

from cgraph.budget.bands.band_buffer import WORK, Framing
from cgraph.budget.bands.in_place_joins import Bands
from cgraph.budget.bands.region_paths import (
    Overlap,
    RegionChoice,
    Row,
    Units,
    Way,
    best_regions,
    closest,
    units_of,
    ways_of,
)
from cgraph.budget.bands.row_rings import Read, Rows, alive, pull, pull_events, row_counts
from cgraph.ir.bands import BandBuffer, Event, InPlaceJoin
from cgraph.record import Record, replace
from cgraph.system.alignment import round_up

PIXELS = (3136, 1568, 784, 448, 224, 112, 56, 1)  # of a band
MOST_STEPS = 48  # in a region
QUICK = 400_000  # pairs of groups compared for a frame that is looked at
GAPS = 0.04  # of what is alive at one time: about what a frame of several values needs besides
ALIKE = 0.75  # of the gaps in a frame are about those of one that has more values
CALL_NS = 2500.0  # what a call costs beyond its work: handing out its tasks, waiting for the last


class Stage(Record, eq=False):
    """A step of a schedule.

    Fields
        nbytes: of its value
        last: the last step that reads it; as many as there are steps when it is kept
        workspace: bytes besides while it runs whole
        overwritten: bytes of operands that it may take for its value
        rows: its value in bands, reading steps of the schedule; None when it must run whole
        columns: pixels of a row
        whole: the last step whose value each of its bands reads whole, or -1; steps that are free do not count
        free: it reads nothing that is computed, but by steps that are free, so it may run earlier
        by_rows: its value may lie row by row, since whoever makes or reads it does so by rows
        band_nbytes: workspace of the band of these rows, the last excluded
    """

    nbytes: int
    last: int
    workspace: int = 0
    overwritten: int = 0
    rows: Rows | None = None
    columns: int = 1
    whole: int = -1
    free: bool = False
    by_rows: bool = False
    band_nbytes: Callable[[int, int], int] = lambda first, stop: 0


class Region(Record):
    """Steps of a schedule that are computed in bands.

    Fields
        steps: rising; the last one is the join, and steps between that are not among them run before
        pixels: of a band, about; it has a row at least
        frame: of its bands
        over: an earlier step whose value the join lies over
    """

    steps: tuple[int, ...]
    pixels: int
    frame: BandBuffer
    over: InPlaceJoin | None = None


class Search:
    """The regions of one schedule. Changes: what was worked out is kept.

    Parameters
        stages: its steps
        alignment: bytes that rings and values begin at multiples of
        pixels: sizes of bands to be tried, falling
    """

    def __init__(self, stages: Sequence[Stage], alignment: int, pixels: Sequence[int] = PIXELS) -> None:
        self.stages, self.alignment, self.pixels = stages, alignment, pixels
        self.workspaces: dict[tuple[int, int, int], int] = {}
        self.framings: dict[int, Framing] = {}
        self.chains_lose = True

    def rounded(self, nbytes: int) -> int:
        return round_up(nbytes, self.alignment)

    @cached_property
    def across(self) -> list[int]:
        """Before each step, the bytes of values that it or a later step reads, or that are kept."""
        change = [0] * (len(self.stages) + 2)
        for t, stage in enumerate(self.stages):
            change[t + 1] += self.rounded(stage.nbytes)
            change[min(stage.last, len(self.stages)) + 1] -= self.rounded(stage.nbytes)
        totals, total = [], 0
        for x in change:
            total += x
            totals.append(total)
        return totals

    def needed(self, t: int) -> int:
        """Bytes in use while a step runs whole."""
        stage = self.stages[t]
        own = self.rounded(stage.nbytes) + self.rounded(stage.workspace)
        return self.across[t] + own - min(stage.overwritten, self.rounded(stage.nbytes))

    def first_of(self, join: int) -> int:
        """The first step of the longest region that ends at `join`; behind it when there is none."""
        least = join + 1
        whole = -1
        for t in range(join, max(join - MOST_STEPS, -1), -1):
            stage = self.stages[t]
            if stage.free and t < join:
                continue
            whole = max(whole, stage.whole)
            if stage.rows is None or whole >= t or (t < join and stage.last > join):
                break
            least = t
        least = max(least, whole + 1)
        while least < join and self.stages[least].free:
            least += 1
        return least

    def steps(self, first: int, join: int) -> tuple[int, ...]:
        """The steps of a region."""
        return tuple(t for t in range(first, join) if not self.stages[t].free) + (join,) * (first <= join)

    def before(self, first: int, join: int) -> int:
        """Bytes of the steps that run before a region, and of the largest workspace of one."""
        free = [stage for stage in self.stages[first:join] if stage.free]
        most = max((self.rounded(stage.workspace) for stage in free), default=0)
        return sum(self.rounded(stage.nbytes) for stage in free) + most

    @cached_property
    def readers(self) -> dict[int, list[tuple[int, Read]]]:
        """Which steps read each one, and which rows of it."""
        readers: dict[int, list[tuple[int, Read]]] = {}
        for t, stage in enumerate(self.stages):
            for read in stage.rows.reads if stage.rows else ():
                readers.setdefault(read.source, []).append((t, read))
        return readers

    @cached_property
    def forks(self) -> list[list[int]]:
        """Per step, the values that may lie by rows, and that it is the last to read."""
        forks: list[list[int]] = [[] for _ in self.stages]
        for t, stage in enumerate(self.stages):
            if stage.by_rows and t in self.readers:
                forks[stage.last].append(t)
        return forks

    @cached_property
    def units(self) -> Units:
        """All regions, with the gaps that frames of several values are expected to have."""
        rows = [row for join in range(len(self.stages)) for row in self.units_of(join)]
        units = units_of(rows)
        units.expect(units.first < units.join, GAPS)
        return units

    def values(self, steps: Sequence[int]) -> list[Rows]:
        """The steps of a region, which read one another by their positions in it."""
        at = {t: i for i, t in enumerate(steps)}
        return [inside(self.stages[t].rows, at) for t in steps]  # type: ignore[arg-type]

    def bands(self, values: Sequence[Rows], steps: Sequence[int], pixels: int) -> tuple[int, ...]:
        """Rows of a band of each value."""
        return tuple(value.band(-(-pixels // self.stages[t].columns)) for value, t in zip(values, steps))

    def units_of(self, join: int) -> list[Row]:
        steps = self.steps(self.first_of(join), join)
        values, sizes, rows = self.values(steps), set(), list[Row]()
        for pixels in self.pixels if values else ():
            bands = self.bands(values, steps, pixels)
            if bands in sizes or (len(values) > 1 and all(b == v.inside for b, v in zip(bands, values))):
                continue
            sizes.add(bands)
            rows += self.regions(steps, values, bands, pixels)
        return rows

    def regions(self, steps: Sequence[int], values: Sequence[Rows], bands: Sequence[int], pixels: int) -> Iterator[Row]:
        """The regions with the last of these steps and the same join, in bands of this size."""
        events, join = list(pull(values, bands)), steps[-1]
        done = row_counts(len(values), events)
        row_bytes, which = alive(values, done), np.array([event[0] for event in events])
        overs = closest(self.overlaps(steps, Bands(values[-1], done)), steps)
        frame, calls = np.zeros(len(events), np.int64), 0
        for i in range(len(steps) - 1, -1, -1):
            t, value, band = steps[i], values[i], bands[i]
            frame += np.where(which == i, self.rounded(self.most_workspace(t, band)), 0)
            if t < join:
                frame += row_bytes[i]
            calls += -(-value.inside // band) - 1
            around = self.across[t] + self.before(t, join) + self.rounded(self.stages[join].nbytes)
            over = overs[i]
            yield (
                t,
                join,
                pixels,
                around,
                over.fork,
                over.ahead,
                over.shared,
                self.rounded(int(frame.max())),
                calls * CALL_NS,
            )

    def overlaps(self, steps: Sequence[int], bands: Bands) -> list[Overlap]:
        """The forks that the last of these steps may lie over, in regions of some of the last of them."""
        first, join = steps[0], steps[-1]
        if not self.stages[join].by_rows:
            return []
        overlaps, at = [], {t: i for i, t in enumerate(steps)}
        for fork in (x for t in steps for x in self.forks[t] if self.readers[x][0][0] >= first):
            rows = self.stages[fork].rows
            assert rows is not None
            ahead = self.rounded(bands.ahead(rows, [(at[t], read) for t, read in self.readers[fork]]))
            own, other = (self.rounded(self.stages[t].nbytes) for t in (join, fork))
            shared = own + other - max(own, ahead + other)
            if shared > 0:
                overlaps.append(Overlap(fork, self.readers[fork][0][0], ahead, shared))
        return overlaps

    def framing(self, unit: int) -> Framing:
        """The frames of a region that was found."""
        framing = self.framings.get(unit)
        if framing is None:
            steps = self.steps(int(self.units.first[unit]), int(self.units.join[unit]))
            framing = self.framings[unit] = self.framed(steps, int(self.units.pixels[unit]))
        return framing

    def framed(self, steps: Sequence[int], pixels: int) -> Framing:
        """The frames of a region."""
        values = self.values(steps)
        events = pull_events(values, self.bands(values, steps, pixels))
        workspaces = [self.workspace(steps[event.value], event) for event in events]
        return Framing(values, events, workspaces, self.alignment)

    def plan(self, choice: RegionChoice, work: int, most: int) -> None:
        """Plan the frame of a region, so that no more than so many bytes are in use, if that takes no more work.

        Regions that contain it have much the same gaps.
        """
        units, unit, framing = self.units, choice.unit, self.framing(choice.unit)
        framing.improve(work, most - choice.need(units) + int(units.frame[unit]))
        units.frame[unit], units.is_planned[unit] = framing.nbytes, True
        first, join = units.first[unit], units.join[unit]
        if first < join:
            gaps = framing.nbytes / max(units.alive[unit], 1) - 1
            units.expect((units.join >= join) & (units.first <= first), ALIKE * gaps)

    def workspace(self, t: int, event: Event) -> int:
        """Bytes of workspace of a band of a step, asked once."""
        key = t, event.first, event.stop
        nbytes = self.workspaces.get(key)
        if nbytes is None:
            nbytes = self.workspaces[key] = self.stages[t].band_nbytes(event.first, event.stop)
        return nbytes

    def most_workspace(self, t: int, band: int) -> int:
        """Bytes of workspace for bands of so many rows of a step: of the first two, after which they are alike."""
        rows = self.stages[t].rows
        assert rows is not None
        stop = rows.stop(0, band)
        bands = (Event(t, 0, stop), *((Event(t, stop, rows.stop(stop, band)),) if stop < rows.rows else ()))
        return max(self.workspace(t, event) for event in bands)

    def fitting(self, most: int) -> list[Region]:
        """The cheapest regions with which every step needs at most so many bytes, which are not below `least`."""
        return [self.region(choice) for choice in self.planned(most)]

    def region(self, choice: RegionChoice) -> Region:
        """A region with its frame."""
        units, unit = self.units, choice.unit
        steps = self.steps(int(units.first[unit]), int(units.join[unit]))
        over = InPlaceJoin(int(units.fork[unit]), int(units.ahead[unit])) if choice.is_over else None
        return Region(steps, int(units.pixels[unit]), self.framing(unit).best.frame(), over)

    @cached_property
    def least(self) -> int:
        """The fewest bytes for which `fitting` finds regions."""
        choices = self.planned(None)
        improved = set()
        while choices:
            worst = max(choices, key=lambda x: x.need(self.units))
            if worst.unit in improved or worst.need(self.units) < self.ways(None)[0].nbytes:
                break
            others = [x.need(self.units) for x in choices if x is not worst]
            self.plan(worst, WORK, max(others, default=0))
            improved.add(worst.unit)
            choices = self.planned(None)
        return self.ways(None)[0].nbytes

    def fresh(self) -> "Search":
        """The same search, which has planned nothing."""
        other = self.another(self.units.shared)
        other.framings = {}
        return other

    def another(self, shared: np.ndarray, chains_lose: bool = True) -> "Search":
        """A search among the same regions, which goes on with the frames that this one has planned."""
        other = copy(self)
        other.__dict__.pop("least", None)
        other.units, other.chains_lose = self.units.unplanned(shared), chains_lose
        other.units.expect(other.units.first < other.units.join, GAPS)
        return other

    def others(self, most: int) -> Iterator["Search"]:
        """This search where chains lose no bytes, and without a join over its fork: as far as less may do then."""
        shared, none = self.units.shared, np.zeros_like(self.units.shared)
        loose = self.another(shared, False)
        if shared.any() and loose.ways(None)[0].nbytes < most:
            yield loose
        if shared.any() and ways_of(replace(self.units, shared=none), self.needs, None)[0].nbytes < most:
            yield self.another(none)

    def planned(self, most: int | None) -> list[RegionChoice]:
        """The regions on the best way. Their frames are planned; those of others are hardly smaller than is assumed."""
        while True:
            ways = self.ways(most)
            choices = best_regions(self.units, ways)
            unknown = [x for x in choices if not self.units.is_planned[x.unit]]
            if not unknown:
                return choices
            if most is None:
                worst = max(unknown, key=lambda x: x.need(self.units))
                room = ways[0].nbytes
                self.plan(worst, QUICK, room if worst.need(self.units) < room else 0)
            else:
                for x in unknown:
                    self.plan(x, QUICK, most)

    def ways(self, most: int | None) -> list[Way]:
        """The best way from each position on: the fewest bytes, or the cheapest within so many bytes."""
        return ways_of(self.units, self.needs, most, self.chains_lose)

    @cached_property
    def needs(self) -> list[int]:
        """Bytes in use while each step runs whole."""
        return [self.needed(t) for t in range(len(self.stages))]


def inside(value: Rows, at: Mapping[int, int]) -> Rows:
    """A value that counts its operands by these positions, without those that have none."""
    reads = tuple(replace(r, source=at[r.source]) for r in value.reads if r.source in at)
    return replace(value, reads=reads)
