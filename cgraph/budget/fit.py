"""Fitting a plan into a number of bytes: regions in bands of rows, forward values computed again, or both.

Bands come first, since they compute nothing twice; then recomputation; then bands of what is computed again. All give
the bits of the whole graph: the same kernels in the same order. The smallest plan of all means does not depend on the
budget, so whatever is not below it is met.
"""

from collections.abc import Sequence
from functools import partial

from cgraph.budget.bands.build_bands import COLUMNS, row_major_nodes, stages_of, stream_rows
from cgraph.budget.bands.regions import PIXELS, Region, Search
from cgraph.budget.bands.streamed_bands import Fed
from cgraph.budget.bands.streamed_rows import is_by_rows, region_of
from cgraph.budget.limits import recompute_nbytes
from cgraph.memory.auto import auto
from cgraph.memory.layout import NodeFacts, in_order, layout_of
from cgraph.memory.problem import Strategy
from cgraph.memory.smallest import Candidate, Choice, candidates, smaller, smallest
from cgraph.record import Record, replace
from cgraph.rematerialise.cheap_values import cheap_again
from cgraph.rematerialise.least_work import least_bytes, least_work
from cgraph.rematerialise.rebuild import reruns_of, run_again
from cgraph.rematerialise.reruns import rerun_positions
from cgraph.rematerialise.segments import in_segments
from cgraph.schedule.dag import least_peak
from cgraph.schedule.eager import eager

FED_ROWS = (64, 32, 16, 8, 4, 2, 1)  # of a band of images that come by rows
FREE_ROWS = 16  # of such a band, without a budget
TRIES = 4  # orders that are planned before one fits
WORTH = 0.95  # of the bytes, what is left where cheap values are computed again with no need
PATIENCE = 4  # numbers of segments that make no smaller plan, before no more are tried


class PlanLimits(Record):
    """What a plan is to fit into, and by which means.

    Fields
        budget: bytes; None for any number
        bands: pixels of a band at least, and bands wherever they make the plan smaller; None for a budget's sake alone
        recompute: True for the smallest plan in which segments run twice; a number of bytes for the least extra work;
            a share of the work, below 1, for what is cheap to compute again
        is_wish: where nothing fits, the smallest plan that is found will do
    """

    budget: int | None = None
    bands: int | None = None
    recompute: bool | float = False
    is_wish: bool = False

    @property
    def most(self) -> int | None:
        """Bytes that a plan may take; None for any number."""
        limits = (self.budget, recompute_nbytes(self.recompute))
        return min((n for n in limits if n is not None), default=None)

    @property
    def runs_segments_twice(self) -> bool:
        """`recompute` is True or a number of bytes."""
        return self.recompute is True or recompute_nbytes(self.recompute) is not None

    @property
    def share(self) -> float:
        """Of the work of all steps, the most that is done again although there is room."""
        return self.recompute if 0 < self.recompute < 1 else 0.0


class Planner(Record, eq=False):
    """By what all plans of a graph are made.

    Fields
        strategy: what places values
        alignment: bytes that offsets are multiples of
        facts: what is known of nodes on the target
    """

    strategy: Strategy
    alignment: int
    facts: NodeFacts


def fitted(whole: Choice, limits: PlanLimits, planner: Planner, search: Search | None = None) -> Choice:
    """A plan that fits, or the smallest that is found; `search` is that of `known` as it is, if that has been made."""
    if is_by_rows(whole[0].layout):
        return rows_fed(whole, limits.budget, planner)
    plain = whole
    if limits.share:
        whole = InRuns(whole, planner).cheap(limits.share)
    elif limits.runs_segments_twice:
        whole = recomputed(whole, limits.recompute, planner)
    if limits.bands is not None:
        whole = in_bands(whole, limits.budget, limits.bands, planner)
    if limits.budget is None or whole[1].nbytes <= limits.budget:
        return whole
    best = whole
    if limits.bands is None:
        best = in_bands(whole, limits.budget, None, planner, search)
    if best[1].nbytes > limits.budget and not limits.runs_segments_twice:
        again = recomputed(plain, limits.budget, planner)
        best = smaller(best, again)
        if best[1].nbytes > limits.budget and again is not plain:
            best = smaller(best, in_bands(again, limits.budget, limits.bands, planner))
    return best


def rows_fed(whole: Choice, budget: int | None, planner: Planner) -> Choice:
    """A plan in which images come and go by rows: with the largest bands that fit, or with the smallest."""
    layout, first, last = region_of(whole[0].layout, planner.facts)
    fed = Fed(layout, first, last, planner.facts.target, planner.alignment)
    plain = replace(whole[0], layout=layout)
    best: Choice | None = None
    for rows in (FREE_ROWS,) if budget is None else FED_ROWS:
        frame = fed.frame(rows)
        if budget is not None and rows > FED_ROWS[-1] and frame.nbytes > budget:
            continue
        region = Region(tuple(range(first, last + 1)), rows * layout.steps[last].shape[COLUMNS], frame)
        choice = smallest(regional(plain, [region], planner), planner.strategy)
        best = choice if best is None else smaller(best, choice)
        if budget is None or best[1].nbytes <= budget:
            break
    assert best is not None
    return best


# -- recomputation -----------------------------------------------------------------------------------------------------


def recomputed(whole: Choice, recompute: bool | float, planner: Planner) -> Choice:
    """A plan in which forward values are computed again.

    Parameters
        whole: the plan without
        recompute: True for the smallest plan in which segments run twice; a number of bytes for the least extra work
            that is found within them, else the smallest plan that is found
    """
    again = InRuns(whole, planner)
    if recompute is True:
        return again.segmented(-1)[0]
    room = int(recompute)
    best, order = again.segmented(room)
    if best[1].nbytes > room:
        best, order = again.smallest(best, order)
    return best if best[1].nbytes > room else again.lightest(room, best, order)[0]


class InRuns:
    """Ways to run some steps of a graph again.

    Fields
        whole: the plan without
    """

    def __init__(self, whole: Choice, planner: Planner) -> None:
        self.whole, self.planner = whole, planner
        self.quick = partial(auto, nodes=0) if planner.strategy is auto else planner.strategy
        self.problem = reruns_of(whole[0].layout, planner.alignment)

    def cheap(self, share: float) -> Choice:
        """The plan in which what is cheap is computed again, where it has clearly fewer bytes."""
        layout = self.whole[0].layout
        nodes = in_order(layout, eager(self.problem.dag))  # gradients of weights at once, while what they read is there
        layout = layout_of(nodes, layout.lasting, layout.always, self.planner.facts)
        plain = replace(self.whole[0], order="eager", layout=layout), self.whole[1]
        again = InRuns(plain, self.planner)
        order = cheap_again(layout, again.problem, share)
        if len(order) == len(layout.steps):
            return self.whole
        choice = again.planned(order, self.whole, self.quick)
        return choice if choice[1].nbytes <= WORTH * self.whole[1].nbytes else self.whole

    def segmented(self, room: int) -> tuple[Choice, list[int]]:
        """The fewest segments that fit, since each further one has more computed again, or the smallest plan."""
        layout, best, worse, segments = self.whole[0].layout, self.whole, 0, 2
        best_order = list(range(len(layout.steps)))
        while best[1].nbytes > room and worse < PATIENCE and segments <= len(layout.steps):
            order = in_segments(layout, segments)
            choice = self.planned(order, best, self.quick)
            worse, best_order = (worse + 1, best_order) if choice is best else (0, order)
            best, segments = choice, max(segments + 1, segments * 4 // 3)
        return smaller(best, smallest([best[0]], self.planner.strategy)), best_order

    def smallest(self, best: Choice, order: list[int]) -> tuple[Choice, list[int]]:
        """The smallest plan that is found, whatever the budget, and its order; or those that are given."""
        shortest = least_bytes(self.problem, order, least_peak(self.problem.dag))
        plan = self.planned(shortest, best, self.planner.strategy)
        smallest, runs = plan, order if plan is best else shortest
        for _ in range(TRIES):  # what is found within these bytes may have fewer
            lighter, again = self.lightest(smallest[1].nbytes, smallest, runs)
            if lighter[1].nbytes == smallest[1].nbytes:
                break
            smallest, runs = lighter, again
        return smallest, runs

    def lightest(self, room: int, best: Choice, order: list[int]) -> tuple[Choice, list[int]]:
        """A plan that fits with less work than a plan that does, or that plan; with its order."""
        most, cost = room, self.problem.extra(order)
        for _ in range(TRIES):
            runs = least_work(self.problem, most, [order, range(len(self.problem.cost))])
            if runs is None or self.problem.extra(runs) >= cost:
                break
            plan = self.planned(runs, None, self.planner.strategy)
            if plan[1].nbytes <= room:
                return plan, runs
            most -= max(plan[1].nbytes - room, self.planner.alignment)  # what strategies lose between values
        return best, order

    def planned(self, order: list[int], best: Choice | None, strategy: Strategy) -> Choice:
        """The plan of an order; of two the smaller."""
        candidate = self.whole[0]
        nodes, new = run_again(candidate.layout, order)
        always = {new[x] for x in candidate.layout.always}
        layout = layout_of(nodes, [new[x] for x in candidate.layout.lasting], always, self.planner.facts)
        title = f"{candidate.order}, {len(rerun_positions(order))} steps computed again"
        ways = candidates(title, layout, self.planner.alignment)
        if best is None:
            return smallest(ways, strategy)
        ways = [way for way in ways if way.bound < best[1].nbytes]
        return smaller(best, smallest(ways, strategy)) if ways else best


# -- bands -------------------------------------------------------------------------------------------------------------


def in_bands(
    whole: Choice,
    budget: int | None,
    bands: int | None,
    planner: Planner,
    search: Search | None = None,
) -> Choice:
    """A plan in which regions are computed in bands of rows: the cheapest that fits, else the smallest that is found.

    What the search counts leaves out how a strategy packs: what a plan has too much is taken off what is searched for.
    The smallest plan is looked for by a search that knows nothing of other budgets, so that it does not depend on them:
    joins over their forks can be hard to pack, so they are counted in more than one way.

    Parameters
        whole: the plan without
        budget: bytes; None for the smallest plan
        bands: pixels that a band has at least; None for any number
        search: that of `known`, where it has been made before; what it has planned is not used
    """
    first = search.fresh() if search else search_of(whole, bands, planner)
    if budget is not None and budget >= first.least:
        best = cheapest(whole, budget, first, planner)
        if best[1].nbytes <= budget:
            return best
        first = first.fresh()
    best = smaller(whole, least_of(whole, first, planner))
    for other in first.others(best[1].nbytes):
        best = smaller(best, least_of(whole, other, planner))
    return best


def least_of(whole: Choice, search: Search, planner: Planner) -> Choice:
    """The smallest plan that a search finds."""
    return smallest(regional(whole[0], search.fitting(search.least), planner), planner.strategy)


def cheapest(whole: Choice, budget: int, search: Search, planner: Planner) -> Choice:
    """The cheapest plan in bands that fits, else the last that is found."""
    most = budget
    while True:
        best = smallest(regional(whole[0], search.fitting(most), planner), planner.strategy)
        if best[1].nbytes <= budget or most == search.least:
            return best
        most = max(most - max(best[1].nbytes - budget, planner.alignment), search.least)


def search_of(whole: Choice, bands: int | None, planner: Planner) -> Search:
    """The search for regions with bands of so many pixels at least. Only `auto` places a join over its fork."""
    pixels = PIXELS if bands is None else (*(n for n in PIXELS if n > bands), bands)
    stages = stages_of(whole[0].layout, planner.facts.target)
    if planner.strategy is not auto:
        stages = [replace(stage, by_rows=False) for stage in stages]
    return Search(stages, planner.alignment, pixels)


def regional(candidate: Candidate, regions: Sequence[Region], planner: Planner) -> list[Candidate]:
    """The ways to arrange a graph with these regions."""
    order, new = stream_rows(candidate.layout, regions)
    lasting, always = candidate.layout.lasting, candidate.layout.always
    rows = {new[x] for x in row_major_nodes(candidate.layout, regions, planner.facts.target) if x in new}
    layout = layout_of(order, [new[x] for x in lasting], {new[x] for x in always}, planner.facts, rows)
    return candidates(f"{candidate.order}, {len(regions)} regions in bands", layout, planner.alignment)
