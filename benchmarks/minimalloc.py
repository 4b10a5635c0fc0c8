"""Time of the exact search on MiniMalloc's benchmark, next to MiniMalloc's own.

    python -m benchmarks.minimalloc [folder of the CSV files]

Each file has a problem that fits in 1,048,576 bytes, in most cases exactly. Seconds are CPU seconds of one thread, the
best of several runs, after the search is compiled. The reference is not run here: its seconds are constants, see below.
"""

import sys
import time
from math import exp, log
from pathlib import Path

from cgraph.memory.check import check_plan
from cgraph.memory.files import read_problem
from cgraph.memory.problem import Problem
from cgraph.memory.strategies.exact import exact

CAPACITY = 1_048_576
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "minimalloc"
RUNS = 5
PER_FILE = 60.0  # time limit in seconds

# seconds on one thread of the C++ solver built from google/minimalloc, measured on a similar machine
REFERENCE = {
    "A": 5.42,
    "B": 3.85,
    "C": 0.64,
    "D": 2.27,
    "E": 3.96,
    "F": 4.90,
    "G": 0.88,
    "H": 1.61,
    "I": 5.10,
    "J": 1.48,
    "K": 0.79,
}


def main(folder: Path) -> None:
    files = sorted(path for path in folder.glob(f"*.{CAPACITY}.csv") if path.name[0] in REFERENCE)
    if not files:
        sys.exit(f"no files *.{CAPACITY}.csv in {folder}")
    exact(read_problem(files[0]), nodes=0)  # compile
    print(f"{'file':4} {'n':>4} {'nodes':>8} {'plan':>8} {'seconds':>8} {'C++':>6} {'ratio':>6}")
    ours, theirs = [], []
    for path in files:
        name, problem = path.name[0], read_problem(path)
        seconds, nbytes = measure(problem)
        ours.append(seconds)
        theirs.append(REFERENCE[name])
        row = f"{name:4} {len(problem.operands):4} {nodes_needed(problem):8} {nbytes:8}"
        print(f"{row} {seconds:8.3f} {theirs[-1]:6.2f} {seconds / theirs[-1]:6.3f}", flush=True)
    a, b = mean(ours), mean(theirs)
    print(f"geometric means {'':17} {a:8.3f} {b:6.2f} {a / b:6.3f}")


def measure(problem: Problem) -> tuple[float, int]:
    """Return CPU seconds of the best run, and the size of the plan, checked."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        plan = exact(problem, seconds=PER_FILE, capacity=CAPACITY)
        best = min(best, time.process_time() - start)
    check_plan(problem, plan)
    if plan.nbytes > CAPACITY:
        sys.exit(f"not solved within {PER_FILE} seconds")
    return best, plan.nbytes


def nodes_needed(problem: Problem) -> int:
    """Return the smallest sufficient node limit; the search is deterministic, so it can be bisected."""
    enough = 1
    while exact(problem, seconds=None, nodes=enough, capacity=CAPACITY).nbytes > CAPACITY:
        enough *= 2
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        solved = exact(problem, seconds=None, nodes=middle, capacity=CAPACITY).nbytes <= CAPACITY
        short, enough = (short, middle) if solved else (middle, enough)
    return enough


def mean(xs: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, xs)) / len(xs))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
