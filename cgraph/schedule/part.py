"""Part of a graph, prepared for a search over sets of executed nodes: sets are bits of an int.

Nodes of the part are numbered 0, 1, … in an order in which they can run.
"""

from collections.abc import Iterator

from cgraph.record import Record
from cgraph.schedule.dag import Dag


class ScheduleState(Record):
    """A set of executed nodes: bits, nodes that can run next, bytes in use, peak so far, and the nodes in their
    order.
    """

    done: int
    ready: tuple[int, ...]
    in_use: int
    peak: int
    before: "ScheduleState | None" = None
    ran: tuple[int, ...] = ()

    def path(self) -> list[int]:
        """Return the nodes in the order in which they ran."""
        runs = []
        state: ScheduleState | None = self
        while state:
            runs.append(state.ran)
            state = state.before
        return [node for ran in reversed(runs) for node in ran]


class OutOfStatesError(Exception):
    """The limit is used up; internal to the schedule."""


class SearchAllowance:
    """Number of states that searches may still visit; changes with `take`."""

    def __init__(self, states: int) -> None:
        self.left = states

    def take(self, state: ScheduleState) -> None:
        """Count a state, or several if many nodes are ready, since all of them are examined.

        Raises
            OutOfStatesError: no states are left
        """
        self.left -= 1 + len(state.ready) // 32
        if self.left < 0:
            raise OutOfStatesError


class SchedulePart:
    """Nodes that run one after the other, whatever their order, from `start` bytes in use on.

    Raises, wherever it makes a state
        OutOfStatesError: `allowance` is used up
    """

    def __init__(self, dag: Dag, nodes: tuple[int, ...], start: int, allowance: SearchAllowance) -> None:
        inside = {node: i for i, node in enumerate(nodes)}
        last = max(nodes)
        read = sorted({x for node in nodes for x in dag.operands[node]} | set(nodes))
        freed = [x for x in read if dag.nbytes[x] and x not in dag.lasting and (dag.users[x] or (x,))[-1] <= last]
        freed_after = {x: bits(inside[user] for user in dag.users[x] if user in inside) for x in freed}
        self.allowance = allowance
        self.nodes = nodes
        self.start = start
        self.nbytes = [dag.nbytes[node] for node in nodes]
        self.scratch = [dag.workspaces[node] for node in nodes]
        self.takes = [
            [(freed_after[x], dag.nbytes[x]) for x in dag.overwritable[node] if x in freed_after] for node in nodes
        ]
        self.users = [[inside[user] for user in dag.users[node] if user in inside] for node in nodes]
        self.needs = [bits(inside[x] for x in dag.operands[node] if x in inside) for node in nodes]
        self.frees = [
            [(freed_after[x], dag.nbytes[x]) for x in (*dag.distinct[node], node) if x in freed_after] for node in nodes
        ]
        self.grows = [own > sum(nbytes for _, nbytes in frees) for own, frees in zip(self.nbytes, self.frees)]

    def begin(self) -> ScheduleState:
        ready = tuple(i for i, needs in enumerate(self.needs) if not needs)
        return self._settle(ScheduleState(0, ready, self.start, 0))

    def next_states(self, state: ScheduleState) -> Iterator[ScheduleState]:
        """Yield the state after each ready node and whatever can then run at once."""
        for node in state.ready:
            yield self._settle(self._run(state, node))

    def _run(self, state: ScheduleState, node: int) -> ScheduleState:
        done = state.done | 1 << node
        ready = [other for other in state.ready if other != node]
        ready += (user for user in self.users[node] if self.needs[user] & done == self.needs[user])
        peak = max(state.peak, state.in_use + self._needed(node, done))
        in_use = state.in_use + self.nbytes[node] - self._freed(node, done)
        return ScheduleState(done, tuple(ready), in_use, peak, state, (node,))

    def _needed(self, node: int, done: int) -> int:
        """Return the bytes that a node needs besides those in use, when it is the last of `done`."""
        overwritten = sum(nbytes for users, nbytes in self.takes[node] if users & done == users)
        return self.scratch[node] + max(self.nbytes[node] - overwritten, 0)

    def _freed(self, node: int, done: int) -> int:
        return sum(nbytes for users, nbytes in self.frees[node] if users & done == users)

    def _settle(self, state: ScheduleState) -> ScheduleState:
        """Run nodes that cannot hurt: they do not raise the peak and leave no more bytes in use than before."""
        while True:
            self.allowance.take(state)
            node = next((node for node in state.ready if self._cannot_hurt(state, node)), None)
            if node is None:
                return state
            then = self._run(state, node)
            state = ScheduleState(then.done, then.ready, then.in_use, then.peak, state.before, (*state.ran, node))

    def _cannot_hurt(self, state: ScheduleState, node: int) -> bool:
        if self.grows[node]:
            return False
        done = state.done | 1 << node
        if state.in_use + self._needed(node, done) > state.peak:
            return False
        return self.nbytes[node] <= self._freed(node, done)


def bits(positions: Iterator[int]) -> int:
    """Return the set of `positions` as bits of an int."""
    together = 0
    for position in positions:
        together |= 1 << position
    return together
