"""Refusals of budgets: every message names the bytes needed, the budget, and the smallest budget that works."""

from cgraph.errors import BudgetError, bytes_text
from cgraph.memory.bounds import operator_breadths
from cgraph.memory.layout import Layout
from cgraph.memory.problem import Plan, Problem


def plan_refusal(layout: Layout, problem: Problem, plan: Plan, budget: int) -> BudgetError:
    """Return the error for a graph whose smallest plan does not fit in a budget."""
    return BudgetError(budget_text(layout, problem, plan, budget))


def budget_text(layout: Layout, problem: Problem, plan: Plan, budget: int) -> str:
    """Return a text with the bytes of the smallest plan, its peak, and the smallest budget that works."""
    starts, breadths = operator_breadths(problem)
    node = layout.steps[int(starts[breadths.argmax()])]
    return (
        f"{plan.strategy or 'the plan'} needs {bytes_text(plan.nbytes)}, the budget is {bytes_text(budget)}: "
        f"{plan.nbytes - budget} bytes are missing; {node.name} at {node.where} has {bytes_text(int(breadths.max()))} "
        f"in use; the least budget of this graph is {plan.nbytes} bytes. Raise budget= (or recompute=) to that"
    )


def streamed_refusal(arena: int, ring: int, constants: int, budget: int) -> BudgetError:
    """Return the error for streamed weights: arena, ring and the constants that stay in memory exceed the budget."""
    needed = arena + ring + constants
    return BudgetError(
        f"an arena of {bytes_text(arena)}, a ring of {bytes_text(ring)} and constants of {bytes_text(constants)} "
        f"that stay in memory need {needed} bytes, the budget is {bytes_text(budget)}: "
        f"{needed - budget} bytes are missing; the least budget of this graph is {needed} bytes. "
        "Raise budget= to that"
    )


def recompute_refusal(arena: int, limit: int) -> BudgetError:
    """Return the error for streamed weights whose arena exceeds the bytes of `recompute`."""
    return BudgetError(f"the arena needs {arena} bytes, recompute= allows {limit}. Raise recompute= or omit it")


def ring_refusal(nbytes: int, least: int) -> BudgetError:
    """Return the error for a ring that is too small for the weights of one kernel call."""
    return BudgetError(
        f"the ring of {bytes_text(nbytes)} does not hold the weights that one kernel call reads; "
        f"it needs {bytes_text(least)}. Raise ring= to that, or omit it"
    )


def device_refusal(nbytes: int, device: str, device_nbytes: int) -> BudgetError:
    """Return the error for a plan that is larger than the memory of a device."""
    return BudgetError(
        f"the plan needs {bytes_text(nbytes)}, {device} has {bytes_text(device_nbytes)}. "
        "Pass budget= for a smaller plan, or run smaller batches"
    )


def needs_text(plan: Plan, least: int, limit: str) -> str:
    """Return a text: the bytes that a plan needs, the limit, and that no plan of the graph needs less than `least`
    bytes.
    """
    needed = f"{plan.strategy or 'the plan'} needs {bytes_text(plan.nbytes)}"
    return f"{needed}, {limit}; no plan of this graph needs less than {bytes_text(least)}"
