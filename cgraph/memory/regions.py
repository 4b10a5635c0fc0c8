"""Which steps of a schedule are computed in bands of rows, so that the schedule fits into a number of bytes.

Idea: a region is a run of steps of which only the last value, its join, is read outside. To the rest of the schedule it
is one step that needs what is alive around it, its join, and a frame: rings of a few rows in place of whole images. So
what a region needs does not depend on other regions, and the cheapest set of regions in which everything needs at most
so many bytes is a shortest path over the positions of the schedule. What a ring holds depends on its readers alone, so
bands are simulated once for each join and band size, over the longest region that ends there.

Source: the shortest path over cuts is that of Bellman 1957; bands are those of `memory.rows`.
Time: the bands of the longest region of each join, for each band size; O(regions) a path.
What it does not do: change the order of steps, or compute a row twice.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

from cgraph.memory.rows import Rows, heights, pull
from cgraph.record import Record, replace

PIXELS = (3136, 1568, 784, 448, 224, 112, 56, 1)  # of a band
MOST_STEPS = 48  # in a region
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
        whole: the last step whose value each of its bands reads whole, or -1
        band_nbytes: workspace of a band of so many rows
    """

    nbytes: int
    last: int
    workspace: int = 0
    taken: int = 0
    rows: Rows | None = None
    columns: int = 1
    whole: int = -1
    band_nbytes: Callable[[int], int] = lambda rows: 0


class Region(Record):
    """Steps ``first..last`` of a schedule, both included; the last one is the join.

    Fields
        pixels: of a band, about; it has a row at least
    """

    first: int
    last: int
    pixels: int


class Unit(Record):
    """A region, what is in use while it runs, and what its bands cost beyond those of whole steps."""

    region: Region
    nbytes: int
    nanoseconds: float


class Search:
    """The regions of one schedule. Changes: what was worked out is kept.

    Parameters
        stages: its steps
        alignment: bytes that rings and values begin at multiples of
        pixels: sizes of bands to be tried, falling
    """

    def __init__(self, stages: Sequence[Stage], alignment: int, pixels: Sequence[int] = PIXELS) -> None:
        self.stages, self.alignment, self.pixels = stages, alignment, pixels
        self.workspaces: dict[tuple[int, int], int] = {}

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
            whole = max(whole, stage.whole)
            if stage.rows is None or whole >= t or (t < join and stage.last > join):
                break
            least = t
        return max(least, whole + 1)

    @cached_property
    def units(self) -> list[list[Unit]]:
        """Per join its regions."""
        return [self.units_of(join) for join in range(len(self.stages))]

    def units_of(self, join: int) -> list[Unit]:
        start = self.first_of(join)
        if start > join:
            return []
        stages = self.stages[start : join + 1]
        values = [inside(stage.rows, start) for stage in stages]  # type: ignore[arg-type]
        found, known = [], set()
        for pixels in self.pixels:
            bands = tuple(value.band(-(-pixels // stage.columns)) for value, stage in zip(values, stages))
            if bands in known or (len(values) > 1 and all(b == v.inside for b, v in zip(bands, values))):
                continue
            known.add(bands)
            found += self.regions(start, join, values, bands, pixels)
        return found

    def regions(self, start: int, join: int, values: list[Rows], bands: Sequence[int], pixels: int) -> list[Unit]:
        """The regions that end at `join`, with bands of this size."""
        rows = heights(values, pull(values, bands))
        found, frame, workspace, calls = [], 0, 0, 0
        for t in range(join, start - 1, -1):
            value, band = values[t - start], bands[t - start]
            frame += self.rounded(rows[t - start] * value.row_nbytes)
            workspace = max(workspace, self.workspace(t, band))
            calls += -(-value.inside // band) - 1
            nbytes = self.across[t] + self.rounded(self.stages[join].nbytes) + frame + self.rounded(workspace)
            found.append(Unit(Region(t, join, pixels), nbytes, calls * CALL_NS))
        return found

    def workspace(self, t: int, band: int) -> int:
        """Bytes of workspace for bands of so many rows of a step, asked once."""
        found = self.workspaces.get((t, band))
        if found is None:
            found = self.workspaces[t, band] = self.stages[t].band_nbytes(band)
        return found

    def fitting(self, most: int) -> list[Region]:
        """The cheapest regions with which every step needs at most so many bytes, which are not below `least`."""
        best: list[tuple[float, int, Unit | None]] = [(0.0, 0, None)]
        never = float("inf")
        for t in range(len(self.stages)):
            found = (best[t][0] if self.needed(t) <= most else never, t, None)
            for unit in self.units[t]:
                cost = best[unit.region.first][0] + unit.nanoseconds
                if unit.nbytes <= most and cost < found[0]:
                    found = (cost, unit.region.first, unit)  # type: ignore[assignment]
            best.append(found)  # type: ignore[arg-type]
        return chosen(best)

    def least(self) -> int:
        """The fewest bytes for which `fitting` finds regions."""
        best = [0]
        for t in range(len(self.stages)):
            ways = [max(best[unit.region.first], unit.nbytes) for unit in self.units[t]]
            best.append(min([max(best[t], self.needed(t)), *ways]))
        return best[-1]


def chosen(best: Sequence[tuple[float, int, Unit | None]]) -> list[Region]:
    """The regions on the way to the last position."""
    found: list[Region] = []
    t = len(best) - 1
    while t:
        _, before, unit = best[t]
        if unit is not None:
            found.append(unit.region)
        t = before
    return found[::-1]


def inside(value: Rows, first: int) -> Rows:
    """A value that counts its operands from step `first` on, without those before."""
    reads = tuple(replace(r, source=r.source - first) for r in value.reads if r.source >= first)
    return replace(value, reads=reads)
