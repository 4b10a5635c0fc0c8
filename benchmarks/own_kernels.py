"""Three user kernels, compared with NumPy, Numba alone, and `delay`: milliseconds, and the cost of compiling.

    python -m benchmarks.own_kernels

All in turns, medians of nine rounds; Numba alone runs the same functions, called by a loop over the tasks or the
numbers. `cold` compiles in a fresh process with an empty cache, `warm` in a fresh process with a filled one.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numba
import numpy as np

import cgraph as cg
from benchmarks.prepared import alternate
from cgraph.engine.cpu.cores import cores
from examples.own_kernels import bilateral, running_largest, soft

SHAPE = (1000, 1000)
LIMIT, REACH, SPACE, TONE = np.float32(0.5), 2, np.float32(0.1), np.float32(2)
COMPILE = """
import sys, time
import cgraph as cg
from examples.own_kernels import bilateral
x = cg.Var((64, 64), name="x")
start = time.perf_counter()
cg.compile(bilateral(x, 2, 0.1, 2.0), x)
print(time.perf_counter() - start)
"""


def main() -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE, "float32")
    print(f"milliseconds, float32{list(SHAPE)}, {cores()} cores")
    for name, functions in (
        ("soft threshold", thresholds(x)),
        ("running maximum", maxima(x)),
        ("bilateral", filters(x)),
    ):
        times = alternate(functions)
        print(f"{name}: " + ", ".join(f"{f} {1e3 * statistics.median(t):.2f}" for f, t in times.items()))
    print("compiling the bilateral filter: cold {:.2f} s, warm {:.3f} s".format(*compile_seconds()))


def ours(node: cg.Node, x: cg.Var, value: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return runs on one thread, and on all."""
    functions = {n: cg.compile(node, x, threads=n) for n in sorted({1, cores()})}
    return {f"cgraph {n}": lambda f=f: f(value, copy=False) for n, f in functions.items()}


def thresholds(value: np.ndarray) -> dict[str, Callable[[], object]]:
    one, out, x = numba.njit(soft.function), np.empty_like(value), cg.Var(SHAPE, name="x")

    @numba.njit(error_model="numpy")
    def loop(out: np.ndarray, x: np.ndarray, limit: float) -> None:
        for i in range(x.size):
            out[i] = one(x[i], limit)

    built_in = cg.compile(cg.sign(x) * cg.maximum(abs(x) - LIMIT, 0), x, threads=1)
    return {
        "NumPy": lambda: np.sign(value) * np.maximum(np.abs(value) - LIMIT, 0),
        "Numba": lambda: loop(out.reshape(-1), value.reshape(-1), LIMIT),
        "delay": delayed(lambda v: np.sign(v) * np.maximum(np.abs(v) - LIMIT, 0), x, value),
        **ours(soft(x, LIMIT), x, value),
        "built-in ops 1": lambda: built_in(value, copy=False),
    }


def maxima(value: np.ndarray) -> dict[str, Callable[[], object]]:
    one, out, x = numba.njit(running_largest.function), np.empty_like(value), cg.Var(SHAPE, name="x")

    @numba.njit(error_model="numpy")
    def loop(out: np.ndarray, x: np.ndarray) -> None:
        for task in range(x.shape[0]):
            one(task, out, x)

    return {
        "NumPy": lambda: np.maximum.accumulate(value, 1),
        "Numba": lambda: loop(out, value),
        "delay": delayed(lambda v: np.maximum.accumulate(v, 1), x, value),
        **ours(running_largest(x), x, value),
    }


def filters(value: np.ndarray) -> dict[str, Callable[[], object]]:
    one, out, x = numba.njit(bilateral.function), np.empty_like(value), cg.Var(SHAPE, name="x")

    @numba.njit(error_model="numpy")
    def loop(out: np.ndarray, x: np.ndarray, reach: int, space: float, tone: float) -> None:
        for task in range(x.shape[0]):
            one(task, out, x, reach, space, tone)

    return {
        "NumPy": lambda: filtered(value),
        "Numba": lambda: loop(out, value, REACH, SPACE, TONE),
        "delay": delayed(filtered, x, value),
        **ours(bilateral(x, REACH, SPACE, TONE), x, value),
    }


def filtered(x: np.ndarray) -> np.ndarray:
    """Return the bilateral filter, by whole shifted images."""
    rows, columns = x.shape
    wide = np.pad(x, REACH, constant_values=np.nan)
    total, weights = np.zeros_like(x), np.zeros_like(x)
    for r in range(2 * REACH + 1):
        for c in range(2 * REACH + 1):
            other = wide[r : r + rows, c : c + columns]
            apart = np.float32((r - REACH) ** 2 + (c - REACH) ** 2)
            weight = np.nan_to_num(np.exp(-SPACE * apart - TONE * np.square(other - x)))
            total += weight * np.nan_to_num(other)
            weights += weight
    return total / weights


def delayed(function: Callable, x: cg.Var, value: np.ndarray) -> Callable[[], object]:
    f = cg.compile(cg.delay(function, x), x)
    return lambda: f(value, copy=False)


def compile_seconds() -> list[float]:
    """Return seconds of compiling in fresh processes that share an initially empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        given = os.environ | {"XDG_CACHE_HOME": folder}
        command = [sys.executable, "-c", COMPILE]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=given) for _ in range(2)]
        return [float(run.stdout) for run in runs]


if __name__ == "__main__":
    main()
