"""Table 3: numerical scripts. Each is written once and run by every engine as its users would run it.

    python -m benchmarks.scripts [scripts] [f4|f8] [engines]

Compilation is not timed. numpy and numexpr run op by op, jax and torch.compile compile the whole script, Numba runs a
hand-written parallel loop. numpy runs twice, the second time with OpenBLAS set to its 512-bit kernels.
"""

import shutil
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.runner import Absent, print_table
from benchmarks.script_cases import HEAT_STEPS, LSTM_STEPS, SCRIPTS, UNITS, heat, inputs, lstm_step

ENGINES = ("cgraph", "numpy", "numpy-512", "numexpr", "jax", "torch", "torchcompile", "numba")
DTYPES = {"f4": "float32", "f8": "float64"}
COMPILED_BY_TORCH = ("waves", "waves_sum", "black_scholes", "heat")  # engines that need 15 to 30 s to compile it
Run = Callable[[], Any]


def prepare(engine: str, case: str, threads: int) -> Run:
    script, dtype = case.split()
    xs = inputs(script, DTYPES[dtype])
    return PREPARE[engine](script, xs, threads)


def cgraph_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    import cgraph as cg

    m = SimpleNamespace(
        sin=cg.sin, exp=cg.exp, log=cg.log, sqrt=cg.sqrt, erf=cg.erf, tanh=cg.tanh, sigmoid=cg.sigmoid,
        maximum=cg.maximum, sum=cg.sum, pad_one=lambda x: cg.pad(x, 1),
    )  # fmt: skip
    leaves = [cg.Var(x.shape, x.dtype, f"x{i}").assign(x) for i, x in enumerate(xs)]
    if script == "heat":
        u = leaves[0]
        step = cg.compile([], updates={u: heat(m, u)}, threads=threads)

        def run() -> np.ndarray:
            u.assign(xs[0])
            for _ in range(HEAT_STEPS):
                step()
            return u.value

        return run
    frozen = [
        cg.Const(x, copy=False) if script == "lstm" and 0 < i < 4 else v for i, (x, v) in enumerate(zip(xs, leaves))
    ]
    result = SCRIPTS[script](m, *frozen)
    given = [x for x in frozen if isinstance(x, cg.Var)]
    function = cg.compile(result, given, threads=threads)
    values = [x for x, node in zip(xs, frozen) if isinstance(node, cg.Var)]
    return lambda: function(*values, copy=False)


def numpy_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    from scipy.special import erf, expit

    m = SimpleNamespace(
        sin=np.sin, exp=np.exp, log=np.log, sqrt=np.sqrt, erf=erf, tanh=np.tanh, sigmoid=expit, maximum=np.maximum,
        sum=np.sum, pad_one=lambda x: np.pad(x, 1),
    )  # fmt: skip
    return repeated(script, m, xs)


def repeated(script: str, m: Any, xs: list[Any], step: Callable | None = None) -> Run:
    """Return the script run eagerly; heat repeats its step many times."""
    if script != "heat":
        return lambda: SCRIPTS[script](m, *xs)
    step = step or (lambda u: heat(m, u))

    def run() -> Any:
        u = xs[0]
        for _ in range(HEAT_STEPS):
            u = step(u)
        return u

    return run


def numexpr_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    import numexpr

    texts = {"waves": "sin(x)*y+exp(-w)*x-h*x*y", "waves_sum": "sum(sin(x)*y+exp(-w)*x-h*x*y)"}
    if script not in texts:
        raise Absent(f"numexpr cannot say {script}")
    numexpr.set_num_threads(threads)
    names = dict(zip("xyw", xs)) | {"h": xs[0].dtype.type(0.5)}
    return lambda: numexpr.evaluate(texts[script], names)


def jax_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    m = SimpleNamespace(
        sin=jnp.sin, exp=jnp.exp, log=jnp.log, sqrt=jnp.sqrt, erf=jax.scipy.special.erf, tanh=jnp.tanh,
        sigmoid=jax.nn.sigmoid, maximum=jnp.maximum, sum=jnp.sum, pad_one=lambda x: jnp.pad(x, 1),
    )  # fmt: skip

    def scanned(x: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
        xw = (x @ w + b).reshape(LSTM_STEPS, -1, 4 * UNITS)
        return jax.lax.scan(lambda s, z: (lstm_step(m, z, *s, u), None), (h, h), xw)[0][0]

    def repeat(u: Any) -> Any:
        return jax.lax.fori_loop(0, HEAT_STEPS, lambda _, v: heat(m, v), u)

    whole = {"heat": repeat, "lstm": scanned}.get(script, lambda *ys: SCRIPTS[script](m, *ys))
    compiled, given = jax.jit(whole), [jnp.asarray(x) for x in xs]
    return lambda: compiled(*given).block_until_ready()


def torch_namespace() -> Any:
    import torch

    return SimpleNamespace(
        sin=torch.sin, exp=torch.exp, log=torch.log, sqrt=torch.sqrt, erf=torch.erf, tanh=torch.tanh,
        sigmoid=torch.sigmoid, maximum=lambda x, low: torch.clamp(x, min=low), sum=torch.sum,
        pad_one=lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    )  # fmt: skip


def torch_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return repeated(script, torch_namespace(), [torch.from_numpy(x) for x in xs])


def torch_compiled_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    if script not in COMPILED_BY_TORCH:
        raise Absent(f"{script} is not given to torch.compile")
    if shutil.which("g++") is None:
        raise Absent("torch.compile needs a C++ compiler")
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    m, given = torch_namespace(), [torch.from_numpy(x) for x in xs]
    compiled = torch.compile(lambda *ys: SCRIPTS[script](m, *ys))
    return repeated(script, m, given, compiled) if script == "heat" else lambda: compiled(*given)


def numba_run(script: str, xs: list[np.ndarray], threads: int) -> Run:
    from benchmarks.script_loops import runner_of

    return runner_of(script, xs)


PREPARE = {
    "cgraph": cgraph_run,
    "numpy": numpy_run,
    "numexpr": numexpr_run,
    "jax": jax_run,
    "torch": torch_run,
    "torchcompile": torch_compiled_run,
    "numba": numba_run,
}


def chosen(words: list[str], known: Iterable[str]) -> list[str]:
    """Return those of `known` among the words of the command, or all."""
    return [x for x in known if x in words] or list(known)


def main(words: list[str]) -> None:
    cases = [f"{script} {dtype}" for script in chosen(words, SCRIPTS) for dtype in chosen(words, DTYPES)]
    print_table("benchmarks.scripts", cases, chosen(words, ENGINES), (2,))


if __name__ == "__main__":
    main(sys.argv[1:])
