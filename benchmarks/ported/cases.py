"""The scripts prepared for each engine, at the sizes of a user's script. Data are drawn before the run.

NumPy runs a script as it is. cgraph compiles its step with `cg.jit`, JAX with `jax.jit`. Numba runs loops that were
written for it.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.runner import Absent

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"
SIZES = {"heat": 512, "nbody": 500, "life": 512, "kmeans": 10_000, "logistic": 20_000, "pagerank": 2000}
HEAT_STEPS, PATHS, TERMS = 500, 100_000, (100.0, 105.0, 1.0, 0.05, 0.2)
Run = Callable[[], Any]


def prepare(engine: str, case: str, threads: int) -> Run:
    """Return a run of a script; see `benchmarks.runner`."""
    script = load(case.removesuffix("_compile"))
    values = data(script, case)
    if engine == "numpy":
        return by_numpy(script, case, values)
    if engine == "cgraph":
        return by_cgraph(script, case, values, threads)
    if engine == "jax":
        from benchmarks.ported.by_jax import by_jax

        return by_jax(script, case, values)
    if case == "kalman_compile":
        raise Absent("Numba compiles a loop before its first run")
    from benchmarks.ported.by_numba import LOOPS

    return lambda: LOOPS[case](*copies(values))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ported_{name}", SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(script: ModuleType, case: str) -> tuple[Any, ...]:
    """Return the arguments of a run."""
    rng = np.random.default_rng(1)
    if case == "blur":
        return rng.random((720, 1280, 3), dtype=np.float32), 3.0
    if case == "pca":
        return (rng.standard_normal((5000, 64)) @ rng.standard_normal((64, 64)),)
    if case == "option":
        return TERMS
    if case == "fft_filter":
        return (rng.standard_normal(1 << 18),)
    if case.startswith("kalman"):
        return (rng.standard_normal(2000),)
    start = script.start(600, 800) if case == "mandelbrot" else script.start(SIZES[case])
    return start if isinstance(start, tuple) else (start,)


def copies(values: tuple[Any, ...]) -> list[Any]:
    """Return copies of the small arrays: some steps write into their arguments, none into a large one."""
    return [x.copy() if isinstance(x, np.ndarray) and x.nbytes <= 1 << 21 else x for x in values]


def repeated(script: ModuleType, case: str, values: tuple[Any, ...], compile_step: Callable) -> Run:
    """Return the loop of a script around its compiled step."""
    names = ["step", "acceleration"] if case == "nbody" else ["step"]
    steps = [compile_step(getattr(script, name)) for name in names]
    options = {"steps": HEAT_STEPS} if case == "heat" else {}
    return lambda: script.run(*steps, *copies(values), **options)


def by_numpy(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    if case == "blur":
        return lambda: script.sharpen(*values)
    if case == "pca":
        return lambda: script.pca(*values)
    if case == "option":
        rng = np.random.default_rng(4)
        return lambda: script.price(rng, *values, paths=PATHS)
    if case == "fft_filter":
        return lambda: script.denoise(*values)
    if case.startswith("kalman"):
        return lambda: script.with_numpy(*values)
    return repeated(script, case, values, lambda f: f)


def by_cgraph(script: ModuleType, case: str, values: tuple[Any, ...], threads: int) -> Run:
    import cgraph as cg
    from cgraph.numpy.random import default_rng

    def jit(f: Callable, **options: Any) -> Callable:
        return cg.jit(f, threads=threads, **options)

    if case == "blur":
        sharpen = jit(script.sharpen, static_argnames="sigma")
        return lambda: sharpen(*values)
    if case == "option":
        price, rng = jit(script.price, static_argnames=("steps", "paths")), default_rng(4)
        return lambda: price(rng, *values, paths=PATHS)
    if case == "kalman_compile":
        return lambda: jit(lambda zs: script.with_scan.__wrapped__(zs))(*values)
    function = {"pca": "pca", "fft_filter": "denoise", "kalman": "with_scan"}.get(case)
    if function:
        f = getattr(script, function)
        compiled = jit(getattr(f, "__wrapped__", f))
        return lambda: compiled(*values)
    return repeated(script, case, values, jit)
