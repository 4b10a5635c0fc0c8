"""Common NumPy calls and layers, each as a separate function: a program whose kernels `benchmarks.prebuilt` records.

python -m benchmarks.common_calls
"""

from collections.abc import Callable, Iterator

import numpy as np

import cgraph as cg

ROWS, COLUMNS = 48, 96
UNARY = (
    np.negative, np.abs, np.exp, np.log, np.log1p, np.sqrt, np.square, np.sin, np.cos, np.tanh, np.sign, np.floor,
    np.reciprocal, np.isnan,
)  # fmt: skip
BINARY = (
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.greater, np.less, np.greater_equal,
    np.less_equal, np.equal, np.not_equal,
)  # fmt: skip
INTEGERS = (np.add, np.subtract, np.multiply, np.floor_divide, np.remainder, *BINARY[6:])
REDUCTIONS = (np.sum, np.mean, np.max, np.min, np.std, np.var, np.argmax, np.any, np.all, np.prod)
ROWS_OF = (np.cumsum, np.sort, np.argsort)
LAYERS = (cg.relu, cg.sigmoid, cg.gelu, cg.softmax, cg.log_softmax, cg.swish)
Call = tuple[Callable, tuple]


def calls() -> Iterator[Call]:
    """Yield functions and their operands."""
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32"):
        x, y = (rng.random((ROWS, COLUMNS)).astype(dtype) + 0.5 for _ in range(2))
        others = (y, y[:1], y[:, :1], y[0], y[0, 0], 2.0)
        yield from ((f, (x,)) for f in UNARY)
        yield from ((f, (x, other)) for f in BINARY for other in others)
        yield from ((f, (other, x)) for f in (np.subtract, np.divide) for other in others[1:])
        yield from ((lambda z, f=f, axis=axis: f(z, axis=axis), (x,)) for f in REDUCTIONS for axis in (None, 0, 1))
        yield from ((lambda z, f=f: f(z, axis=-1), (x,)) for f in ROWS_OF)
        yield from ((f, (x,)) for f in LAYERS)
        yield np.matmul, (x, y.T)
        yield np.matmul, (x, y[0])
        yield np.dot, (x[0], y[0])
        yield lambda z: np.linalg.norm(z), (x,)
        yield np.where, (x > 1, x, y)
        yield lambda z, w: np.concatenate([z, w]), (x, y)
        yield lambda z: z[:, ::2].copy(), (x,)
        yield lambda z: z.T.copy(), (x,)
        yield lambda z: z.astype("float32"), (x,)
        yield lambda z: np.take(z, np.array([3, 1, 2]), axis=0), (x,)
        yield lambda z: z.reshape(-1, 8).sum(axis=1), (x,)
        yield lambda z, w: np.sum((z - w) ** 2), (x, y)
        yield lambda z: (z - z.mean(axis=0)) / z.std(axis=0), (x,)
    m, n = (rng.integers(1, 9, (ROWS, COLUMNS)) for _ in range(2))
    yield from ((f, (m, other)) for f in INTEGERS for other in (n, n[:1], n[:, :1], 2))
    yield from ((lambda z, dtype=dtype: z.astype(dtype), (m,)) for dtype in ("float32", "float64", "int32", "bool"))
    yield from ((lambda z, f=f, axis=axis: f(z, axis=axis), (m,)) for f in (np.sum, np.max) for axis in (None, 0, 1))
    yield from ((f, (m > 4, n > 4)) for f in (np.logical_and, np.logical_or))
    yield np.logical_not, (m > 4,)
    yield lambda z: np.cumsum(z, axis=-1), (m,)


def main() -> None:
    for function, operands in calls():
        cg.jit(lambda *arrays, f=function: f(*arrays))(*operands)


if __name__ == "__main__":
    main()
