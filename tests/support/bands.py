"""Regions as long as they can be, whether or not they make a plan smaller: everything that is cut runs in bands."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from cgraph import budget
from cgraph.budget import regional
from cgraph.memory.layout import Facts
from cgraph.memory.problem import Strategy
from cgraph.memory.regions import Region, Search
from cgraph.memory.smallest import Choice, smallest
from cgraph.passes.stream_rows import stages_of


@contextmanager
def longest_regions() -> Iterator[None]:
    """``bands=`` of what is compiled meanwhile gives the longest regions."""
    with patch.object(budget, "in_bands", in_longest):
        yield


def in_longest(known: Choice, room: int | None, bands: int, strategy: Strategy, alignment: int, facts: Facts) -> Choice:
    search = Search(stages_of(known[0].layout, facts.target), alignment, (bands,))
    regions, join = [], len(search.stages) - 1
    while join >= 0:
        first = min(search.first_of(join), join + 1)
        if first <= join:
            steps = search.steps(first, join)
            framing = search.framed(steps, bands)
            framing.improve(10_000)
            regions.append(Region(steps, bands, framing.best.frame()))
        join = min(first, join) - 1
    return smallest(regional(known[0], regions[::-1], alignment, facts), strategy)
