"""The engines by name."""

from collections.abc import Callable

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engine import Engine
from cgraph.engine.reference import ReferenceEngine
from cgraph.errors import GraphError

ENGINES: dict[str, Callable[[int], Engine]] = {
    "cpu": lambda threads: CpuEngine(threads=threads),
    "reference": lambda threads: ReferenceEngine(),
}


def engine_named(engine: str | Engine, threads: int) -> Engine:
    """An engine by its name, for some threads; an engine as it is. GraphError for a name that there is not."""
    if not isinstance(engine, str) and hasattr(engine, "program"):
        return engine
    if engine not in ENGINES:
        raise GraphError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    return ENGINES[engine](threads)
