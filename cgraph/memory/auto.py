"""auto: the smallest of several strategies' plans, with no more work than it takes to be sure.

Idea: the offset strategies one after the other, stopping at the lower bound, which most graphs reach at once; then, for
problems small enough that it costs little, the block strategies; then an exact search, whose limit is counted in nodes,
not seconds, so that the same problem gets the same plan on every machine.

Source: taking the best of several strategies is the advice of Pisarchyk and Lee 2020, arXiv:2001.03288, section 7.
Time: that of the strategies it runs; one, in the good case.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from math import inf

from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.strategies import BLOCK_STRATEGIES, OFFSET_STRATEGIES

MOST_FOR_BLOCKS = 512  # operands; beyond it the block strategies take long and have never won
SLOW = ("min_cost_flow", "exact_blocks")
NODES = 20_000  # of the exact search; most problems that it solves at all take fewer
EXACT = "cgraph.memory.strategies.exact"


def auto(problem: Problem, *, nodes: int = NODES) -> Plan:
    """The smallest plan found; of equal ones the first. Its `strategy` is the name of the strategy that made it.

    Never worse than an offset strategy, nor, up to `MOST_FOR_BLOCKS` operands, than a block strategy of near-linear
    time. `nodes` limits the exact search; 0 leaves it out.
    """
    bound = lower_bound(problem)
    candidates = _candidates(problem, nodes)
    best = next(candidates)
    while best.nbytes > bound and not best.proved:
        plan = next(candidates, None)
        if plan is None:
            return best
        if plan.nbytes < best.nbytes or plan.proved:
            best = plan
    return replace(best, proved=True)


def _candidates(problem: Problem, nodes: int) -> Iterator[Plan]:
    """Plans from cheap to dear, each made only when asked for."""
    for strategy in OFFSET_STRATEGIES.values():
        yield strategy(problem)
    if len(problem.operands) <= MOST_FOR_BLOCKS:
        for name, strategy in BLOCK_STRATEGIES.items():
            if name not in SLOW:
                yield strategy(problem)
    if nodes and find_spec(EXACT):
        yield import_module(EXACT).exact(problem, seconds=inf, nodes=nodes)
