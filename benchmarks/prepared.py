"""Kernel calls bound to NumPy arrays, to time them on one thread without an engine."""

import time
from collections.abc import Callable, Iterable

import numpy as np

from cgraph.kernels.bound import Bound
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.target import Target, host_target


def prepare(calls: Iterable[Call], target: Target | None = None) -> Callable[[], None]:
    """Return a function that runs `calls` in order and keeps their arrays alive; a Pointer's base is an array."""
    ready = [(Bound(c, target or host_target()), c.tasks) for c in calls]

    def run() -> None:
        for kernel, tasks in ready:
            kernel(0, tasks)

    return run


def aligned(nbytes: int) -> np.ndarray:
    """Return zero bytes that begin at a page, on huge pages if the system provides them."""
    raw = np.zeros(nbytes + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + nbytes]


def workspace(nbytes: int) -> View:
    """Return a workspace that begins at a page."""
    return contiguous(Pointer(aligned(nbytes)), (nbytes,), "u1")


def alternate(
    functions: dict[str, Callable[[], object]], seconds: float = 0.4, rounds: int = 9
) -> dict[str, list[float]]:
    """Return seconds per call of each function, measured in turns so that other work affects all of them equally."""
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
