"""Timing model of actors that wait for one another: a weight reader and the kernels that follow, pipeline stages.

An actor does its acts in order, each as soon as it can. Counters only rise, so the outcome of a script does not depend
on the order in which actors are examined. Time in proportion to the acts.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from cgraph.errors import GraphError
from cgraph.record import Record


class Busy(Record):
    """An act that takes time."""

    seconds: float


class Tell(Record):
    """Set a counter to a number."""

    counter: str
    count: int


class Wait(Record):
    """Continue when a counter has reached a number; counters begin at 0."""

    counter: str
    count: int


Act = Busy | Tell | Wait
Told = dict[str, list[tuple[int, float]]]  # rising numbers, and the time at which each was reached


def ends_of(scripts: Sequence[Sequence[Act]]) -> list[list[float]]:
    """Return when each act of each actor ends, in seconds from the beginning.

    Raises
        GraphError: all remaining actors wait for one another
    """
    told: Told = defaultdict(lambda: [(0, 0.0)])
    ends: list[list[float]] = [[] for _ in scripts]
    going = True
    while going:
        going = False
        for script, done in zip(scripts, ends):
            while len(done) < len(script):
                end = end_of(script[len(done)], done[-1] if done else 0.0, told)
                if end is None:
                    break
                done.append(end)
                going = True
    for script, done in zip(scripts, ends):
        if len(done) < len(script):
            raise GraphError(f"{script[len(done)]} is waited for without end")
    return ends


def end_of(act: Act, now: float, told: Told) -> float | None:
    """Return when an act that begins now ends; None if it waits for something not computed yet."""
    if isinstance(act, Busy):
        return now + act.seconds
    times = told[act.counter]
    if isinstance(act, Tell):
        times.append((act.count, now))
        return now
    place = bisect_left(times, (act.count,))
    return max(now, times[place][1]) if place < len(times) else None
