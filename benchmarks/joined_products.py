"""Queries, keys and values as three products and as one product whose slices are read in place, on one thread.

    python -m benchmarks.joined_products

A block of attention of random weights, both ways in turns. Processor time; the least and the median of 40 runs.
"""

import time
from statistics import median

import numpy as np

import cgraph as cg

SIZES = ((24, 64, 4), (50, 384, 6), (197, 192, 3), (128, 768, 12), (512, 768, 12))  # rows, features, heads
RUNS = 40


def block(rows: int, features: int, heads: int, joins: bool) -> cg.Function:
    """Return attention over normalised rows, with biases and a residual."""
    rng, size = np.random.default_rng(0), features // heads
    x = cg.Var((1, rows, features), name="x")
    weights = rng.normal(0, features**-0.5, (4, features, features)).astype("f4")
    biases = rng.normal(0, 0.1, (3, features)).astype("f4")
    y = cg.layer_norm(x, np.ones(features, "f4"), np.zeros(features, "f4"))
    if joins:
        parts = cg.split(y @ np.concatenate(weights[:3], 1) + biases.ravel(), 3, -1)
    else:
        parts = [y @ w + b for w, b in zip(weights, biases)]
    q, k, v = (cg.transpose(cg.reshape(part, (1, rows, heads, size)), (0, 2, 1, 3)) for part in parts)
    means = cg.transpose(cg.scaled_dot_product_attention(q, k, v), (0, 2, 1, 3))
    return cg.compile(x + cg.reshape(means, x.shape) @ weights[3], [x], threads=1)


def milliseconds(function: cg.Function, x: np.ndarray) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    function(x)
    return 1e3 * (time.process_time() - start)


def main() -> None:
    print("| rows | features | heads | three products, ms | one product, ms | arena of each, KiB |")
    print("|---:|---:|---:|---:|---:|---:|")
    for rows, features, heads in SIZES:
        functions = [block(rows, features, heads, joins) for joins in (False, True)]
        x = np.random.default_rng(1).normal(size=(1, rows, features)).astype("f4")
        for function in functions:
            function(x)
        times = [[milliseconds(f, x) for f in functions] for _ in range(RUNS)]
        cells = [f"{min(t):.3f} ({median(t):.3f})" for t in zip(*times)]
        print(f"| {rows} | {features} | {heads} | {' | '.join(cells)} | {functions[0].nbytes >> 10}, "
              f"{functions[1].nbytes >> 10} |")  # fmt: skip


if __name__ == "__main__":
    main()
