"""Bandwidth of copies and transposes, compared with NumPy's and with memcpy of as many bytes.

One and two threads; the sides alternate within a round, and the median of each is printed, in GB/s of bytes written.
"""

import ctypes
import time
from collections.abc import Callable

import numpy as np

from cgraph.engine.cpu.cores import cores
from cgraph.engine.cpu.threads import run_table
from cgraph.kernels.bound import word_of
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target

ROUNDS = 15
CASES = {
    "contiguous 1 MB": ((256, 1024), (0, 1), "f4"),
    "contiguous 64 MB": ((4096, 4096), (0, 1), "f4"),
    "transpose 512x512 f4": ((512, 512), (1, 0), "f4"),
    "transpose 4096x4096 f4": ((4096, 4096), (1, 0), "f4"),
    "transpose 4000x3000 f8": ((4000, 3000), (1, 0), "f8"),
    "transpose 4096x4096 u1": ((4096, 4096), (1, 0), "u1"),
    "transpose 2048x2048 i2": ((2048, 2048), (1, 0), "i2"),
    "nchw to nhwc 8x64x56x56": ((8, 64, 56, 56), (0, 2, 3, 1), "f4"),
    "nchw to nhwc 8x3x224x224": ((8, 3, 224, 224), (0, 2, 3, 1), "f4"),
    "nhwc to nchw 8x224x224x3": ((8, 224, 224, 3), (0, 3, 1, 2), "f4"),
    "heads 16x197x12x64": ((16, 197, 12, 64), (0, 2, 1, 3), "f4"),
    "heads 16x197x12x64, keys": ((16, 197, 12, 64), (0, 2, 3, 1), "f4"),
}


def main() -> None:
    print(f"{'GB/s':28}{'1 thread':>10}{f'{cores()} threads':>11}{'numpy':>8}{'memcpy':>8}")
    for name, (shape, order, dtype) in CASES.items():
        x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
        print(f"{name:28}{rates(x, x.transpose(order))}")


def rates(x: np.ndarray, seen: np.ndarray) -> str:
    """Return GB/s of each side copying `seen`, a view of `x`."""
    code = f"{x.dtype.kind}{x.itemsize}"
    out = np.zeros(seen.shape, seen.dtype)
    table, keep = table_of(copy_calls(host_target(), view(out), View(Pointer(x), seen.shape, seen.strides, code)))
    sides: list[Callable[[], object]] = [
        lambda: run_table(table, 1),
        lambda: run_table(table, 0),
        lambda: np.copyto(out, seen),
        lambda: ctypes.memmove(out.ctypes.data, x.ctypes.data, x.nbytes),
    ]
    one, all_, numpy, memcpy = (x.nbytes / t / 1e9 for t in medians(sides))
    return f"{one:10.1f}{all_:11.1f}{numpy:8.1f}{memcpy:8.1f}   {keep[0]}"


def view(x: np.ndarray) -> View:
    return View(Pointer(x), x.shape, x.strides, f"{x.dtype.kind}{x.itemsize}")


def table_of(calls: list[Call]) -> tuple[np.ndarray, list]:
    """Return the interpreter's table, and the objects that must stay alive with it."""
    addresses = store().load([c.kernel for c in calls], host_target())
    args = [np.array([word_of(a) for a in c.args]) for c in calls]
    rows = [[addresses[c.kernel], a.ctypes.data, c.tasks, c.chunk] for c, a in zip(calls, args)]
    return np.array(rows, np.int64), [calls[0].kernel, args]


def medians(sides: list[Callable[[], object]]) -> list[float]:
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for seconds, side in zip(times, sides):
            start = time.perf_counter()
            side()
            seconds.append(time.perf_counter() - start)
    return [sorted(t)[ROUNDS // 2] for t in times]


if __name__ == "__main__":
    main()
