"""The graph as a schedule sees it: bytes and operands of numbered nodes.

A schedule is a tuple of positions. Executing a node needs the bytes of everything in use plus its own. A value is in
use from its own step to the last step that reads it, both included, or to the end if it is an output. While a node runs
it may also need a workspace; it needs fewer bytes of its own if it overwrites operands that it reads last.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from cgraph.errors import GraphError
from cgraph.record import Record


class Dag(Record):
    """Nodes ``0..n-1``: their bytes, their operands, and the values that stay to the end.

    Fields
        operands: for each node, earlier positions; repeats are allowed
        scratch: for each node, bytes of workspace while it runs; empty if no node needs any
        takes: for each node, the operands that it may overwrite; empty if no node may
    Raises
        GraphError: the lists differ in length, an operand is not an earlier node, a size is negative
    """

    nbytes: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    lasting: frozenset[int] = frozenset()
    scratch: tuple[int, ...] = ()
    takes: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        count = len(self.nbytes)
        for sizes in (self.operands, self.scratch or self.nbytes, self.takes or self.nbytes):
            if len(sizes) != count:
                raise GraphError(f"{count} sizes for {len(sizes)} nodes")
        if min(self.nbytes, default=0) < 0:
            raise GraphError(f"node {self.nbytes.index(min(self.nbytes))} has {min(self.nbytes)} bytes")
        for i, operands in enumerate(self.operands):
            if operands and not 0 <= min(operands) <= max(operands) < i:
                raise GraphError(f"node {i} has operands {operands}: they must be earlier nodes")

    @cached_property
    def distinct(self) -> tuple[tuple[int, ...], ...]:
        """Return the operands of each node without repeats, in their order."""
        return tuple([tuple(dict.fromkeys(operands)) for operands in self.operands])

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """Return the readers of each node, rising."""
        users: list[list[int]] = [[] for _ in self.nbytes]
        for i, operands in enumerate(self.distinct):
            for operand in operands:
                users[operand].append(i)
        return tuple(map(tuple, users))

    @cached_property
    def workspaces(self) -> tuple[int, ...]:
        """Return the bytes of workspace of each node."""
        return self.scratch or (0,) * len(self.nbytes)

    @cached_property
    def overwritable(self) -> tuple[tuple[int, ...], ...]:
        """Return, for each node, the operands that it overwrites if it is the last to read them."""
        if not self.takes:
            return ((),) * len(self.nbytes)
        return tuple([tuple([x for x in dict.fromkeys(takes) if x not in self.lasting]) for takes in self.takes])

    def needed(self, node: int, overwritten: int) -> int:
        """Return the bytes that a node needs besides those in use when it takes `taken` bytes of its operands."""
        own = self.nbytes[node]
        return self.workspaces[node] + (own - overwritten if overwritten < own else 0)


def peak(dag: Dag, order: Sequence[int]) -> int:
    """Return the most bytes in use at any step of a schedule. Time O(n) and the edges."""
    return max((before + needed for before, needed in steps_of(dag, order)), default=0)


def breadths(dag: Dag, order: Sequence[int]) -> list[int]:
    """Return the bytes in use at each step of a schedule, with workspaces."""
    return [before + needed for before, needed in steps_of(dag, order)]


def steps_of(dag: Dag, order: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return, for each step of a schedule, the bytes in use before it and the additional bytes that it needs."""
    nbytes, distinct, lasting, takes = dag.nbytes, dag.distinct, dag.lasting, dag.overwritable
    waiting = [len(users) for users in dag.users]
    in_use = 0
    for node in order:
        overwritten = sum([nbytes[x] for x in takes[node] if waiting[x] == 1]) if takes[node] else 0
        yield in_use, dag.needed(node, overwritten)
        in_use += nbytes[node]
        if not waiting[node] and node not in lasting:
            in_use -= nbytes[node]
        for x in distinct[node]:
            waiting[x] -= 1
            if not waiting[x] and x not in lasting:
                in_use -= nbytes[x]


def least_peak(dag: Dag) -> int:
    """Return the bytes that every schedule needs: for one node with its operands, or for all outputs together.

    Often less than any schedule can reach; if a schedule reaches it, no search is needed.
    """
    nbytes, takes = dag.nbytes, dag.overwritable
    most = sum(nbytes[x] for x in dag.lasting)
    for i, operands in enumerate(dag.distinct):
        overwritten = sum([nbytes[x] for x in takes[i]]) if takes[i] else 0
        most = max(most, dag.needed(i, overwritten) + sum([nbytes[x] for x in operands]))
    return most
