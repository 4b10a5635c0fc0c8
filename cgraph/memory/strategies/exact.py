"""exact: the smallest plan, by search over offsets, or a decision whether a plan of a given size exists.

A capacity is decided by depth-first search (`cgraph/memory/search/kernel.py`), with many orders in turn and a node
limit that grows from round to round. The search brackets the smallest plan: below are capacities without a plan, above
is the best plan found; each round tries the lowest capacity not yet refuted, then the middle one.

Source: Moffitt 2023, "MiniMalloc", ASPLOS 2023, for the structure of the search; the kernel lists the differences.
Time: exponential at worst; a millisecond or two for networks in use, where few choices are undone.
"""

from collections.abc import Callable

import numpy as np

from cgraph.errors import BudgetError, bytes_text
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.search.instance import SearchInstance, instance_of, section_totals, unit_of
from cgraph.memory.search.orders import RULES, orders
from cgraph.memory.search.rounds import Effort, try_order, try_round


def exact(
    problem: Problem,
    *,
    seconds: float | None = 60.0,
    nodes: int | None = None,
    capacity: int | None = None,
    start: Plan | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Plan:
    """Return the smallest plan found within `seconds` and `nodes`; `proved` if no plan is smaller.

    Without `seconds` the result depends only on the problem and `nodes`. KeyboardInterrupt is raised between chunks of
    nodes, some tens of milliseconds apart.

    Parameters
        seconds: time limit, None for none
        nodes: limit on search nodes, None for none
        capacity: stop at a plan of at most this number of bytes. If the limits are reached first, the plan returned is
            larger, and not proved
        start: a valid plan to improve on; greedy plans by default
        tell: called some times a second with the current lower bound and the bytes of the best plan
    Raises
        BudgetError: no plan fits in `capacity`
    """
    positions = np.flatnonzero(problem.nbytes)
    if not len(positions):
        return Plan((0,) * len(problem.operands), 0, "exact", proved=True)
    unit = unit_of(problem.nbytes[positions])
    instance = instance_of(problem, positions, unit)
    best = greedy(instance) if start is None else push_down(instance, np.array(start.offsets, np.int64)[positions])
    search = Bracket(instance, best)
    effort = Effort(seconds, nodes, None if tell is None else lambda: tell(search.lower * unit, search.upper * unit))
    if capacity is None:
        search.minimise(effort)
    else:
        search.decide(capacity // unit, effort)
        if search.lower * unit > capacity:
            raise BudgetError(f"exact: no plan fits in {bytes_text(capacity)} ({capacity} bytes). Raise the capacity")
    offsets = np.zeros(len(problem.operands), np.int64)
    offsets[positions] = search.best * unit
    return Plan(tuple(offsets.tolist()), search.upper * unit, "exact", proved=search.lower == search.upper)


class Bracket:
    """Bounds of the smallest plan, in units; a search narrows them.

    `best` is a plan of height `upper`; no plan is lower than `lower`.
    """

    def __init__(self, instance: SearchInstance, best: np.ndarray) -> None:
        self.instance = instance
        self.lower = int(section_totals(instance).max())
        self.best = best
        self.upper = height(instance, best)
        self.weight = np.ones(len(instance.member_start) - 1)  # see `heaviest_section` in the kernel

    def minimise(self, effort: Effort) -> None:
        """Narrow the bracket: each round tries the lowest capacity, then the middle; its limit grows when that stays
        open.
        """
        turn = 0
        while self.lower < self.upper and not effort.is_spent:
            decided = self.try_capacity(self.lower, turn, effort)
            middle = (self.lower + self.upper - 1) // 2
            if self.lower < middle:
                decided = self.try_capacity(middle, turn, effort)
            turn += not decided

    def decide(self, capacity: int, effort: Effort) -> None:
        """Search for a plan of at most `capacity`, or a proof that none exists."""
        turn = 0
        while self.lower <= capacity < self.upper and not effort.is_spent:
            self.try_capacity(capacity, turn, effort)
            turn += 1

    def try_capacity(self, capacity: int, turn: int, effort: Effort) -> bool:
        """Try one round at one capacity between `lower` and `upper`; return True if it was decided."""
        answer = try_round(self.instance, capacity, turn, effort, self.weight)
        if answer.offsets is not None:
            self.best, self.upper = answer.offsets, height(self.instance, answer.offsets)
        if answer.refuted:
            self.lower = capacity + 1
        return not answer.is_open


def height(instance: SearchInstance, offsets: np.ndarray) -> int:
    return int((offsets + instance.size).max())


def greedy(instance: SearchInstance) -> np.ndarray:
    """Return the best of the plans that the search finds by each rule without a limit of height; units ``[n]``."""
    enough, n = int(instance.size.sum()), len(instance.size)
    weight = np.ones(len(instance.member_start) - 1)
    plans = []
    for order in orders(instance, len(RULES), 0):
        answer = try_order(instance, enough, order, 2 * n, Effort(None, None), weight)
        if answer.offsets is not None:
            plans.append(answer.offsets)
    return min(plans, key=lambda offsets: height(instance, offsets))


def push_down(instance: SearchInstance, offsets: np.ndarray) -> np.ndarray:
    """Return a plan from byte offsets, in units: from the lowest up, each operand drops onto the neighbours below
    it.
    """
    down = np.zeros(len(offsets), np.int64)
    done = np.zeros(len(offsets), bool)
    for i in np.argsort(offsets, kind="stable"):
        near = instance.neighbour[instance.neighbour_start[i] : instance.neighbour_start[i + 1]]
        below = near[done[near]]
        down[i] = (down[below] + instance.size[below]).max(initial=0)
        done[i] = True
    return down
