"""The scripts as hand-written parallel loops for Numba, as a careful user writes them, without SVML."""

from collections.abc import Callable
from math import erf, exp, log, sin, sqrt

import numpy as np
from numba import njit, prange

from benchmarks.runner import Absent
from benchmarks.script_cases import HEAT_STEPS, RATE, RATE_OF_HEAT, VOLATILITY

loops = njit(parallel=True, fastmath=True)


@loops
def waves(x, y, w, out):
    half = x.dtype.type(0.5)
    for i in prange(x.size):
        out[i] = sin(x[i]) * y[i] + exp(-w[i]) * x[i] - half * x[i] * y[i]


@loops
def waves_sum(x, y, w):
    half, total = x.dtype.type(0.5), 0.0
    for i in prange(x.size):
        total += sin(x[i]) * y[i] + exp(-w[i]) * x[i] - half * x[i] * y[i]
    return total


@loops
def black_scholes(s, k, t, out):
    one = s.dtype.type(1)
    rate, half, volatility = one * RATE, one * 0.5, one * VOLATILITY
    drift, scale = one * (RATE + VOLATILITY * VOLATILITY / 2), one * 0.7071067811865476
    for i in prange(s.size):
        root = volatility * sqrt(t[i])
        d = (log(s[i] / k[i]) + drift * t[i]) / root
        up, down = half + half * erf(d * scale), half + half * erf((d - root) * scale)
        out[i] = s[i] * up - k[i] * exp(-rate * t[i]) * down


@loops
def heat(u, v):
    rate, four = u.dtype.type(RATE_OF_HEAT), u.dtype.type(4)
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            c = u[i, j]
            v[i, j] = c + rate * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - four * c)


@loops
def distances(x, y, out):
    for i in prange(len(x)):
        for j in range(len(y)):
            total = x.dtype.type(0)
            for k in range(x.shape[1]):
                total += (x[i, k] - y[j, k]) ** 2
            out[i, j] = sqrt(total)


def runner_of(script: str, xs: list[np.ndarray]) -> Callable[[], np.ndarray]:
    if script == "heat":
        return lambda: heat_steps(xs[0])
    if script == "waves_sum":
        return lambda: np.asarray(waves_sum(*xs))
    if script not in ("waves", "black_scholes", "distances"):
        raise Absent(f"no loop is written for {script}")
    out = np.empty((len(xs[0]),) * 2 if script == "distances" else xs[0].shape, xs[0].dtype)
    function = {"waves": waves, "black_scholes": black_scholes, "distances": distances}[script]

    def run() -> np.ndarray:
        function(*xs, out)
        return out

    return run


def heat_steps(start: np.ndarray) -> np.ndarray:
    u, v = start.copy(), np.zeros_like(start)
    for _ in range(HEAT_STEPS):
        heat(u, v)
        u, v = v, u
    return u
