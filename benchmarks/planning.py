"""Processor time of planning 4,000 values, 2,000 of which are alive at once: `auto`, and each of its strategies
alone.

python -m benchmarks.planning

Sizes and intervals are random with a fixed seed: a training chain (the value of step i is read again i steps before the
end), a chain of few sizes, values that live for half of all steps, and intervals of any length, where no strategy
reaches the lower bound and `auto` runs all. Milliseconds, medians of nine.
"""

import random
import time
from collections.abc import Callable
from statistics import median

from cgraph.memory.auto import auto
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import Plan, Problem, problem_of
from cgraph.memory.strategies import OFFSET_STRATEGIES

VALUES, REPEATS = 4_000, 9
NAMES = ("greedy_by_size", "strip_packing", "greedy_by_breadth", "greedy_in_order")
Rows = list[tuple[int, int, int]]


def trained(sizes: range | tuple[int, ...]) -> Rows:
    """Return values of which the first half is read again, in reverse order, while the second half is computed."""
    draw = random.Random(0)
    ends = [VALUES - i if 2 * i < VALUES else i + 1 for i in range(VALUES)]
    return [(64 * draw.choice(sizes), i, end) for i, end in enumerate(ends)]


def wide() -> Rows:
    draw = random.Random(1)
    return [(64 * draw.randint(1, 10_000), i, i + VALUES // 2 - 1) for i in range(VALUES)]


def any_length() -> Rows:
    draw = random.Random(2)
    firsts = [draw.randrange(VALUES) for _ in range(VALUES)]
    return [(64 * draw.randint(1, 10_000), first, first + draw.randrange(VALUES)) for first in firsts]


def milliseconds(plan: Callable[[Problem], Plan], rows: Rows) -> float:
    times = []
    for _ in range(REPEATS):
        problem = problem_of(rows, 64)
        start = time.process_time()
        plan(problem)
        times.append(time.process_time() - start)
    return 1e3 * median(times)


def main() -> None:
    graphs = {
        "trained": trained(range(1, 10_000)), "few sizes": trained((1, 16, 64, 100)), "wide": wide(),
        "any length": any_length(),
    }  # fmt: skip
    print(f"{'':11}{'auto':>7}{'/ bound':>9}  " + "  ".join(NAMES))
    for name, rows in graphs.items():
        problem = problem_of(rows, 64)
        ratio = auto(problem).nbytes / lower_bound(problem)
        times = "  ".join(f"{milliseconds(OFFSET_STRATEGIES[x], rows):{len(x)}.1f}" for x in NAMES)
        print(f"{name:11}{milliseconds(auto, rows):7.1f}{ratio:9.3f}  {times}")


if __name__ == "__main__":
    main()
