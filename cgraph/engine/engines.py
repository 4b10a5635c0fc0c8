"""The engines by name."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from cgraph.engine.cpu.cores import check_threads
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engine import Engine
from cgraph.engine.reference import ReferenceEngine
from cgraph.errors import GraphError

ENGINES: dict[str, Callable[[int], Engine]] = {
    "cpu": lambda threads: CpuEngine(threads=threads),
    "cuda": lambda threads: cuda().CudaEngine(),
    "cuda-sim": lambda threads: cuda().CudaEngine(device=cuda().SIMULATED),
    "reference": lambda threads: ReferenceEngine(),
}


def cuda() -> Any:
    """The CUDA engine's module, loaded when it is first asked for."""
    return import_module("cgraph.engine.cuda.engine")


def engine_named(engine: str | Engine, threads: int) -> Engine:
    """An engine by its name, for some threads; an engine itself, which has its own number of threads.

    GraphError for a wrong name or number, and for another number of threads than an engine's own.
    """
    if not isinstance(engine, str) and hasattr(engine, "program"):
        own = getattr(engine, "threads", threads)
        if threads not in (0, own):
            raise GraphError(f"threads is {threads!r:.60}, and the engine {engine.name} has threads={own}; give one")
        return engine
    if not isinstance(engine, str) or engine not in ENGINES:
        raise GraphError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    check_threads(threads)
    return ENGINES[engine](threads)
