"""Search for an order of a part's nodes with a smaller peak, over sets of executed nodes: best first, or by beam.

The state depends on the set of executed nodes, not on their order, except for the peak so far: of all orders of one set
the best is enough. Both searches are deterministic; their limits are counted in states, not in seconds.

Source: Liberis and Lane 2019, arXiv:1910.05110.
"""

import heapq

from cgraph.schedule.part import SchedulePart, ScheduleState

WIDE, NARROW = 16, 2  # states that a beam keeps at each step


def best_first(part: SchedulePart, below: int) -> ScheduleState | None:
    """Return an order with the least peak of all, if that is less than `below`; None if no order has less.

    Raises
        OutOfStatesError: the limit of states is exceeded before the search ends
    """
    everything = (1 << len(part.nodes)) - 1
    start = part.begin()
    queue = [(start.peak, 0, start)]
    least = {start.done: start.peak}
    count = 0
    while queue:
        _, _, state = heapq.heappop(queue)
        if state.done == everything:
            return state
        if state.peak > least[state.done]:
            continue
        for then in part.next_states(state):
            if then.peak < min(below, least.get(then.done, below)):
                least[then.done] = then.peak
                count += 1
                heapq.heappush(queue, (then.peak, -count, then))  # of equal peaks the newest, straight to the end
    return None


def wide_beam(part: SchedulePart, below: int) -> ScheduleState | None:
    """Return an order with a peak less than `below`, by `beam`."""
    return beam(part, below, WIDE)


def narrow_beam(part: SchedulePart, below: int) -> ScheduleState | None:
    """Return an order with a peak less than `below`, by a narrower `beam`: faster, but less often successful."""
    return beam(part, below, NARROW)


def beam(part: SchedulePart, below: int, width: int) -> ScheduleState | None:
    """Return an order with a peak less than `below`, keeping the `width` best sets of each step; None if none was
    found.

    Raises
        OutOfStatesError: the limit was reached before the answer
    """
    everything = (1 << len(part.nodes)) - 1
    states = [part.begin()]
    best: ScheduleState | None = None
    while states:
        together: dict[int, ScheduleState] = {}
        for state in states:
            for then in part.next_states(state):
                if then.peak < min(below, _peak(together.get(then.done), below)):
                    together[then.done] = then
        finished = together.pop(everything, None)
        if finished:
            best, below = finished, finished.peak
        states = sorted(together.values(), key=lambda state: (state.peak, state.in_use))[:width]
    return best


def _peak(state: ScheduleState | None, otherwise: int) -> int:
    return state.peak if state else otherwise
