"""Which steps of a schedule are computed in bands of rows, so that the schedule fits into a number of bytes.

Idea: a region is a run of steps of which only the last value, its join, is read outside. To the rest of the schedule it
is one step that needs what is alive around it, its join, and a frame: rings of a few rows in place of whole images.
Steps between that read nothing which is computed, as the packing of a Var's filters, run before the region. So what a
region needs does not depend on other regions, and the cheapest set of regions in which everything needs at most so many
bytes is a shortest path over the positions of the schedule. What a ring holds depends on its readers alone, so bands
are simulated once for each join and band size, over the longest region that ends there.

Source: the shortest path over cuts is that of Bellman 1957; bands are those of `memory.rows`.
Time: the bands of the longest region of each join, for each band size; O(regions) a path.
What it does not do: change the order of steps, or compute a row twice.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from cgraph.ir.bands import Event, Frame
from cgraph.memory.frame import WORK, Framing
from cgraph.memory.rows import Rows, alive, pull, pulled
from cgraph.record import Record, replace

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
        taken: bytes of operands that it may take for its value
        rows: its value in bands, reading steps of the schedule; None when it must run whole
        columns: pixels of a row
        whole: the last step whose value each of its bands reads whole, or -1; steps that are free do not count
        free: it reads nothing that is computed, but by steps that are free, so it may run earlier
        band_nbytes: workspace of the band of these rows, the last excluded
    """

    nbytes: int
    last: int
    workspace: int = 0
    taken: int = 0
    rows: Rows | None = None
    columns: int = 1
    whole: int = -1
    free: bool = False
    band_nbytes: Callable[[int, int], int] = lambda first, stop: 0


class Region(Record):
    """Steps of a schedule that are computed in bands.

    Fields
        steps: rising; the last one is the join, and steps between that are not among them run before
        pixels: of a band, about; it has a row at least
        frame: of its bands
    """

    steps: tuple[int, ...]
    pixels: int
    frame: Frame


class Units(Record, eq=False):
    """The regions that end with one join. Changes: bytes of frames that were planned.

    Fields
        first, pixels: of each region
        around: bytes in use outside of its frame
        alive: bytes of rows and workspaces that are in use at one time, and a frame is hardly smaller
        nanoseconds: what its bands cost beyond those of whole steps
        is_planned: the frame was planned
        frame: bytes of the frame, or about as many
    """

    first: np.ndarray
    pixels: np.ndarray
    around: np.ndarray
    alive: np.ndarray
    nanoseconds: np.ndarray
    is_planned: np.ndarray
    frame: np.ndarray

    def expect(self, which: np.ndarray, gaps: float) -> None:
        """Frames of these regions that were not planned have at least so many gaps, as a part of what is alive."""
        about = np.where(which & ~self.is_planned, self.alive * (1 + gaps), 0).astype(int)
        np.maximum(self.frame, about, out=self.frame)


class Way(Record):
    """How the first steps of a schedule run.

    Fields
        nbytes: in use at most
        nanoseconds: what bands cost
        join, unit: the last region: its join, and which of those that end there; -1 for a step that runs whole
    """

    nbytes: int
    nanoseconds: float
    join: int = -1
    unit: int = -1


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
        self.framings: dict[tuple[int, int], Framing] = {}

    def rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.alignment) * self.alignment

    @cached_property
    def across(self) -> list[int]:
        """Before each step, the bytes of values that it or a later step reads, or that are kept."""
        change = [0] * (len(self.stages) + 2)
        for t, stage in enumerate(self.stages):
            change[t + 1] += self.rounded(stage.nbytes)
            change[min(stage.last, len(self.stages)) + 1] -= self.rounded(stage.nbytes)
        found, total = [], 0
        for x in change:
            total += x
            found.append(total)
        return found

    def needed(self, t: int) -> int:
        """Bytes in use while a step runs whole."""
        stage = self.stages[t]
        own = self.rounded(stage.nbytes) + self.rounded(stage.workspace)
        return self.across[t] + own - min(stage.taken, self.rounded(stage.nbytes))

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
    def units(self) -> list[Units]:
        """Per join its regions."""
        return [self.units_of(join) for join in range(len(self.stages))]

    def values(self, steps: Sequence[int]) -> list[Rows]:
        """The steps of a region, which read one another by their positions in it."""
        at = {t: i for i, t in enumerate(steps)}
        return [inside(self.stages[t].rows, at) for t in steps]  # type: ignore[arg-type]

    def bands(self, values: Sequence[Rows], steps: Sequence[int], pixels: int) -> tuple[int, ...]:
        """Rows of a band of each value."""
        return tuple(value.band(-(-pixels // self.stages[t].columns)) for value, t in zip(values, steps))

    def units_of(self, join: int) -> Units:
        steps = self.steps(self.first_of(join), join)
        found: list[tuple[int, int, int, int, float]] = []
        values = self.values(steps)
        known = set()
        for pixels in self.pixels if values else ():
            bands = self.bands(values, steps, pixels)
            if bands in known or (len(values) > 1 and all(b == v.inside for b, v in zip(bands, values))):
                continue
            known.add(bands)
            found += self.regions(steps, values, bands, pixels)
        columns = list(zip(*found)) or [()] * 5
        firsts, sizes, around, alive = (np.array(column, np.int64) for column in columns[:4])
        units = Units(firsts, sizes, around, alive, np.array(columns[4]), np.zeros(len(firsts), bool), alive.copy())
        units.expect(units.first < join, GAPS)
        return units

    def regions(
        self, steps: Sequence[int], values: Sequence[Rows], bands: Sequence[int], pixels: int
    ) -> list[tuple[int, int, int, int, float]]:
        """The regions with the last of these steps and the same join, in bands of this size: the columns of `Units`."""
        events, join = list(pull(values, bands)), steps[-1]
        held, which = alive(values, events), np.array([event[0] for event in events])
        frame = np.zeros(len(events), np.int64)
        found, calls = [], 0
        for i in range(len(steps) - 1, -1, -1):
            t, value, band = steps[i], values[i], bands[i]
            frame += np.where(which == i, self.rounded(self.most_workspace(t, band)), 0)
            if t < join:
                frame += held[i]
            calls += -(-value.inside // band) - 1
            around = self.across[t] + self.before(t, join) + self.rounded(self.stages[join].nbytes)
            found.append((t, pixels, around, self.rounded(int(frame.max())), calls * CALL_NS))
        return found

    def framing(self, join: int, unit: int) -> Framing:
        """The frames of a region that was found."""
        found = self.framings.get((join, unit))
        if found is None:
            units = self.units[join]
            steps = self.steps(int(units.first[unit]), join)
            found = self.framings[join, unit] = self.framed(steps, int(units.pixels[unit]))
        return found

    def framed(self, steps: Sequence[int], pixels: int) -> Framing:
        """The frames of a region."""
        values = self.values(steps)
        events = pulled(values, self.bands(values, steps, pixels))
        workspaces = [self.workspace(steps[event.value], event) for event in events]
        return Framing(values, events, workspaces, self.alignment)

    def plan(self, join: int, unit: int, work: int, most: int) -> None:
        """Plan the frame of a region, so that no more than so many bytes are in use, if that takes no more work.

        Regions that contain it have much the same gaps.
        """
        units, framing = self.units[join], self.framing(join, unit)
        first = units.first[unit]
        framing.improve(work, most - int(units.around[unit]))
        units.frame[unit], units.is_planned[unit] = framing.nbytes, True
        gaps = framing.nbytes / max(units.alive[unit], 1) - 1
        if first < join:
            for other in self.units[join:]:
                other.expect(other.first <= first, ALIKE * gaps)

    def need(self, join: int, unit: int) -> int:
        """Bytes in use with a region, as far as known."""
        units = self.units[join]
        return int(units.around[unit] + units.frame[unit])

    def workspace(self, t: int, event: Event) -> int:
        """Bytes of workspace of a band of a step, asked once."""
        key = t, event.first, event.stop
        found = self.workspaces.get(key)
        if found is None:
            found = self.workspaces[key] = self.stages[t].band_nbytes(event.first, event.stop)
        return found

    def most_workspace(self, t: int, band: int) -> int:
        """Bytes of workspace for bands of so many rows of a step: of the first two, after which they are alike."""
        rows = self.stages[t].rows
        assert rows is not None
        stop = rows.stop(0, band)
        bands = (Event(t, 0, stop), *((Event(t, stop, rows.stop(stop, band)),) if stop < rows.rows else ()))
        return max(self.workspace(t, event) for event in bands)

    def fitting(self, most: int) -> list[Region]:
        """The cheapest regions with which every step needs at most so many bytes, which are not below `least`."""
        return [self.region(join, unit) for join, unit in self.planned(most)]

    def region(self, join: int, unit: int) -> Region:
        """A region with its frame."""
        units, framing = self.units[join], self.framing(join, unit)
        steps = self.steps(int(units.first[unit]), join)
        return Region(steps, int(units.pixels[unit]), framing.best.frame())

    @cached_property
    def least(self) -> int:
        """The fewest bytes for which `fitting` finds regions."""
        found = self.planned(None)
        improved = set()
        while found:
            worst = max(found, key=lambda x: self.need(*x))
            if worst in improved or self.need(*worst) < self.ways(None)[-1].nbytes:
                break
            others = [self.need(*x) for x in found if x != worst]
            self.plan(*worst, WORK, max(others, default=0))
            improved.add(worst)
            found = self.planned(None)
        return self.ways(None)[-1].nbytes

    def planned(self, most: int | None) -> list[tuple[int, int]]:
        """The regions on the best way. Their frames are planned; those of others are hardly smaller than is assumed."""
        while True:
            ways = self.ways(most)
            found = self.chosen(ways)
            unknown = [(join, unit) for join, unit in found if not self.units[join].is_planned[unit]]
            if not unknown:
                return found
            if most is None:
                worst = max(unknown, key=lambda x: self.need(*x))
                room = ways[-1].nbytes
                self.plan(*worst, QUICK, room if self.need(*worst) < room else 0)
            else:
                for x in unknown:
                    self.plan(*x, QUICK, most)

    def ways(self, most: int | None) -> list[Way]:
        """The best way to each position: the fewest bytes, or the cheapest within so many bytes."""
        nbytes, ns = np.zeros((2, len(self.stages) + 1))
        found = [Way(0, 0.0)]
        for t, units in enumerate(self.units):
            needs = np.maximum(nbytes[units.first], units.around + units.frame)
            needs = np.append(needs, max(nbytes[t], self.needed(t)))
            costs = np.append(ns[units.first] + units.nanoseconds, ns[t])
            counted = needs if most is None else np.maximum(needs, most)
            best = np.where(counted == counted.min(), costs, np.inf).argmin()
            nbytes[t + 1], ns[t + 1] = needs[best], costs[best]
            is_unit = best < len(units.first)
            found.append(Way(int(needs[best]), float(costs[best]), t if is_unit else -1, int(best) if is_unit else -1))
        return found

    def chosen(self, ways: Sequence[Way]) -> list[tuple[int, int]]:
        """The regions on the way to the last position."""
        found: list[tuple[int, int]] = []
        t = len(ways) - 1
        while t:
            way = ways[t]
            if way.unit >= 0:
                found.append((way.join, way.unit))
            t = int(self.units[way.join].first[way.unit]) if way.unit >= 0 else t - 1
        return found[::-1]


def inside(value: Rows, at: Mapping[int, int]) -> Rows:
    """A value that counts its operands by these positions, without those that have none."""
    reads = tuple(replace(r, source=at[r.source]) for r in value.reads if r.source in at)
    return replace(value, reads=reads)
