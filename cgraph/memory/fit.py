"""Do operands fit into blocks of given sizes? Exact, by a sweep over the operands in running order.

Blocks of equal size are alike, so a choice is one of a size, and it is possible as long as not all blocks of that size
are held: usage intervals need no more blocks than meet at one step. A state is the choice of each operand in use; what
was chosen for operands that are gone no longer matters, so where few operands live long there are few states.
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
    """Nodes that a search may still make, and the time until which it may run; changes with `take`."""

    nodes: int
    deadline: float

    def take(self, nodes: int) -> None:
        """Count nodes.

        Raises
            OutOfNodesError: there are none left, or it is too late
        """
        self.nodes -= nodes
        if self.nodes < 0 or monotonic() > self.deadline:
            raise OutOfNodesError


def choose_sizes(block_sizes: list[int], rows: Rows, limit: Limit) -> list[int] | None:
    """The size of the block for each row ``(first, last, nbytes)``, rows by first step; None if they do not fit.

    Raises
        OutOfNodesError: `limit` does not allow to say
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
    """Forget the choices of operands that ended before step `first`; states that differ in nothing else become one."""
    alive = [k for k, last in enumerate(lasts) if last >= first]
    if len(alive) == len(lasts):
        return states, lasts
    fewer = {tuple(state[k] for k in alive): choices for state, choices in states.items()}
    return fewer, [lasts[k] for k in alive]


def _choose(
    states: dict[tuple[int, ...], Choices], room: list[int], large_enough: int, limit: Limit
) -> dict[tuple[int, ...], Choices]:
    """Every state with every possible choice for one more operand, among the first `large_enough` sizes."""
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
