"""auto: the smallest plan of several strategies, with no more work than is needed to be sure of it.

Idea: try the offset strategies one after the other and stop at the lower bound, which most graphs reach at once. Then,
for problems so small that it costs little, try the block strategies; then `squeaky_wheel`, which often saves the
process the compiled search and the 150 MB that loading it takes; then that exact search. Its limit is counted in nodes,
not seconds, so that the same problem gets the same plan on every machine.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, section 7, advise taking the best of several strategies.
Time: that of the strategies it runs, in the best case a single one.
"""

from collections.abc import Iterator

import numpy as np

from cgraph.late import LateModule
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.strategies import BLOCK_STRATEGIES, OFFSET_STRATEGIES
from cgraph.record import replace

exact = LateModule("cgraph.memory.strategies.exact").exact
squeaky_wheel = LateModule("cgraph.memory.strategies.squeaky_wheel").squeaky_wheel
MOST_FOR_BLOCKS = 512  # operands; beyond this number the block strategies are slow and have never won
LEAST_GAP = 1 << 20  # bytes that the exact search must be able to gain to start on as many operands
SLOW = ("squeaky_wheel", "exact", "exact_blocks", "min_cost_flow")
NODES = 100_000  # nodes of the exact search; most problems that it solves need fewer
WORK = 10**9  # work of the exact search, in about nanoseconds


def auto(problem: Problem, *, nodes: int | None = None) -> Plan:
    """Return the smallest plan found; of equal ones the first. Its `strategy` is the name of the strategy that found
    it.

    The plan is never larger than that of an offset strategy, nor, up to `MOST_FOR_BLOCKS` operands, than that of a
    block strategy of near-linear time. `nodes` limits the exact search, by default to what takes about a second; 0
    omits it.
    """
    if problem.ties:
        return squeaky_wheel(problem)
    bound = lower_bound(problem)
    cheap = _cheap_plans(problem)
    best = next(cheap)
    while best.nbytes > bound and (plan := next(cheap, None)):
        best = min(best, plan, key=lambda x: x.nbytes)
    if nodes is None:
        nodes = _affordable_nodes(problem)
    if best.nbytes > bound and (nodes or len(problem.operands) <= MOST_FOR_BLOCKS):
        best = min(best, squeaky_wheel(problem), key=lambda x: x.nbytes)
    if best.nbytes == bound or not nodes or is_near(problem, best.nbytes - bound):
        return replace(best, proved=best.nbytes == bound)
    solution = exact(problem, seconds=None, nodes=nodes, start=best)
    return solution if solution.nbytes < best.nbytes else replace(best, proved=solution.proved)


def is_near(problem: Problem, gap: int) -> bool:
    """Return True if there are many operands, and the plan is so near the bound that the search is not worth its time
    and memory.
    """
    return len(problem.operands) > MOST_FOR_BLOCKS and gap < LEAST_GAP


def _affordable_nodes(problem: Problem) -> int:
    """Return the nodes of the exact search within `WORK`; 0 if they are too few to place every operand once.

    A node takes longer the more operands an operand meets: about ``300 m + m^2`` nanoseconds for m of them.
    """
    count = max(len(problem.operands), 1)
    started = np.sort(problem.first).searchsorted(problem.last, "right")
    meets = (2 * int(started.sum()) - count * (count + 1)) // count
    nodes = min(NODES, WORK // (meets * (300 + meets) + 1000))
    return nodes if nodes >= count else 0


def _cheap_plans(problem: Problem) -> Iterator[Plan]:
    """Yield plans of the cheap strategies, each computed when it is requested."""
    for name, strategy in OFFSET_STRATEGIES.items():
        if name not in SLOW:
            yield strategy(problem)
    if len(problem.operands) <= MOST_FOR_BLOCKS:
        for name, strategy in BLOCK_STRATEGIES.items():
            if name not in SLOW:
                yield strategy(problem)
