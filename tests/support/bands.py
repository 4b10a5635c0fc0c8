"""Regions as long as they can be, whether or not they make a plan smaller: everything that is cut runs in bands.

Their joins lie over their forks wherever they may.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from cgraph.budget import fit
from cgraph.budget.bands import regions
from cgraph.budget.bands.band_buffer import Framing
from cgraph.budget.bands.build_bands import stages_of
from cgraph.budget.bands.fit_bands import regional
from cgraph.budget.bands.in_place_joins import Bands
from cgraph.budget.bands.region_paths import closest
from cgraph.budget.bands.regions import MOST_STEPS, Region, Search
from cgraph.budget.bands.row_rings import row_counts
from cgraph.budget.planner import Planner
from cgraph.ir.bands import InPlaceJoin
from cgraph.memory.smallest import Choice, smallest


@contextmanager
def longest_regions(most: int = MOST_STEPS) -> Iterator[None]:
    """``bands=`` of what is compiled meanwhile gives the longest regions, of at most so many steps."""
    with patch.object(fit, "fit_bands", in_longest), patch.object(regions, "MOST_STEPS", most):
        yield


def in_longest(known: Choice, room: int | None, bands: int, planner: Planner) -> Choice:
    search = Search(stages_of(known[0].layout, planner.facts.target), planner.alignment, (bands,))
    found, join = [], len(search.stages) - 1
    while join >= 0:
        first = min(search.first_of(join), join + 1)
        if first <= join:
            steps = search.steps(first, join)
            framing = search.framed(steps, bands)
            framing.improve(10_000)
            found.append(Region(steps, bands, framing.best.frame(), over_of(search, steps, framing)))
        join = min(first, join) - 1
    return smallest(regional(known[0], found[::-1], planner), planner.strategy)


def over_of(search: Search, steps: tuple[int, ...], framing: Framing) -> InPlaceJoin | None:
    """The fork that the join of a region shares most with."""
    done = row_counts(len(steps), [(event.value, event.first, event.stop) for event in framing.events])
    found = closest(search.overlaps(steps, Bands(framing.values[-1], done)), steps)[0]
    return InPlaceJoin(found.fork, found.ahead) if found.shared else None
