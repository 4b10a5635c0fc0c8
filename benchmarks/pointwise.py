"""Speed of fused expressions and reductions, compared with NumPy, numexpr (one thread each) and a copy.

Milliseconds at 10 M elements, one and two threads; the sides alternate within a round, and the median of each is
printed.
GB/s counts every operand and the result once; the copy is NumPy's.
"""

import time
from collections.abc import Callable

import numexpr
import numpy as np
from scipy.special import erf

from benchmarks.prepared import aligned
from cgraph.engine.cpu.threads import run_table
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target

SIZE, ROUNDS = 10_000_000, 7
SUMS = [((4000, 2500), (0,)), ((4000, 2500), (1,)), ((100_000, 100), (0,)), ((32, 100, 3125), (0, 2))]
RATE, VOLATILITY = 0.05, 0.2
SIDES = ("1 thread", "2 threads", "numpy", "numexpr")


def waves(m, x, y, w):
    return m.sin(x) * y + m.exp(-w) * x - 0.5 * x * y


def waves_numpy(x, y, w):
    return np.sin(x) * y + np.exp(-w) * x - x.dtype.type(0.5) * x * y


def black_scholes(m, s, k, t, erf=None):
    """Return the price of a European call; `m` has log, sqrt, exp and erf."""
    erf = erf or m.erf
    root = VOLATILITY * m.sqrt(t)
    d = (m.log(s / k) + (RATE + VOLATILITY * VOLATILITY / 2) * t) / root
    up, down = (0.5 + 0.5 * erf(v * 0.7071067811865476) for v in (d, d - root))
    return s * up - k * m.exp(-RATE * t) * down


def main() -> None:
    print(f"{'ms':34}" + "".join(f"{side:>12}" for side in SIDES) + f"{'GB/s of copy, 1, 2 threads':>30}")
    for dtype in ("f4", "f8"):
        rng = np.random.default_rng(0)
        x, y, w = (fresh(rng.standard_normal(SIZE), dtype) for _ in range(3))
        out, total = fresh(np.zeros(SIZE), dtype), np.zeros((), dtype)
        program, half = traced(waves, dtype), x.dtype.type(0.5)
        report(
            f"waves {dtype}",
            pointwise_calls(host_target(), program, view(out), view(x), view(y), view(w)),
            lambda x=x, y=y, w=w: waves_numpy(x, y, w),
            lambda x=x, y=y, w=w, h=half: numexpr.evaluate("sin(x)*y+exp(-w)*x-h*x*y"),
            (x, out, 4),
        )
        room = np.zeros(reduce_nbytes("sum", dtype, (SIZE,), (0,)), "u1")
        report(
            f"sum of waves {dtype}",
            reduce_calls(
                host_target(), "sum", program, view(total), view(x), view(y), view(w), axes=(0,), workspace=view(room)
            ),
            lambda x=x, y=y, w=w: waves_numpy(x, y, w).sum(),
            lambda x=x, y=y, w=w, h=half: numexpr.evaluate("sum(sin(x)*y+exp(-w)*x-h*x*y)"),
            (x, out, 3),
        )
        s, k, t = (fresh(rng.uniform(a, b, SIZE), dtype) for a, b in ((50, 150), (50, 150), (0.1, 2)))
        report(
            f"Black-Scholes {dtype}",
            pointwise_calls(host_target(), traced(black_scholes, dtype), view(out), view(s), view(k), view(t)),
            lambda s=s, k=k, t=t: black_scholes(np, s, k, t, erf),
            None,  # numexpr has no erf
            (x, out, 4),
        )

        for shape, axes in SUMS:
            report_sum(x.reshape(shape), axes)


def report_sum(x: np.ndarray, axes: tuple[int, ...]) -> None:
    """Print a sum along some axes, which is bound by reading its operand."""
    dtype, m = f"f{x.itemsize}", Trace()
    out = x.sum(axes)
    room = np.zeros(reduce_nbytes("sum", dtype, x.shape, axes), "u1")
    calls = reduce_calls(
        host_target(), "sum", m.program(m.load(0, dtype)), view(out), view(x), axes=axes, workspace=view(room)
    )
    report(f"sum {x.shape} {axes} {dtype}", calls, lambda: x.sum(axes), None, (x, np.empty_like(x), 1))


def traced(f: Callable, dtype: str) -> Program:
    m = Trace()
    return m.program(f(m, *(m.load(i, dtype) for i in range(3))))


def fresh(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values in memory that begins at a page, as an arena does."""
    made = aligned(SIZE * np.dtype(dtype).itemsize).view(dtype)
    made[:] = values
    return made


def view(x: np.ndarray) -> View:
    return View(Pointer(x), x.shape, x.strides, f"{x.dtype.kind}{x.itemsize}")


def report(name: str, calls: list[Call], numpy: Callable, peer: Callable | None, copied: tuple) -> None:
    """Print one line; `copied` is an array, another to copy it to, and the number of such arrays that the work reads
    and writes.
    """
    source, target, moved = copied
    table, kept = table_of(calls)
    sides = [lambda: run_table(table, 1), lambda: run_table(table, 2), numpy, peer or (lambda: None)]
    one, two, *peers, copy = medians([*sides, lambda: np.copyto(target, source)])
    rates = [2 * source.nbytes / copy / 1e9, *(moved * source.nbytes / t / 1e9 for t in (one, two))]
    cells = [f"{1e3 * t:12.1f}" for t in (one, two, *peers)]
    print(f"{name:34}{''.join(cells)}{rates[0]:14.1f}{rates[1]:8.1f}{rates[2]:8.1f}", flush=True)
    del kept


def table_of(calls: list[Call]) -> tuple[np.ndarray, list]:
    """Return the interpreter's table, and the objects that must stay alive with it."""
    addresses = store().load([c.kernel for c in calls], host_target())
    args = [
        np.array([a.base.ctypes.data + a.offset if isinstance(a, Pointer) else a for a in c.args], np.int64)
        for c in calls
    ]
    rows = [[addresses[c.kernel], a.ctypes.data, c.tasks, c.chunk] for c, a in zip(calls, args)]
    return np.array(rows, np.int64), args


def medians(sides: list[Callable[[], object]]) -> list[float]:
    times: list[list[float]] = [[] for _ in sides]
    for i in range(ROUNDS + 1):
        for seconds, side in zip(times, sides):
            start = time.perf_counter()
            side()
            seconds.append(time.perf_counter() - start)
            if i == 0:
                seconds.clear()
    return [sorted(t)[ROUNDS // 2] for t in times]


if __name__ == "__main__":
    numexpr.set_num_threads(1)
    main()
