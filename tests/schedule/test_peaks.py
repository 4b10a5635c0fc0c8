"""Peaks of every schedule on random graphs, and their bound, are exact numbers: a change shows in review.

python -m tests.schedule.test_peaks > tests/schedule/peaks.txt
"""

import random
import sys
from functools import partial
from pathlib import Path

from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, least_peak, peak
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.eager import eager
from cgraph.schedule.least_memory import least_memory

SEEDS = range(96)
SCHEDULES = {
    "depth_first": depth_first,
    "breadth_first": breadth_first,
    "costly_first": costly_first,
    "eager": eager,
    "least_20": partial(least_memory, states=20),
    "least_100": partial(least_memory, states=100),
    "least_1000": partial(least_memory, states=1000),
}
HEAD = "seed " + " ".join(f"{name:>13}" for name in ("least_peak", *SCHEDULES))


def random_dag(seed: int) -> Dag:
    """Any graph, one without long ways, a tree, or blocks one after the other; workspaces and taken bytes in some.

    Leaves with and without bytes, forks, joins and kept values are in all of them.
    """
    rng = random.Random(seed)
    count = rng.choice((10, 16, 28, 48))
    operands = (anything, near, tree, blocks)[seed % 4](rng, count)
    nbytes = [rng.choice((0, 1, 2, 5, 9, 20)) for _ in operands]
    kept = frozenset(rng.sample(range(len(operands)), 2))
    if seed % 3:
        return Dag(tuple(nbytes), tuple(operands), kept)
    scratch = tuple(rng.choice((0, 0, 1, 7, 30)) for _ in operands)
    takes = tuple(rng.choice(((), xs)) for xs in operands)
    return Dag(tuple(nbytes), tuple(operands), kept, scratch, takes)


def anything(rng: random.Random, count: int, reach: int | None = None) -> list[tuple[int, ...]]:
    """Up to three operands each, at most so many nodes back."""
    back = reach or count
    return [
        tuple(rng.randrange(max(0, i - back), i) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))) if i else ()
        for i in range(count)
    ]


def near(rng: random.Random, count: int) -> list[tuple[int, ...]]:
    return anything(rng, count, 6)


def tree(rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Every value is read once."""
    operands: list[tuple[int, ...]] = []
    waiting: list[int] = []
    for i in range(count):
        taken = rng.sample(waiting, min(rng.choice((0, 0, 1, 2, 3)), len(waiting)))
        waiting = [*(x for x in waiting if x not in taken), i]
        operands.append(tuple(taken))
    return [*operands, tuple(waiting)]


def blocks(rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Branches of some nodes that begin at one node and end in one."""
    operands: list[tuple[int, ...]] = [()]
    while len(operands) < count:
        begin, ends = len(operands) - 1, []
        for _ in range(rng.choice((1, 2, 3, 4))):
            last = begin
            for _ in range(rng.choice((1, 2, 3))):
                operands.append((last,))
                last = len(operands) - 1
            ends.append(last)
        operands.append(tuple(ends))
    return operands


def row(seed: int) -> str:
    dag = random_dag(seed)
    peaks = [least_peak(dag), *(peak(dag, schedule(dag)) for schedule in SCHEDULES.values())]
    return f"{seed:4} " + " ".join(f"{nbytes:13}" for nbytes in peaks)


def table() -> str:
    return "\n".join([HEAD, *map(row, SEEDS)]) + "\n"


def test_peaks_are_those_of_the_file():
    assert table() == (Path(__file__).parent / "peaks.txt").read_text()


if __name__ == "__main__":
    sys.stdout.write(table())
