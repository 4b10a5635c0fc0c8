"""The interpreter's cost per kernel call. The kernel is libc's `labs`, whose time is negligible.

Prints nanoseconds per call for one thread, and for several threads with calls of one share and of one share each.
"""

import ctypes
import time

import numpy as np

from cgraph.engine.cpu.threads import ThreadPool

ROWS, REPEATS = 1000, 30


def main() -> None:
    kernel = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    for threads, tasks in ((1, 1), (1, 16), (2, 1), (2, 2), (2, 16), (4, 4)):
        pool = ThreadPool(threads)
        table = np.array([[kernel, 0, tasks, 1]] * ROWS, np.int64)
        times = sorted(seconds(pool, table, threads) for _ in range(REPEATS))
        per_row = [1e9 * t / ROWS for t in (times[0], times[len(times) // 2])]
        print(f"{threads} threads, {tasks:2} tasks: {per_row[0]:7.1f} ns a call at best, {per_row[1]:7.1f} median")
        one = sorted(seconds(pool, table[:1].copy(), threads) for _ in range(200))
        print(f"{threads} threads, a run of one call: {1e6 * one[0]:.2f} us at best, {1e6 * one[100]:.2f} median")
        pool.close()


def seconds(pool: ThreadPool, table: np.ndarray, threads: int) -> float:
    start = time.perf_counter()
    pool.run(table.ctypes.data, len(table), threads)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
