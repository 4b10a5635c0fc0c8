"""The table of engines by name."""

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
    """Load and return the CUDA engine's module."""
    return import_module("cgraph.engine.cuda.engine")


def engine_named(engine: str | Engine, threads: int) -> Engine:
    """Return an engine by its name, for this number of threads. An engine object is returned unchanged.

    Raises
        GraphError: an unknown name, a wrong number of threads, or one that differs from the engine's own
    """
    if not isinstance(engine, str) and hasattr(engine, "program"):
        check_threads(threads)
        own = getattr(engine, "threads", threads)
        if threads not in (0, own):
            raise GraphError(
                f"threads is {threads!r:.60}, but the engine {engine.name} has threads={own}. Pass only one of them"
            )
        return engine
    if not isinstance(engine, str) or engine not in ENGINES:
        raise GraphError(f"there is no engine {engine!r}. Choose one of {', '.join(ENGINES)}")
    check_threads(threads)
    return ENGINES[engine](threads)
