"""Orders in which nodes may run more than once, so that fewer values wait.

An order is a list of positions with repeats. A read refers to the last run before it, so the list determines which
values are stored and which are computed again: a value is in use from a run to the last read before its next run.

Source: the problem is that of Jain et al. 2020, Checkmate, arXiv:1910.02653. Here a node's first run may be delayed,
too.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from cgraph.record import Record
from cgraph.schedule.dag import Dag

Order = list[int]


class Reruns(Record, eq=False):
    """The nodes that may run again, and the cost.

    Fields
        dag: the nodes in their order without reruns
        cost: cost of one run of each node
        until: for each node, the position before which it may run again: the number of nodes for anywhere, its own
            position for nowhere
        firm: nodes whose first run may not be delayed
    """

    dag: Dag
    cost: tuple[int, ...]
    until: tuple[int, ...]
    firm: frozenset[int] = frozenset()

    @cached_property
    def own(self) -> int:
        """Cost of running every node once."""
        return sum(self.cost)

    def extra(self, order: Iterable[int]) -> int:
        """Return the cost of an order beyond running every node once."""
        return sum([self.cost[i] for i in order]) - self.own

    def breadths(self, order: Sequence[int]) -> list[int]:
        """Return the bytes in use at each place of an order. Time O(order and its reads)."""
        dag = self.dag
        nbytes, distinct, takes, scratch = dag.nbytes, dag.distinct, dag.overwritable, dag.workspaces
        sizes = [0] * len(order)
        waits = [i in dag.lasting for i in range(len(nbytes))]
        in_use = sum([nbytes[i] for i in dag.lasting])
        for place in range(len(order) - 1, -1, -1):
            i = order[place]
            own, overwritten = nbytes[i], 0
            if waits[i]:
                waits[i] = False
                in_use -= own
            for x in distinct[i]:
                if not waits[x]:
                    waits[x] = True
                    in_use += nbytes[x]
                    if x in takes[i]:
                        overwritten += nbytes[x]
            sizes[place] = in_use + scratch[i] + (own - overwritten if overwritten < own else 0)
        return sizes

    def peak(self, order: Sequence[int]) -> int:
        """Return the most bytes in use at any step of an order."""
        return max(self.breadths(order), default=0)

    def living(self, order: Sequence[int]) -> Order:
        """Return an order without runs whose value no node reads, if the graph has readers of it."""
        dag = self.dag
        is_read = [not users or i in dag.lasting for i, users in enumerate(dag.users)]
        again = set(rerun_positions(order)) if self.firm else set()
        runs: Order = []
        for place in range(len(order) - 1, -1, -1):
            i = order[place]
            if not is_read[i] and (i not in self.firm or place in again):
                continue
            is_read[i] = False
            runs.append(i)
            for x in dag.distinct[i]:
                is_read[x] = True
        return runs[::-1]


def rerun_positions(order: Sequence[int]) -> list[int]:
    """Return the places of an order at which a node runs, but not for the first time."""
    earlier: set[int] = set()
    places = []
    for place, i in enumerate(order):
        if i in earlier:
            places.append(place)
        earlier.add(i)
    return places


class OrderIndex:
    """Index of an order: the runs of each node, and the reads of its value."""

    def __init__(self, problem: Reruns, order: Sequence[int]) -> None:
        self.problem, self.order = problem, order
        count = len(problem.cost)
        self.runs: list[list[int]] = [[] for _ in range(count)]
        self.reads: list[list[int]] = [[] for _ in range(count)]
        for place, i in enumerate(order):
            self.runs[i].append(place)
            for x in problem.dag.distinct[i]:
                self.reads[x].append(place)

    def may_run(self, i: int, place: int) -> bool:
        """Return True if the node may run again directly before this place."""
        until = self.problem.until[i]
        return until > i and (until == len(self.runs) or place <= self.runs[until][0])

    def waiting(self, place: int) -> Iterator[tuple[int, int]]:
        """Return the values that are in use at a place but not read there, with the places of their next reads."""
        for i, (runs, reads) in enumerate(zip(self.runs, self.reads)):
            at = bisect_left(reads, place)
            if at == len(reads) or reads[at] == place or not runs or runs[0] >= place:
                continue
            later = bisect_left(runs, place)
            if later == len(runs) or runs[later] >= reads[at]:
                yield i, reads[at]

    def waits(self, i: int, place: int, over: int) -> bool:
        """Return True if a value that is also read elsewhere would be in use at `over` for this read only."""
        if i in self.problem.dag.lasting:
            return False
        runs, reads = self.runs[i], self.reads[i]
        later, at = bisect_left(runs, place), bisect_left(reads, place)
        if runs[later - 1] >= over or (at and reads[at - 1] >= over):
            return False
        return at == len(reads) or (later < len(runs) and runs[later] < reads[at])

    def beside(self, place: int, over: int) -> list[int]:
        """Return values read at a place that existed before `over`, may run again, and have no other reader in
        between.
        """
        reads, runs = self.reads, self.runs
        return [
            x
            for x in self.problem.dag.distinct[self.order[place]]
            if self.may_run(x, place)
            and runs[x][bisect_left(runs[x], place) - 1] < over
            and (not (at := bisect_left(reads[x], place)) or reads[x][at - 1] <= over)
        ]

    def again(self, targets: Sequence[int], place: int, over: int, depth: int) -> list[int]:
        """Return the nodes that run before a place to compute values there: theirs, and those that would wait at
        `over`.

        `depth`: number of reads that are followed; what the last of them reads waits.
        """
        nodes, waiting = set(targets), [(i, 0) for i in targets]
        while waiting:
            node, level = waiting.pop()
            if level == depth:
                continue
            for x in self.problem.dag.distinct[node]:
                if x not in nodes and self.may_run(x, place) and self.waits(x, place, over):
                    nodes.add(x)
                    waiting.append((x, level + 1))
        return sorted(nodes)
