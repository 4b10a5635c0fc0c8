"""The cost of a call in Python: Functions of a few elements, microseconds of processor time per call.

    python -m benchmarks.calls

Medians of 9 times 200 calls, the Functions in turns, with minimum and maximum.
"""

import time
from collections.abc import Callable
from statistics import median

import numpy as np

import cgraph as cg

TURNS, CALLS, WARM = 9, 200, 300


def functions() -> dict[str, Callable[[], object]]:
    """Return Functions with one input; with two cells, one of which has an update edge; with many cells."""
    x, w, v = cg.Var((4,), name="x"), held(1.0), held(2.0)
    plain = cg.compile(cg.exp(x) * 2 + 1, x)
    step = cg.compile(cg.sum(x * w + v), x, updates={w: w * 0.5 + 1})
    many = [held(float(i)) for i in range(100)]
    training = cg.compile(cg.sum(x), x, updates={m: m * 0.5 + x for m in many})
    a = np.ones(4, "float32")
    return {"one input": lambda: plain(a), "an update edge": lambda: step(a), "100 update edges": lambda: training(a)}


def held(value: float) -> cg.Var:
    return cg.Var((4,)).assign(np.full(4, value, "float32"))


def main() -> None:
    calls = functions()
    for call in calls.values():
        repeated(call, WARM)
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            found[name].append(repeated(call, CALLS) * 1e6)
    for name, times in found.items():
        print(f"{name}: {median(times):.1f} us ({min(times):.1f}-{max(times):.1f})")


def repeated(call: Callable[[], object], count: int) -> float:
    """Return seconds of processor time per call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


if __name__ == "__main__":
    main()
