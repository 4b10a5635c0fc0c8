"""Plans that compute values of the forward part again instead of storing them."""

from cgraph.budget.planner import Planner
from cgraph.memory.layout import in_order
from cgraph.memory.problem import Strategy
from cgraph.memory.smallest import Choice, smaller, smallest
from cgraph.record import replace
from cgraph.rematerialise.cheap_values import cheap_again
from cgraph.rematerialise.least_work import least_bytes, least_work
from cgraph.rematerialise.rebuild import reruns_of, run_again
from cgraph.rematerialise.reruns import rerun_positions
from cgraph.rematerialise.segments import in_segments
from cgraph.schedule.dag import least_peak
from cgraph.schedule.eager import eager

TRIES = 4  # maximum number of orders planned before one fits
WORTH = 0.95  # cheap values are rematerialised without need only if the plan has at most this share of the bytes
PATIENCE = 4  # numbers of segments tried in a row without a smaller plan


def rematerialise(whole: Choice, recompute: bool | float, planner: Planner) -> Choice:
    """Return a plan that computes values of the forward part again.

    Parameters
        whole: the plan without rematerialisation
        recompute: True for the smallest plan in which segments run twice; a number of bytes for the least extra work
            that fits in them, else for the smallest plan
    """
    reruns = Rematerialisation(whole, planner)
    if recompute is True:
        return reruns.segmented(-1)[0]
    nbytes = int(recompute)
    best, order = reruns.segmented(nbytes)
    if best[1].nbytes > nbytes:
        best, order = reruns.smallest(best, order)
    return best if best[1].nbytes > nbytes else reruns.lightest(nbytes, best, order)[0]


class Rematerialisation:
    """Plans of one graph in which some steps run again.

    Fields
        whole: the plan without rematerialisation
    """

    def __init__(self, whole: Choice, planner: Planner) -> None:
        self.whole, self.planner = whole, planner
        self.problem = reruns_of(whole[0].layout, planner.alignment)

    def cheap(self, share: float) -> Choice:
        """Return the plan that computes cheap values again, if it has clearly fewer bytes."""
        layout = self.whole[0].layout
        nodes = in_order(layout, eager(self.problem.dag))  # all gradients of weights at once, while their operands live
        layout = self.planner.layout(nodes, layout.lasting, layout.always)
        plain = replace(self.whole[0], order="eager", layout=layout), self.whole[1]
        reruns = Rematerialisation(plain, self.planner)
        order = cheap_again(layout, reruns.problem, share)
        if len(order) == len(layout.steps):
            return self.whole
        choice = reruns.plan(order, self.whole, self.planner.quick)
        return choice if choice[1].nbytes <= WORTH * self.whole[1].nbytes else self.whole

    def segmented(self, nbytes: int) -> tuple[Choice, list[int]]:
        """Return the plan with the fewest segments that fits (each further one reruns more), else the smallest plan."""
        layout, best, worse, segments = self.whole[0].layout, self.whole, 0, 2
        best_order = list(range(len(layout.steps)))
        while best[1].nbytes > nbytes and worse < PATIENCE and segments <= len(layout.steps):
            order = in_segments(layout, segments)
            choice = self.plan(order, best, self.planner.quick)
            worse, best_order = (worse + 1, best_order) if choice is best else (0, order)
            best, segments = choice, max(segments + 1, segments * 4 // 3)
        return smaller(best, self.planner.smallest([best[0]])), best_order

    def smallest(self, best: Choice, order: list[int]) -> tuple[Choice, list[int]]:
        """Return the smallest plan, whatever the budget, and its order; `best` and `order` if none is smaller."""
        shortest = least_bytes(self.problem, order, least_peak(self.problem.dag))
        plan = self.plan(shortest, best, self.planner.strategy)
        least, runs = plan, order if plan is best else shortest
        for _ in range(TRIES):  # the order with the least work within these bytes may need fewer bytes
            lighter, reruns = self.lightest(least[1].nbytes, least, runs)
            if lighter[1].nbytes == least[1].nbytes:
                break
            least, runs = lighter, reruns
        return least, runs

    def lightest(self, nbytes: int, best: Choice, order: list[int]) -> tuple[Choice, list[int]]:
        """Return a plan that fits with less work than `best` (which fits), else `best`; and its order."""
        most, cost = nbytes, self.problem.extra(order)
        for _ in range(TRIES):
            runs = least_work(self.problem, most, [order, range(len(self.problem.cost))])
            if runs is None or self.problem.extra(runs) >= cost:
                break
            plan = self.plan(runs, None, self.planner.strategy)
            if plan[1].nbytes <= nbytes:
                return plan, runs
            most -= max(plan[1].nbytes - nbytes, self.planner.alignment)  # bytes that strategies lose between values
        return best, order

    def plan(self, order: list[int], best: Choice | None, strategy: Strategy) -> Choice:
        """Return the smaller of the plan of an order and `best`."""
        candidate = self.whole[0]
        nodes, new = run_again(candidate.layout, order)
        always = {new[x] for x in candidate.layout.always}
        layout = self.planner.layout(nodes, [new[x] for x in candidate.layout.lasting], always)
        ways = self.planner.candidates(f"{candidate.order}, {len(rerun_positions(order))} steps computed again", layout)
        if best is None:
            return smallest(ways, strategy)
        ways = [way for way in ways if way.bound < best[1].nbytes]
        return smaller(best, smallest(ways, strategy)) if ways else best
