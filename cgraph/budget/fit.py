"""Fit a plan into a number of bytes by an ordered table of means.

Bands come first, since they compute nothing twice; then rematerialisation; then bands of the rematerialised graph. All
give the bits of the whole graph: the same kernels in the same order. The smallest plan of all means does not depend on
the budget, so every budget at or above it can be met. Patches (`cgraph.budget.patches`) change the graph before it is
lowered, only by the option `restructure`.
"""

from collections.abc import Callable

from cgraph.budget.bands.fit_bands import fit_bands, fit_row_streams
from cgraph.budget.bands.regions import Search
from cgraph.budget.bands.streamed_rows import is_by_rows
from cgraph.budget.budget import Budget
from cgraph.budget.fit_reruns import Rematerialisation, rematerialise
from cgraph.budget.planner import Planner
from cgraph.memory.smallest import Choice, smaller


def fit_plan(whole: Choice, budget: Budget, planner: Planner, search: Search | None = None) -> Choice:
    """Return a plan that fits in the budget, or the smallest plan that any means gives.

    Parameters
        whole: the plan of the unchanged graph
        search: a search for regions of `whole`, to be continued
    """
    if is_by_rows(whole[0].layout):
        return fit_row_streams(whole, budget.nbytes, planner)
    means = Means(whole, budget, planner, search)
    best = means.requested()
    if budget.nbytes is None:
        return best
    for fit in MEANS.values():
        if budget.is_met(best[1].nbytes):
            break
        best = smaller(best, fit(means, best, budget.nbytes))
    return best


class Means:
    """The ways to save bytes in one graph. Changes: remembers the rematerialised plan.

    Fields
        whole: the plan of the unchanged graph
    """

    def __init__(self, whole: Choice, budget: Budget, planner: Planner, search: Search | None) -> None:
        self.whole, self.budget, self.planner, self.search = whole, budget, planner, search
        self.with_reruns = whole

    def requested(self) -> Choice:
        """Return the plan with the means that the options request, whether or not the budget needs them."""
        best, budget = self.whole, self.budget
        if budget.share:
            best = Rematerialisation(best, self.planner).cheap(budget.share)
        elif budget.recomputes_segments:
            best = rematerialise(best, budget.recompute, self.planner)
        if budget.bands is not None:
            best = fit_bands(best, budget.nbytes, budget.bands, self.planner)
        return best

    def bands(self, choice: Choice, nbytes: int) -> Choice:
        """Return a plan with regions in bands of rows, unless the option `bands` has requested them already."""
        if self.budget.bands is not None:
            return choice
        return fit_bands(choice, nbytes, None, self.planner, self.search)

    def rematerialise(self, choice: Choice, nbytes: int) -> Choice:
        """Return a plan that computes forward values again, unless the option `recompute` has requested it already."""
        if self.budget.recomputes_segments:
            return choice
        self.with_reruns = rematerialise(self.whole, nbytes, self.planner)
        return self.with_reruns

    def both(self, choice: Choice, nbytes: int) -> Choice:
        """Return a plan with regions of the rematerialised graph in bands of rows."""
        if self.with_reruns is self.whole:
            return choice
        return fit_bands(self.with_reruns, nbytes, self.budget.bands, self.planner)


MEANS: dict[str, Callable[[Means, Choice, int], Choice]] = {
    "bands": Means.bands,
    "rematerialise": Means.rematerialise,
    "both": Means.both,
}
"""The means in the order in which they are tried: each takes the best plan and the budget and returns a plan."""
