"""Plans with regions in bands of rows: the cheapest plan that fits, else the smallest one."""

from collections.abc import Sequence

from cgraph.budget.bands.build_bands import COLUMNS, row_major_nodes, stages_of, stream_rows
from cgraph.budget.bands.regions import PIXELS, Region, Search
from cgraph.budget.bands.streamed_bands import Fed
from cgraph.budget.bands.streamed_rows import region_of
from cgraph.budget.planner import Planner
from cgraph.kernels.move.calls import moves_in_order
from cgraph.memory.smallest import Candidate, Choice, smaller
from cgraph.record import replace

STREAMED_ROWS = (64, 32, 16, 8, 4, 2, 1)  # rows of a band of streamed images
FREE_ROWS = 16  # rows of such a band without a budget


def fit_bands(
    whole: Choice,
    nbytes: int | None,
    pixels: int | None,
    planner: Planner,
    search: Search | None = None,
) -> Choice:
    """Return the cheapest plan in bands that fits, else the smallest one.

    The search does not model how a strategy packs values, so it subtracts the excess of a plan from its next goal. The
    search for the smallest plan does not depend on the budget. In-place joins can be hard to pack, so it counts them in
    more than one way.

    Parameters
        whole: the plan without bands
        nbytes: the budget; None for the smallest plan
        pixels: minimum number of pixels of a band; None for any number
        search: a search for regions of `whole`; its plans are not used
    """
    first = search.fresh() if search else search_of(whole, pixels, planner)
    if nbytes is not None and nbytes >= first.least:
        best = cheapest(whole, nbytes, first, planner)
        if best[1].nbytes <= nbytes:
            return best
        first = first.fresh()
    best = smaller(whole, least_of(whole, first, planner))
    for other in first.others(best[1].nbytes):
        best = smaller(best, least_of(whole, other, planner))
    return best


def least_of(whole: Choice, search: Search, planner: Planner) -> Choice:
    """Return the smallest plan that a search finds."""
    return planner.smallest(regional(whole[0], search.fitting(search.least), planner))


def cheapest(whole: Choice, nbytes: int, search: Search, planner: Planner) -> Choice:
    """Return the cheapest plan in bands that fits, else the last one tried."""
    most = nbytes
    while True:
        best = planner.smallest(regional(whole[0], search.fitting(most), planner))
        if best[1].nbytes <= nbytes or most == search.least:
            return best
        most = max(most - max(best[1].nbytes - nbytes, planner.alignment), search.least)


def search_of(whole: Choice, pixels: int | None, planner: Planner) -> Search:
    """Return the search for regions with bands of at least `pixels` pixels. Only `auto` places in-place joins."""
    sizes = PIXELS if pixels is None else (*(n for n in PIXELS if n > pixels), pixels)
    stages = stages_of(whole[0].layout, planner.facts.target)
    if not planner.is_auto:
        stages = [replace(stage, by_rows=False) for stage in stages]
    return Search(stages, planner.alignment, sizes, moves_in_order(planner.facts.target))


def regional(candidate: Candidate, regions: Sequence[Region], planner: Planner) -> list[Candidate]:
    """Return the arrangements of a graph with these regions."""
    order, new = stream_rows(candidate.layout, regions)
    lasting, always = candidate.layout.lasting, candidate.layout.always
    rows = {new[x] for x in row_major_nodes(candidate.layout, regions, planner.facts.target) if x in new}
    layout = planner.layout(order, [new[x] for x in lasting], {new[x] for x in always}, rows)
    return planner.candidates(f"{candidate.order}, {len(regions)} regions in bands", layout)


def fit_row_streams(whole: Choice, nbytes: int | None, planner: Planner) -> Choice:
    """Return a plan for streamed images: with the largest bands that fit, else with the smallest bands."""
    layout, first, last = region_of(whole[0].layout, planner.facts)
    fed = Fed(layout, first, last, planner.facts.target, planner.alignment)
    plain = replace(whole[0], layout=layout)
    best: Choice | None = None
    for rows in (FREE_ROWS,) if nbytes is None else STREAMED_ROWS:
        frame = fed.frame(rows)
        if nbytes is not None and rows > STREAMED_ROWS[-1] and frame.nbytes > nbytes:
            continue
        region = Region(tuple(range(first, last + 1)), rows * layout.steps[last].shape[COLUMNS], frame)
        choice = planner.smallest(regional(plain, [region], planner))
        best = choice if best is None else smaller(best, choice)
        if nbytes is None or best[1].nbytes <= nbytes:
            break
    assert best is not None
    return best
