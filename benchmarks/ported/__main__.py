"""The twelve scripts of examples/scripts beside NumPy, JAX and Numba: wall time of a whole run.

    python -m benchmarks.ported [scripts] [--threads N] [--engines numpy,cgraph,jax,numba] [--rounds N]

Each engine has its own process, and the processes take turns (`benchmarks.runner`); medians count. Drawing the
data, and the first runs, which compile, are not timed; `kalman_compile` is a new `jit` in each run, with a warm kernel
cache. The last column is the largest difference between our results and a peer's, relative to the largest value.
"""

import argparse

from benchmarks.runner import Row, compare

GOALS = {
    "heat": 8, "nbody": 4, "life": 5, "blur": 3, "pca": 4, "option": 4, "kmeans": 6, "logistic": 5, "mandelbrot": 4,
    "fft_filter": 1, "pagerank": 1.2, "kalman": 5, "kalman_compile": 1,
}  # fmt: skip
ENGINES = ("numpy", "cgraph", "jax", "numba")


def line(row: Row, engines: list[str]) -> str:
    """Return a row of the table, times in milliseconds."""
    times = [f"{1e3 * row.times[x].median:.1f}" if x in row.times else "-" for x in engines]
    ratios = [f"{row.ratios[x]:.2f}" if x in row.ratios else "-" for x in engines if x != "cgraph"]
    error = max(row.error.values(), default=0.0)
    return f"| {' | '.join([row.case, *times, *ratios, f'{error:.0e}', str(GOALS[row.case])])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the twelve scripts.")
    parser.add_argument("scripts", nargs="*", choices=[*GOALS, []], help="all, if none is named")
    parser.add_argument("--threads", type=int, default=2, help="of each engine")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    engines = options.engines.split(",")
    heads = [*engines, *(f"{x} / cgraph" for x in engines if x != "cgraph"), "difference", "goal"]
    print(f"| script, ms | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    for script in options.scripts or GOALS:
        row = compare("benchmarks.ported.cases", script, engines, options.threads, options.rounds)
        print(line(row, engines), flush=True)
        for engine, reason in row.absent.items():
            print(f"{script}: without {engine}: {reason}")


if __name__ == "__main__":
    main()
