"""least_memory: an order of small peak; exact where the graph allows it, never worse than the simple orders.

Idea: a node that every other node comes before or after cuts the graph in two, and no order can mix the two sides. So
each stretch between such cuts is searched separately, the one with the highest peak first, until that one cannot be
improved. A stretch is searched over sets of executed nodes, best first; beyond a limit on their number, by beam search.

Source: exact search over sets of executed operators for peak memory: Liberis and Lane 2019, arXiv:1910.05110.
Time: near-linear for a chain of short stretches; else bounded by `states`, the limit of each kind of search. A
stretch of more than `MOST_NODES` keeps the best of its simple orders.
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, steps_of
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.part import OutOfStatesError, SchedulePart, SearchAllowance
from cgraph.schedule.search import best_first, narrow_beam, wide_beam

Schedule = Callable[[Dag], Sequence[int]]
SIMPLE: tuple[Schedule, ...] = (depth_first, costly_first, breadth_first)
SEARCHES = (best_first, wide_beam, narrow_beam)
STATES = 20_000
MOST_NODES = 4_000


class Stretch(NamedTuple):
    """Nodes of one schedule that run one after the other: bytes in use when it begins, and most bytes inside it."""

    nodes: tuple[int, ...]
    start: int
    peak: int


def least_memory(dag: Dag, *, states: int = STATES, starts: Sequence[Schedule] = SIMPLE) -> tuple[int, ...]:
    """Return the order with the least peak found: deterministic, and no worse than any of `starts`.

    `states` limits the search.
    """
    free = [not nbytes and not operands for nbytes, operands in zip(dag.nbytes, dag.operands)]
    ends = _cuts(dag, free)
    choices = zip(*(_stretches(dag, start(dag), ends, free) for start in starts))
    stretches = [min(alternatives, key=lambda stretch: stretch.peak) for alternatives in choices]
    _improve(dag, stretches, states)
    return _with_free_leaves(dag, [node for stretch in stretches for node in stretch.nodes], free)


def _cuts(dag: Dag, free: list[bool]) -> list[int]:
    """Return the ends of stretches: positions directly after a node that is comparable with every other, and the
    end.

    Positions are topological, so a node is such a cut if every earlier one is read at it or before it, and every later
    one reads it or something later. Leaves without bytes are ignored: they can run at any time at no cost.
    """
    count = len(dag.nbytes)
    nearest_user = [0 if free[i] else min(dag.users[i], default=count) for i in range(count)]
    solid = ([x for x in operands if not free[x]] for operands in dag.distinct)
    farthest_operand = [count if free[i] else max(operands, default=-1) for i, operands in enumerate(solid)]
    before = list(accumulate(nearest_user, max, initial=0))
    after = list(accumulate(reversed(farthest_operand), min, initial=count))[::-1]
    inner = [i + 1 for i in range(count - 1) if not free[i] and before[i] <= i <= after[i + 1]]
    return [*inner, count] if count else []


def _stretches(dag: Dag, order: Sequence[int], ends: list[int], free: list[bool]) -> list[Stretch]:
    """Return a schedule cut at `ends`, without the leaves that have no bytes."""
    steps = [(node, *at) for node, at in zip(order, steps_of(dag, order)) if not free[node]]
    edges = [0, *accumulate(not leaf for leaf in free)]
    stretches, begin = [], 0
    for end in ends:
        inside = steps[edges[begin] : edges[end]]
        start = inside[0][1] if inside else 0
        peak = max([before + needed for _, before, needed in inside], default=0)
        stretches.append(Stretch(tuple([node for node, _, _ in inside]), start, peak))
        begin = end
    return stretches


def _improve(dag: Dag, stretches: list[Stretch], states: int) -> None:
    """Search the highest stretch, until the highest one has been searched already."""
    allowances = [SearchAllowance(states) for _ in SEARCHES]
    queue = [(-stretch.peak, i) for i, stretch in enumerate(stretches)]
    heapq.heapify(queue)
    searched = [False] * len(stretches)
    while queue and not searched[queue[0][1]]:
        i = queue[0][1]
        searched[i] = True
        if 1 < len(stretches[i].nodes) <= MOST_NODES:
            stretches[i] = _search(dag, stretches[i], allowances)
        heapq.heapreplace(queue, (-stretches[i].peak, i))


def _search(dag: Dag, stretch: Stretch, allowances: list[SearchAllowance]) -> Stretch:
    """Return a better order of one stretch, or the same: best first, and if that takes too many states, by beam
    search.
    """
    for search, allowance in zip(SEARCHES, allowances):
        part = SchedulePart(dag, stretch.nodes, stretch.start, allowance)
        try:
            state = search(part, stretch.peak)
        except OutOfStatesError:
            continue
        if state:
            return Stretch(tuple(stretch.nodes[i] for i in state.path()), stretch.start, state.peak)
        return stretch
    return stretch


def _with_free_leaves(dag: Dag, order: list[int], free: list[bool]) -> tuple[int, ...]:
    """Put each leaf without bytes right before its first user, or at the end."""
    complete: list[int] = []
    placed = [not leaf for leaf in free]
    for node in order:
        for operand in dag.operands[node]:
            if not placed[operand]:
                placed[operand] = True
                complete.append(operand)
        complete.append(node)
    return (*complete, *(i for i, done in enumerate(placed) if not done))
