"""Memory strategies by name: the library's own, and those that installed packages add by entry points."""

from functools import wraps
from typing import Any

from cgraph.errors import GraphError, PlanError
from cgraph.late import LateModule
from cgraph.memory.auto import auto
from cgraph.memory.problem import Plan, Problem, Strategy
from cgraph.memory.strategies import STRATEGIES
from cgraph.system.progress import bounds_progress

exact = LateModule("cgraph.memory.strategies.exact").exact
GROUP = "cgraph.strategies"
"""The group of entry points of packages that add strategies."""


def strategy_named(memory: str | Strategy) -> Strategy:
    """Return a strategy by its name, or the strategy itself.

    Raises
        GraphError: a strategy of this name does not exist
    """
    if callable(memory):
        return returning_plans(memory)
    if memory == "auto":
        return auto
    if memory in STRATEGIES:
        return exact_with_progress if memory == "exact" else STRATEGIES[memory]
    added = entry_points_by_name()
    if memory in added:
        return returning_plans(added[memory].load())
    names = ", ".join((*STRATEGIES, *added))
    raise GraphError(f"there is no memory strategy {memory!r}; there are auto, {names}. Pass one as memory=")


def entry_points_by_name() -> dict[str, Any]:
    """Return the entry points of installed packages that add strategies, by name."""
    from importlib.metadata import entry_points

    return {x.name: x for x in entry_points(group=GROUP)}


def returning_plans(strategy: Strategy) -> Strategy:
    """Return a strategy from outside the library, with a PlanError if it returns anything but a `Plan`."""

    @wraps(strategy, updated=())
    def planned(problem: Problem) -> Plan:
        plan = strategy(problem)
        if not isinstance(plan, Plan):
            name = getattr(strategy, "__name__", repr(strategy))
            raise PlanError(f"the memory strategy {name} returned {plan!r:.60}. Return cg.Plan(offsets, nbytes)")
        return plan

    return planned


def exact_with_progress(problem: Problem, capacity: int | None = None) -> Plan:
    """Run `exact`, which may take a minute, with a line of progress on a terminal."""
    with bounds_progress("exact search") as tell:
        return exact(problem, capacity=capacity, tell=tell)
