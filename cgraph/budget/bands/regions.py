"""Choice of the steps that run in bands of rows, so that a schedule fits into a number of bytes.

Idea: a region is a run of steps whose last value, the join, is the only one read outside. The rest of the schedule sees
one step that needs the values alive around it, its join and a band buffer: rings of a few rows instead of whole images.
Steps in between that read nothing computed (the packing of a Var's filters) run before the region. So the bytes of a
region do not depend on other regions, and the cheapest set of regions that fits is a shortest path over the positions
of the schedule. The rows in a ring depend only on its readers, so bands are simulated once for each join and band size,
over the longest region that ends there.

Source: Bellman 1957 (the shortest path over cuts); bands are those of `row_rings`.
Time: the bands of the longest region of each join, for each band size; O(regions) for each path.
Not done: the search does not reorder steps and computes no row twice.
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

PIXELS = (3136, 1568, 784, 448, 224, 112, 56, 1)  # minimum rows of a band
MOST_STEPS = 48  # maximum number of steps in a region
QUICK = 400_000  # maximum number of pairs of groups compared for a band buffer
GAPS = 0.04  # gaps in a band buffer of several values, as a share of the bytes alive
ALIKE = 0.75  # share of the gaps of a band buffer with more values
CALL_NS = 2500.0  # fixed cost of a call: handing out its tasks and waiting for the last


class Stage(Record, eq=False):
    """A step of a schedule.

    Fields
        nbytes: bytes of its value
        last: the last step that reads it; the number of steps if the value is an output
        workspace: extra bytes while it runs whole
        overwritten: bytes of operands that its value may overwrite
        rows: its value in bands, with the numbers of the steps that it reads; None if it must run whole
        columns: pixels of a row
        whole: the last step whose value each band reads whole, or -1; free steps do not count
        free: it reads nothing that is computed, except by free steps, so it may run earlier
        by_rows: its value may be stored row by row, since the steps that write and read it work by rows
        band_nbytes: workspace of the band of these rows, end excluded
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
    """Steps of a schedule that run in bands.

    Fields
        steps: in rising order; the last one is the join, and steps in between that are not listed run before
        pixels: approximate pixels of a band, which has at least one row
        frame: the band buffer
        over: an earlier step whose value the join overwrites
    """

    steps: tuple[int, ...]
    pixels: int
    frame: BandBuffer
    over: InPlaceJoin | None = None


class Search:
    """Search for the regions of one schedule. Changes: caches intermediate results.

    Parameters
        stages: its steps
        alignment: offsets of rings and values are multiples of it
        pixels: band sizes to try, falling
        slides_overlap: slides may overlap the previous place of their rows
    """

    def __init__(
        self, stages: Sequence[Stage], alignment: int, pixels: Sequence[int] = PIXELS, slides_overlap: bool = False
    ) -> None:
        self.stages, self.alignment, self.pixels, self.slides_overlap = stages, alignment, pixels, slides_overlap
        self.workspaces: dict[tuple[int, int, int], int] = {}
        self.framings: dict[int, Framing] = {}
        self.chains_lose = True

    def rounded(self, nbytes: int) -> int:
        return round_up(nbytes, self.alignment)

    @cached_property
    def across(self) -> list[int]:
        """Return, before each step, the bytes of values that it or a later step reads, or that are outputs."""
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
        """Return the bytes in use while each step runs whole."""
        stage = self.stages[t]
        own = self.rounded(stage.nbytes) + self.rounded(stage.workspace)
        return self.across[t] + own - min(stage.overwritten, self.rounded(stage.nbytes))

    def first_of(self, join: int) -> int:
        """Return the first step of the longest region that ends at `join`; ``join + 1`` if there is none."""
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
        """Return the steps of a region."""
        return tuple(t for t in range(first, join) if not self.stages[t].free) + (join,) * (first <= join)

    def before(self, first: int, join: int) -> int:
        """Return the bytes of the steps that run before a region, and of the largest workspace of one."""
        free = [stage for stage in self.stages[first:join] if stage.free]
        most = max((self.rounded(stage.workspace) for stage in free), default=0)
        return sum(self.rounded(stage.nbytes) for stage in free) + most

    @cached_property
    def readers(self) -> dict[int, list[tuple[int, Read]]]:
        """Return the readers of each step, and the rows that they read."""
        readers: dict[int, list[tuple[int, Read]]] = {}
        for t, stage in enumerate(self.stages):
            for read in stage.rows.reads if stage.rows else ():
                readers.setdefault(read.source, []).append((t, read))
        return readers

    @cached_property
    def forks(self) -> list[list[int]]:
        """Return, for each step, the values that it is the last to read and that may be stored row by row."""
        forks: list[list[int]] = [[] for _ in self.stages]
        for t, stage in enumerate(self.stages):
            if stage.by_rows and t in self.readers:
                forks[stage.last].append(t)
        return forks

    @cached_property
    def units(self) -> Units:
        """Return all regions, with the expected gaps of their band buffers."""
        rows = [row for join in range(len(self.stages)) for row in self.units_of(join)]
        units = units_of(rows)
        units.expect(units.first < units.join, GAPS)
        return units

    def values(self, steps: Sequence[int]) -> list[Rows]:
        """Return the steps of a region; their reads count by positions in the region."""
        at = {t: i for i, t in enumerate(steps)}
        return [inside(self.stages[t].rows, at) for t in steps]  # type: ignore[arg-type]

    def bands(self, values: Sequence[Rows], steps: Sequence[int], pixels: int) -> tuple[int, ...]:
        """Return the rows of a band of each value."""
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
        """Return the regions with the last of these steps and the same join, in bands of this size."""
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
        """Return the forks that the last of these steps may overwrite, in regions of some of the last of them."""
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
        """Return the search for the band buffer of a region."""
        framing = self.framings.get(unit)
        if framing is None:
            steps = self.steps(int(self.units.first[unit]), int(self.units.join[unit]))
            framing = self.framings[unit] = self.framed(steps, int(self.units.pixels[unit]))
        return framing

    def framed(self, steps: Sequence[int], pixels: int) -> Framing:
        """Return the band buffer of a region."""
        values = self.values(steps)
        events = pull_events(values, self.bands(values, steps, pixels))
        workspaces = [self.workspace(steps[event.value], event) for event in events]
        return Framing(values, events, workspaces, self.alignment, self.slides_overlap)

    def plan(self, choice: RegionChoice, work: int, most: int) -> None:
        """Plan the band buffer of a region, unless it needs more than `most` bytes or the search more than `work`.

        Regions that contain it have nearly the same gaps.
        """
        units, unit, framing = self.units, choice.unit, self.framing(choice.unit)
        framing.improve(work, most - choice.need(units) + int(units.frame[unit]))
        units.frame[unit], units.is_planned[unit] = framing.nbytes, True
        first, join = units.first[unit], units.join[unit]
        if first < join:
            gaps = framing.nbytes / max(units.alive[unit], 1) - 1
            units.expect((units.join >= join) & (units.first <= first), ALIKE * gaps)

    def workspace(self, t: int, event: Event) -> int:
        """Return the workspace of a band of a step in bytes; cached."""
        key = t, event.first, event.stop
        nbytes = self.workspaces.get(key)
        if nbytes is None:
            nbytes = self.workspaces[key] = self.stages[t].band_nbytes(event.first, event.stop)
        return nbytes

    def most_workspace(self, t: int, band: int) -> int:
        """Return the largest workspace of the first two bands of a step; later bands are like the second."""
        rows = self.stages[t].rows
        assert rows is not None
        stop = rows.stop(0, band)
        bands = (Event(t, 0, stop), *((Event(t, stop, rows.stop(stop, band)),) if stop < rows.rows else ()))
        return max(self.workspace(t, event) for event in bands)

    def fitting(self, most: int) -> list[Region]:
        """Return the cheapest regions with which every step needs at most `most` bytes; `most` is at least `least`."""
        return [self.region(choice) for choice in self.planned(most)]

    def region(self, choice: RegionChoice) -> Region:
        """Return a region with its band buffer."""
        units, unit = self.units, choice.unit
        steps = self.steps(int(units.first[unit]), int(units.join[unit]))
        over = InPlaceJoin(int(units.fork[unit]), int(units.ahead[unit])) if choice.is_over else None
        return Region(steps, int(units.pixels[unit]), self.framing(unit).best.frame(), over)

    @cached_property
    def least(self) -> int:
        """Return the fewest bytes for which `fitting` finds regions."""
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
        """Return the same search without planned band buffers."""
        other = self.another(self.units.shared)
        other.framings = {}
        return other

    def another(self, shared: np.ndarray, chains_lose: bool = True) -> "Search":
        """Return a search among the same regions that continues with the band buffers planned here."""
        other = copy(self)
        other.__dict__.pop("least", None)
        other.units, other.chains_lose = self.units.unplanned(shared), chains_lose
        other.units.expect(other.units.first < other.units.join, GAPS)
        return other

    def others(self, most: int) -> Iterator["Search"]:
        """Return this search with chains that lose no bytes, and this search without in-place joins: each may fit where
        this does not.
        """
        shared, none = self.units.shared, np.zeros_like(self.units.shared)
        loose = self.another(shared, False)
        if shared.any() and loose.ways(None)[0].nbytes < most:
            yield loose
        if shared.any() and ways_of(replace(self.units, shared=none), self.needs, None)[0].nbytes < most:
            yield self.another(none)

    def planned(self, most: int | None) -> list[RegionChoice]:
        """Return the regions on the best way, with planned band buffers; estimates of other regions are at most
        slightly too low.
        """
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
        """Return the best way from each position: the one with the fewest bytes, or the cheapest within `most`."""
        return ways_of(self.units, self.needs, most, self.chains_lose)

    @cached_property
    def needs(self) -> list[int]:
        """Return the bytes in use while each step runs whole."""
        return [self.needed(t) for t in range(len(self.stages))]


def inside(value: Rows, at: Mapping[int, int]) -> Rows:
    """Return a value whose operands count by these positions; operands without a position are dropped."""
    reads = tuple(replace(r, source=at[r.source]) for r in value.reads if r.source in at)
    return replace(value, reads=reads)
