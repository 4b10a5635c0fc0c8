"""What a schedule needs to know of a graph: bytes and operands of its nodes; no node, no op.

A schedule is a tuple of positions. Executing a node needs the bytes of everything in use plus its own; a value is in
use from its own step to the last step that reads it, both included, or to the end if it is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cgraph.errors import GraphError


@dataclass(frozen=True)
class Dag:
    """Nodes ``0..n-1``: their bytes, their operands (earlier positions, repeats allowed), and which values are kept.

    Raises
        GraphError: the lists differ in length, an operand is not an earlier node, a size is negative
    """

    nbytes: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    kept: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.nbytes) != len(self.operands):
            raise GraphError(f"{len(self.nbytes)} sizes for {len(self.operands)} nodes")
        if min(self.nbytes, default=0) < 0:
            raise GraphError(f"node {self.nbytes.index(min(self.nbytes))} has {min(self.nbytes)} bytes")
        for i, operands in enumerate(self.operands):
            if operands and not 0 <= min(operands) <= max(operands) < i:
                raise GraphError(f"node {i} has operands {operands}: they must be earlier nodes")

    @cached_property
    def distinct(self) -> tuple[tuple[int, ...], ...]:
        """Operands of each node without repeats, in their order."""
        return tuple(tuple(dict.fromkeys(operands)) for operands in self.operands)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each node those that read it, rising."""
        users: list[list[int]] = [[] for _ in self.nbytes]
        for i, operands in enumerate(self.distinct):
            for operand in operands:
                users[operand].append(i)
        return tuple(map(tuple, users))


def peak(dag: Dag, order: Sequence[int]) -> int:
    """The most bytes in use at any step of a schedule. Time O(n) and the edges."""
    return max(breadths(dag, order), default=0)


def breadths(dag: Dag, order: Sequence[int]) -> list[int]:
    """Bytes in use at each step of a schedule."""
    waiting = [len(users) for users in dag.users]
    in_use, steps = 0, []
    for node in order:
        in_use += dag.nbytes[node]
        steps.append(in_use)
        in_use -= freed_by(dag, node, waiting)
    return steps


def freed_by(dag: Dag, node: int, waiting: list[int]) -> int:
    """Bytes no longer needed after `node`; `waiting` counts each node's users that are still to run, and is updated."""
    freed = 0
    for operand in dag.distinct[node]:
        waiting[operand] -= 1
        if not waiting[operand] and operand not in dag.kept:
            freed += dag.nbytes[operand]
    if not waiting[node] and node not in dag.kept:
        freed += dag.nbytes[node]
    return freed
