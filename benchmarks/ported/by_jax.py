"""The scripts in JAX, in float64: the same functions with `jax.numpy`, where they change no array."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.ported.cases import PATHS, Run, repeated

jax.config.update("jax_enable_x64", True)


class Stream:
    """Random numbers of a key, for a function that is traced."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def standard_normal(self, size: int) -> Any:
        self.key, key = jax.random.split(self.key)
        return jax.random.normal(key, size)


def by_jax(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    values = tuple(jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in values)
    run = RUNS.get(case, steps)(script, case, values)
    return lambda: jax.block_until_ready(run())


def steps(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    """Return a loop in Python around a step that is compiled; it returns its arrays when they are computed."""
    script.step = {"heat": heat, "life": life, "mandelbrot": mandelbrot}.get(case, script.step)
    script.np = jnp
    return repeated(script, case, values, jax.jit)


def heat(u: Any, rate: Any) -> Any:
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u.at[1:-1, 1:-1].set(inner + rate * (around - 4 * inner))


def life(z: Any) -> Any:
    n = sum(jnp.roll(jnp.roll(z, y, 0), x, 1) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
    return (((n == 3) & (z == 0)) | (((n == 2) | (n == 3)) & (z == 1))).astype(z.dtype)


def mandelbrot(z: Any, divtime: Any, c: Any, i: Any, maxit: Any, r: float = 2.0) -> Any:
    z = z**2 + c
    diverge = abs(z) > r
    return jnp.where(diverge, r, z), jnp.where(diverge & (divtime == maxit), i, divtime)


def blur(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    k, script.np = script.gauss(values[1]).astype(np.float32), jnp
    script.gauss = lambda sigma: k
    sharpen = jax.jit(lambda x: script.sharpen(x, values[1]))
    return lambda: sharpen(values[0])


def option(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    script.np = jnp

    @jax.jit
    def price(key: Any, *terms: Any) -> Any:
        stream = Stream(key)
        return script.price(stream, *terms, paths=PATHS), stream.key

    key = jax.random.key(4)

    def run() -> Any:
        nonlocal key
        prices, key = price(key, *values)
        return prices

    return run


def whole(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    """Return one function that is compiled as a whole."""
    script.np = jnp
    compiled = jax.jit(getattr(script, NAMES[case]))
    return lambda: compiled(*values)


def kalman(script: ModuleType, case: str, values: tuple[Any, ...]) -> Run:
    state, script.np = (jnp.zeros((2, 1)), jnp.eye(2) * 10), jnp

    def filter_all(zs: Any) -> Any:
        return jax.lax.scan(script.step, state, zs)[1]

    if case == "kalman_compile":
        return lambda: jax.jit(lambda zs: filter_all(zs))(*values)
    compiled = jax.jit(filter_all)
    return lambda: compiled(*values)


NAMES = {"pca": "pca", "fft_filter": "denoise"}
RUNS: dict[str, Callable] = {
    "blur": blur, "option": option, "pca": whole, "fft_filter": whole, "kalman": kalman, "kalman_compile": kalman,
}  # fmt: skip
