"""Memory strategies by name."""

from cgraph.errors import GraphError
from cgraph.memory.auto import auto
from cgraph.memory.problem import Plan, Problem, Strategy
from cgraph.memory.strategies import STRATEGIES
from cgraph.memory.strategies.exact import exact
from cgraph.system.progress import bounds_progress


def strategy_named(memory: str | Strategy) -> Strategy:
    """Return a strategy by its name, or the strategy itself.

    Raises
        GraphError: a strategy of this name does not exist
    """
    if callable(memory):
        return memory
    if memory == "auto":
        return auto
    if memory not in STRATEGIES:
        names = ", ".join(STRATEGIES)
        raise GraphError(f"there is no memory strategy {memory!r}; there are auto, {names}. Pass one as memory=")
    return exact_with_progress if memory == "exact" else STRATEGIES[memory]


def exact_with_progress(problem: Problem, capacity: int | None = None) -> Plan:
    """Run `exact`, which may take a minute, with a line of progress on a terminal."""
    with bounds_progress("exact search") as tell:
        return exact(problem, capacity=capacity, tell=tell)
