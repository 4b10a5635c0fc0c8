"""The scripts of table 3, each written once for a namespace `m` that every engine provides.

`m` has sin, exp, log, sqrt, erf, tanh, sigmoid, maximum, sum, pad_one; arrays have operators, slices and ``@``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

SIZE = 10_000_000
GRID, HEAT_STEPS, RATE_OF_HEAT = 2048, 200, 0.1
POINTS, FEATURES = 3000, 50
BATCH, UNITS, LSTM_STEPS = 32, 128, 100
CHAIN, CHAIN_SIZE = 2000, 1000
RATE, VOLATILITY = 0.05, 0.2


def waves(m: Any, x: Any, y: Any, w: Any) -> Any:
    return m.sin(x) * y + m.exp(-w) * x - 0.5 * x * y


def waves_sum(m: Any, x: Any, y: Any, w: Any) -> Any:
    return m.sum(waves(m, x, y, w))


def black_scholes(m: Any, s: Any, k: Any, t: Any) -> Any:
    """Return the price of a European call."""
    root = VOLATILITY * m.sqrt(t)
    d = (m.log(s / k) + (RATE + VOLATILITY * VOLATILITY / 2) * t) / root
    up, down = (0.5 + 0.5 * m.erf(v * 0.7071067811865476) for v in (d, d - root))
    return s * up - k * m.exp(-RATE * t) * down


def heat(m: Any, u: Any) -> Any:
    """Return the field after one step; the border stays 0."""
    c = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return m.pad_one(c + RATE_OF_HEAT * (around - 4.0 * c))


def distances(m: Any, x: Any, y: Any) -> Any:
    squares = m.sum(x * x, 1)[:, None] + m.sum(y * y, 1)[None, :]
    return m.sqrt(m.maximum(squares - 2.0 * (x @ y.T), 0.0))


def lstm_step(m: Any, xw: Any, h: Any, c: Any, u: Any) -> tuple[Any, Any]:
    z = xw + h @ u
    i, f, g, o = (z[:, n * UNITS : (n + 1) * UNITS] for n in range(4))
    c = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
    return m.sigmoid(o) * m.tanh(c), c


def lstm(m: Any, x: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
    """Return the last output for ``x [steps * batch, units]``; `h` is 0."""
    xw, c = x @ w + b, h
    for t in range(LSTM_STEPS):
        h, c = lstm_step(m, xw[t * BATCH : (t + 1) * BATCH], h, c, u)
    return h


def chain(m: Any, x: Any) -> Any:
    for i in range(CHAIN // 2):
        x = (x * 0.999) + 0.001 * (i % 7)
    return x


SCRIPTS: dict[str, Callable] = {
    "waves": waves,
    "waves_sum": waves_sum,
    "black_scholes": black_scholes,
    "heat": heat,
    "distances": distances,
    "lstm": lstm,
    "chain": chain,
}


def inputs(script: str, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    if script in ("waves", "waves_sum"):
        found = [rng.standard_normal(SIZE) for _ in range(3)]
    elif script == "black_scholes":
        found = [rng.uniform(a, b, SIZE) for a, b in ((50, 150), (50, 150), (0.1, 2))]
    elif script == "heat":
        found = [np.pad(rng.random((GRID - 2, GRID - 2)), 1)]
    elif script == "distances":
        found = [rng.standard_normal((POINTS, FEATURES)) for _ in range(2)]
    elif script == "lstm":
        w, u = (rng.standard_normal((UNITS, 4 * UNITS)) / UNITS**0.5 for _ in range(2))
        found = [rng.standard_normal((LSTM_STEPS * BATCH, UNITS)), w, u, np.zeros(4 * UNITS), np.zeros((BATCH, UNITS))]
    else:
        found = [rng.standard_normal(CHAIN_SIZE)]
    return [x.astype(dtype) for x in found]
