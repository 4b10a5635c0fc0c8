"""The smallest plan over several arrangements of the same values: orders of their steps, uses of the permissions.

A permission can cost bytes: a concat result that its parts are computed in occupies its bytes from the first part on.
So each arrangement is a planning problem of its own. Those whose lower bound is not below the best plan are skipped.
"""

from collections.abc import Sequence
from functools import cached_property, partial

from cgraph.memory.auto import auto
from cgraph.memory.bounds import lower_bound
from cgraph.memory.layout import Layout
from cgraph.memory.problem import Plan, Strategy
from cgraph.memory.usage import StepValue, Usage, usage_of
from cgraph.record import Record


class Candidate(Record):
    """An arrangement of the values: an order of the steps with its views, and the values that share bytes by
    permission.
    """

    order: str
    layout: Layout
    usage: Usage

    @cached_property
    def bound(self) -> int:
        """Lower bound: no plan of this usage is smaller."""
        return lower_bound(self.usage.spans)


Choice = tuple[Candidate, Plan]


def candidates(order: str, layout: Layout, alignment: int) -> list[Candidate]:
    """Return the usage with all permissions; and, if there are concats whose parts can be computed in place, without
    those.
    """
    joins = (True, False) if any(v.parts for v in layout.values) else (True,)
    return [Candidate(order, layout, usage_of(layout.values, alignment, True, join)) for join in joins]


def smallest(ways: Sequence[Candidate], strategy: Strategy) -> Choice:
    """Return the smallest plan of these, the first of equal ones; `auto` runs its search once, where most can be
    gained.
    """
    cheap = partial(auto, nodes=0) if strategy is auto else strategy
    best = ways[0], cheap(ways[0].usage.problem)
    for way in ways[1:]:
        if way.bound < best[1].nbytes:
            best = smaller(best, (way, cheap(way.usage.problem)))
    if strategy is auto:
        hopeful = min(ways, key=lambda way: way.bound)
        if hopeful.bound < best[1].nbytes:
            best = smaller(best, (hopeful, auto(hopeful.usage.problem)))
    return join_where_free(best, cheap)


def join_where_free(choice: Choice, strategy: Strategy) -> Choice:
    """Return the plan with as many parts computed in place as make it no larger: each one saves a copy at run time.

    Chains of concats are tried whole, then by halves, so that a few dozen trials suffice.
    """
    candidate, plan = choice
    usage = candidate.usage
    values, alignment = usage.values, usage.alignment
    if not any(v.parts for v in values) or any(x >= 0 for x in usage.inside):
        return choice

    def way(joined: set[int]) -> Candidate:
        return Candidate(candidate.order, candidate.layout, usage_of(values, alignment, True, joined))

    joined: set[int] = set()
    waiting = chains_of(values)[::-1]
    while waiting:
        chain = waiting.pop()
        if way(joined.union(chain)).bound <= plan.nbytes:
            joined.update(chain)
        elif len(chain) > 1:
            half = len(chain) // 2
            waiting += [chain[half:], chain[:half]]
    candidate_joined = way(joined)
    better = strategy(candidate_joined.usage.problem)
    return (candidate_joined, better) if joined and better.nbytes <= plan.nbytes else choice


def chains_of(values: Sequence[StepValue]) -> list[list[int]]:
    """Return the values with parts, in order, each in the chain of the first earlier one that it shares bytes with."""
    chain_of: dict[int, list[int]] = {}
    chains = []
    for i, value in enumerate(values):
        if not value.parts:
            continue
        touched = [i, *(x for x, _ in value.parts)]
        chain = next((chain_of[x] for x in touched if x in chain_of), [])
        if not chain:
            chains.append(chain)
        chain.append(i)
        chain_of |= dict.fromkeys(touched, chain)
    return chains


def smaller(one: Choice, other: Choice) -> Choice:
    return other if other[1].nbytes < one[1].nbytes else one
