"""Kernel calls bound to NumPy arrays, to time them on one thread without an engine."""

import time
from collections.abc import Callable, Iterable

import numpy as np

from cgraph.kernels.bound import Bound
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.target import Target, host_target


def prepare(calls: Iterable[Call], target: Target | None = None) -> Callable[[], None]:
    """A function that runs `calls` in order and keeps their arrays alive; a Pointer's base is an array."""
    ready = [(Bound(c, target or host_target()), c.tasks) for c in calls]

    def run() -> None:
        for kernel, tasks in ready:
            kernel(0, tasks)

    return run


def aligned(nbytes: int) -> np.ndarray:
    """Zero bytes that start at a page, on huge pages where the system gives them."""
    raw = np.zeros(nbytes + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + nbytes]


def workspace(nbytes: int) -> View:
    """A workspace that starts at a page."""
    return contiguous(Pointer(aligned(nbytes)), (nbytes,), "u1")


def alternate(
    functions: dict[str, Callable[[], object]], seconds: float = 0.4, rounds: int = 9
) -> dict[str, list[float]]:
    """Seconds per call of each function, measured in turns so that a busy neighbour meets them all alike."""
    repeats = {}
    for name, f in functions.items():
        f()
        start = time.perf_counter()
        f()
        repeats[name] = max(1, int(seconds / rounds / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, f in functions.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                f()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return times
