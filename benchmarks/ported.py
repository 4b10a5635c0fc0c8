"""The twelve scripts of examples/scripts beside NumPy: processor time of a whole run, on one thread each.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.ported [scripts] [--rounds N]

Each script runs as plain NumPy and with `cg.jit`, in turns in one process. The first compiled run, which compiles, has
a column of its own; it depends on the kernel cache. The least times count; what a script does before its first step,
such as drawing its data, is subtracted from both. The ratio is NumPy's time over ours. `kalman_compile` is a
new `jit` in each run, with a warm kernel cache.
"""

import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.numpy.random import default_rng

SCRIPTS = Path(__file__).parent.parent / "examples" / "scripts"
GOALS = {
    "heat": 8, "nbody": 4, "life": 5, "blur": 3, "pca": 4, "option": 4, "kmeans": 6, "logistic": 5, "mandelbrot": 4,
    "fft_filter": 1, "pagerank": 1.2, "kalman": 5, "kalman_compile": 1,
}  # fmt: skip
Run = Callable[[], Any]


def jit(f: Callable, **options: Any) -> Callable:
    return cg.jit(f, threads=1, **options)


class Started(Exception):
    """The first step of a script is reached."""


def start(*_: Any) -> Any:
    raise Started


def runs(script: str, m: ModuleType) -> tuple[Run, Run, Run | None]:
    """Return a run by NumPy, a compiled run, and one that ends with `Started` at the first step, if it has steps.

    The sizes are those of a user's script.
    """
    rng = np.random.default_rng(1)
    if script == "blur":
        picture, compiled = rng.random((720, 1280, 3), dtype=np.float32), jit(m.sharpen, static_argnames="sigma")
        return lambda: m.sharpen(picture, 3.0), lambda: compiled(picture, 3.0), None
    if script == "pca":
        X, compiled = rng.standard_normal((5000, 64)) @ rng.standard_normal((64, 64)), jit(m.pca)
        return lambda: m.pca(X), lambda: compiled(X), None
    if script == "option":
        terms, compiled = (100.0, 105.0, 1.0, 0.05, 0.2), jit(m.price, static_argnames=("steps", "paths"))
        plain, ours = np.random.default_rng(4), default_rng(4)
        return lambda: m.price(plain, *terms, paths=100_000), lambda: compiled(ours, *terms, paths=100_000), None
    if script == "fft_filter":
        f, compiled = rng.standard_normal(1 << 18), jit(m.denoise)
        return lambda: m.denoise(f), lambda: compiled(f), None
    if script.startswith("kalman"):
        zs, compiled = rng.standard_normal(2000), jit(m.with_scan.__wrapped__)
        fresh = lambda: jit(lambda zs: m.with_scan.__wrapped__(zs))(zs)  # noqa: E731
        return lambda: m.with_numpy(zs), fresh if script == "kalman_compile" else lambda: compiled(zs), None
    sizes = {
        "heat": {"n": 512, "steps": 500}, "nbody": {"N": 500}, "life": {"n": 512}, "kmeans": {"n": 10_000},
        "pagerank": {"n": 2000}, "mandelbrot": {"h": 600, "w": 800}, "logistic": {"n": 20_000},
    }[script]  # fmt: skip
    steps = ["step", "acceleration"] if script == "nbody" else ["step"]
    plain, compiled = [getattr(m, x) for x in steps], [jit(getattr(m, x)) for x in steps]
    first = [start] * len(steps)
    return lambda: m.run(*plain, **sizes), lambda: m.run(*compiled, **sizes), lambda: m.run(*first, **sizes)


def load(script: str) -> ModuleType:
    name = script.removesuffix("_compile")
    spec = importlib.util.spec_from_file_location(f"ported_{name}", SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(run: Run | None) -> float:
    """Return the processor time of a run; 0 for None."""
    if run is None:
        return 0.0
    begin = time.process_time()
    with contextlib.suppress(Started):
        run()
    return time.process_time() - begin


def measure(script: str, rounds: int) -> None:
    three = runs(script, load(script))
    first = seconds(three[1])
    times = [[seconds(run) for run in three] for _ in range(rounds)]
    theirs, ours, before = map(min, zip(*times))
    theirs, ours = theirs - before, ours - before
    row = [script, f"{1e3 * theirs:.1f}", f"{1e3 * ours:.1f}", f"{1e3 * first:.0f}", f"{theirs / ours:.2f}"]
    print(f"| {' | '.join(row)} | {GOALS[script]} |", flush=True)


def main(words: list[str]) -> None:
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1, so that NumPy runs on one thread as well")
    rounds = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 5
    print("| script | NumPy, ms | cgraph, ms | first run, ms | ratio | goal |\n|---|---|---|---|---|---|")
    for script in [x for x in GOALS if x in words] or GOALS:
        measure(script, rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
