"""Table 5: seconds of compiling a graph, and its number of kernels.

    python -m benchmarks.compiling [networks]

Warm: kernels are in the cache, and the network has been compiled once in this process. *Weights* is the time spent
packing
constants, which is not part of *structure*: building the graph, passes, schedule, plan and program.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import nn
from benchmarks.networks import NETWORKS
from cgraph.kernels.store import store

ROUNDS = 9


@contextmanager
def timed_packing() -> Iterator[list[float]]:
    """Record the seconds of every call within this context that packs a constant."""
    spent: list[float] = []

    def timed(function: Callable) -> Callable:
        def run(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args)
            finally:
                spent.append(time.perf_counter() - start)

        return run

    lowerings, products = (import_module(f"cgraph.passes.{name}") for name in ("image_lowerings", "pack_matmul"))
    places = [(lowerings, "pack_filters"), (lowerings, "pack_layer_bias"), (products, "pack_b")]
    kept = [getattr(module, name) for module, name in places]
    for (module, name), function in zip(places, kept):
        setattr(module, name, timed(function))
    try:
        yield spent
    finally:
        for (module, name), function in zip(places, kept):
            setattr(module, name, function)


def compile_seconds(model: nn.Layer) -> tuple[float, float, Any]:
    """Return seconds of structure and of weights, and the Function."""
    with timed_packing() as packing:
        start = time.perf_counter()
        function = nn.compile(model, batch=1).function
        whole = time.perf_counter() - start
    return whole - sum(packing), sum(packing), function


def row(name: str) -> str:
    model = NETWORKS[name](0)
    before = store().misses
    function = compile_seconds(model)[2]
    compiled = store().misses - before
    rounds = [compile_seconds(model)[:2] for _ in range(ROUNDS)]
    structure, weights = (sorted(r[i] for r in rounds) for i in (0, 1))
    code = function.program.code
    span = f"{statistics.median(structure):.3f} ({structure[0]:.3f}–{structure[-1]:.3f})"
    steps = len(function.compiled.layout.steps)
    counts = f"{steps} | {len(code.table)} | {len(code.compiled_kernels)} | {compiled}"
    return f"| {name:14} | {span} | {statistics.median(weights):.3f} | {counts} |"


def main(names: list[str]) -> None:
    print("| network | structure s | weights s | steps | calls | distinct kernels | compiled now |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names or NETWORKS:
        print(row(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
