"""Drive the compiled search: orders in turn with node limits that grow, in chunks that can be interrupted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from cgraph.memory.search.instance import SearchInstance
from cgraph.memory.search.orders import Order, orders
from cgraph.memory.search.state import FULL, REFUTED, SOLVED, new_state, with_longer_trail
from cgraph.record import Record

CHUNK = 4_000  # maximum nodes between two checks of the clock, tens of milliseconds
CHUNK_WORK = 40_000_000  # nodes times meetings of operands between two checks
SPARE = 400  # nodes per order in the first round, besides one for each operand
ORDERS = 10  # growth per round
GROWTH = 1.3  # growth of the nodes per order; 2 would spend most of the time on the last, unlucky orders


@dataclass
class Effort:
    """Limits of a search and what it has used of them; changes as it runs. `tell` is called some times a second."""

    seconds: float | None
    nodes: int | None
    tell: Callable[[], None] | None = None
    used: int = 0  # nodes
    begun: float = field(default_factory=monotonic)

    @property
    def is_spent(self) -> bool:
        late = self.seconds is not None and monotonic() - self.begun >= self.seconds
        return late or (self.nodes is not None and self.used >= self.nodes)

    def chunk(self, most: int, instance: SearchInstance) -> int:
        """Return the nodes until the next check: at most `wanted`, fewer if many operands meet and a node takes
        long.
        """
        left = most if self.nodes is None else min(most, self.nodes - self.used)
        return min(left, CHUNK, 64 + CHUNK_WORK // (1 + len(instance.neighbour)))


class Answer(Record):
    """The result: `offsets` in units if a plan was found; `refuted` if none exists; neither if the effort ran out."""

    offsets: np.ndarray | None = None
    refuted: bool = False

    @property
    def is_open(self) -> bool:
        return self.offsets is None and not self.refuted


def try_round(instance: SearchInstance, capacity: int, turn: int, effort: Effort, weight: np.ndarray) -> Answer:
    """Try several orders, each for a number of nodes that grows from turn to turn.

    `weight` ``[m]`` carries what was learned about the sections from one search to the next.
    """
    limit = int((len(instance.size) + SPARE) * GROWTH**turn)
    for order in orders(instance, ORDERS, turn):
        answer = try_order(instance, capacity, order, limit, effort, weight if order.learned else np.ones_like(weight))
        if not answer.is_open or effort.is_spent:
            return answer
    return Answer()


def try_order(
    instance: SearchInstance, capacity: int, order: Order, limit: int, effort: Effort, weight: np.ndarray
) -> Answer:
    """Search with one order until it is decided, `limit` nodes are visited or the effort is spent; adds to `weight`."""
    from cgraph.memory.search import kernel  # imports Numba; needed only when a search runs

    state = new_state(instance, order.rank, weight)
    done = 0
    while done < limit and not effort.is_spent:
        result = kernel.advance(instance, state, capacity, order.method, done + effort.chunk(limit - done, instance))
        nodes = int(state.counters[kernel.NODES])
        effort.used += nodes - done
        if effort.tell is not None:
            effort.tell()
        done = nodes
        if result == FULL:
            state = with_longer_trail(state)
        elif result == SOLVED:
            return Answer(offsets=state.lowest.copy())
        elif result == REFUTED:
            return Answer(refuted=True)
    return Answer()
