"""Drive the compiled search: orders in turn with node limits that double, in chunks that can be interrupted."""

from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from cgraph.memory.search.instance import Instance
from cgraph.memory.search.orders import Order, orders

CHUNK = 20_000  # nodes between two looks at the clock, tens of milliseconds
FIRST_LIMIT = 1_000  # nodes per order in the first round
MIXTURES = 6  # random orders per round


@dataclass
class Effort:
    """How much a search may do, and what it has done; changes as it goes."""

    seconds: float | None
    nodes: int | None
    used: int = 0  # nodes
    begun: float = field(default_factory=monotonic)

    @property
    def is_spent(self) -> bool:
        late = self.seconds is not None and monotonic() - self.begun >= self.seconds
        return late or (self.nodes is not None and self.used >= self.nodes)

    def chunk(self, wanted: int) -> int:
        """Nodes to do before the next look: `wanted` at most."""
        left = wanted if self.nodes is None else min(wanted, self.nodes - self.used)
        return min(left, CHUNK)


@dataclass(frozen=True)
class Answer:
    """`offsets` in units if a plan was found; `refuted` if there is none; neither when the effort was not enough."""

    offsets: np.ndarray | None = None
    refuted: bool = False

    @property
    def is_open(self) -> bool:
        return self.offsets is None and not self.refuted


def try_round(instance: Instance, capacity: int, limit: int, effort: Effort, weight: np.ndarray) -> Answer:
    """Try every order for `limit` nodes each; `weight` ``[m]`` carries what was learned from one to the next."""
    for order in orders(instance, MIXTURES, seed=limit):
        answer = try_order(instance, capacity, order, limit, effort, weight)
        if not answer.is_open or effort.is_spent:
            return answer
    return Answer()


def try_order(
    instance: Instance, capacity: int, order: Order, limit: int, effort: Effort, weight: np.ndarray | None = None
) -> Answer:
    """Search with one order until decided, `limit` nodes are done or the effort is spent."""
    from cgraph.memory.search import kernel  # compiles; needed only when a search runs

    if weight is None:
        weight = np.ones(len(instance.member_start) - 1)
    state = kernel.new_state(instance, order.rank, weight)
    done = 0
    while done < limit and not effort.is_spent:
        stop = done + effort.chunk(limit - done)
        result = kernel.advance(instance, state, capacity, order.tightest, stop)
        nodes = int(state.counters[kernel.NODES])
        effort.used += nodes - done
        done = nodes
        if result == kernel.FULL:
            state = kernel.with_longer_trail(state)
        elif result == kernel.FOUND:
            return Answer(offsets=state.lowest.copy())
        elif result == kernel.REFUTED:
            return Answer(refuted=True)
    return Answer()
