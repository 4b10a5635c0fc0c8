"""Kernel calls bound to NumPy arrays, to time them on one thread without an engine."""

import ctypes
import struct
import time
from collections.abc import Callable, Iterable

import numpy as np

from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.store import store
from cgraph.kernels.target import Target, host_target

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def prepare(calls: Iterable[Call], target: Target | None = None) -> Callable[[], None]:
    """A function that runs `calls` in order and keeps their arrays alive; a Pointer's base is an array."""
    calls = tuple(calls)
    addresses = store().load([c.kernel for c in calls], target or host_target())
    bound = [(KERNEL(addresses[c.kernel]), np.array([word(a) for a in c.args], np.int64), c.tasks) for c in calls]
    ready = [(kernel, args.ctypes.data, tasks) for kernel, args, tasks in bound]

    def run() -> None:
        for kernel, at, tasks in ready:
            kernel(at, 0, tasks)

    run.kept = calls, bound  # type: ignore[attr-defined]
    return run


def word(value: int | float | Pointer) -> int:
    """An argument as a kernel reads it: 64 bits."""
    if isinstance(value, Pointer):
        return value.base.ctypes.data + value.offset  # type: ignore[attr-defined]
    if isinstance(value, float):
        return struct.unpack("q", struct.pack("d", value))[0]
    return int(value)


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
