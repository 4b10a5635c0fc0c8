"""Exact check whether operands fit into blocks of given sizes, by a sweep over the operands in running order.

Blocks of equal size are interchangeable, so a choice is that of a size. It is possible if a block of that size is free:
usage intervals need no more blocks than meet at one step. A state is the choice of each operand in use; the choices for
operands that have ended do not matter, so there are few states where few operands live long.
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from time import monotonic

Choices = tuple["int", "Choices"] | None  # the last choice and those before it
Rows = list[tuple[int, int, int]]


class OutOfNodesError(Exception):
    """The limit is used up; internal to the strategy."""


@dataclass
class Limit:
    """Number of nodes that a search may still visit, and its time limit; changes with `take`."""

    nodes: int
    deadline: float

    def take(self, nodes: int) -> None:
        """Count nodes.

        Raises
            OutOfNodesError: no nodes are left, or the time is up
        """
        self.nodes -= nodes
        if self.nodes < 0 or monotonic() > self.deadline:
            raise OutOfNodesError


def choose_sizes(block_sizes: list[int], rows: Rows, limit: Limit) -> list[int] | None:
    """Return the size of the block for each row ``(first, last, nbytes)``, by first step; None if the rows do not fit.

    Raises
        OutOfNodesError: `limit` was reached before the answer
    """
    counts = Counter(block_sizes)
    sizes = sorted(counts, reverse=True)
    room = [counts[size] for size in sizes]
    falling = [-size for size in sizes]
    lasts: list[int] = []
    states: dict[tuple[int, ...], Choices] = {(): None}
    for first, last, nbytes in rows:
        states, lasts = _drop_ended(states, lasts, first)
        states = _choose(states, room, bisect_right(falling, -nbytes), limit)
        if not states:
            return None
        lasts.append(last)
    return _unwind(next(iter(states.values())), sizes)


def _drop_ended(
    states: dict[tuple[int, ...], Choices], lasts: list[int], first: int
) -> tuple[dict[tuple[int, ...], Choices], list[int]]:
    """Drop the choices of operands that ended before step `first`; equal states become one."""
    alive = [k for k, last in enumerate(lasts) if last >= first]
    if len(alive) == len(lasts):
        return states, lasts
    fewer = {tuple(state[k] for k in alive): choices for state, choices in states.items()}
    return fewer, [lasts[k] for k in alive]


def _choose(
    states: dict[tuple[int, ...], Choices], room: list[int], large_enough: int, limit: Limit
) -> dict[tuple[int, ...], Choices]:
    """Return every state with every possible choice for one more operand, among the first `large_enough` sizes."""
    longer: dict[tuple[int, ...], Choices] = {}
    for state, choices in states.items():
        limit.take(large_enough)
        for size in range(large_enough):
            if state.count(size) < room[size]:
                longer[*state, size] = (size, choices)
    return longer


def _unwind(choices: Choices, sizes: list[int]) -> list[int]:
    backwards = []
    while choices:
        size, choices = choices
        backwards.append(sizes[size])
    return backwards[::-1]
