"""Engines by name, for a number of threads, and engine objects as they are."""

import pytest

import cgraph as cg
from cgraph.engine.cpu import engine as engine_module
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engines import ENGINES, cuda, engine_named
from cgraph.engine.reference import ReferenceEngine
from cgraph.errors import GraphError
from cgraph.kernels import target
from cgraph.record import replace


def test_names_give_engines_of_their_kind_and_threads():
    assert list(ENGINES) == ["cpu", "cuda", "cuda-sim", "reference"]
    for threads in (0, 3):
        assert engine_named("cpu", threads) == CpuEngine(threads=threads)
    assert isinstance(engine_named("reference", 0), ReferenceEngine)
    simulated = engine_named("cuda-sim", 0)
    assert isinstance(simulated, cuda().CudaEngine) and simulated.device == cuda().SIMULATED
    assert engine_named("cuda-sim", 0).name != "reference"


def test_an_engine_object_stays_and_has_its_own_threads():
    engine = CpuEngine(threads=2)
    for threads in (0, 2):
        assert engine_named(engine, threads) is engine
    for threads in (1, 3):
        with pytest.raises(GraphError, match=f"threads is {threads}, but the engine cpu has threads=2"):
            engine_named(engine, threads)
    reference = ReferenceEngine()
    assert engine_named(reference, 0) is reference and engine_named(reference, 5) is reference


def test_an_engine_uses_tiles_only_on_request(monkeypatch):
    assert CpuEngine().kernel_target.tiles == CpuEngine(tiles=False).kernel_target.tiles == ""
    monkeypatch.setattr(target, "tiles_state", lambda: "permitted")
    monkeypatch.setattr(engine_module, "with_tiles", target.with_tiles)  # where all tests run on emulated tiles
    assert CpuEngine(tiles=True).kernel_target == replace(CpuEngine().kernel_target, tiles="amx")
    monkeypatch.setattr(target, "tiles_state", lambda: "")
    with pytest.raises(ValueError, match="this processor has no tile registers"):
        cg.compile(cg.Var((2,), name="x") + 1, engine=CpuEngine(tiles=True))


def test_unknown_engines_and_wrong_threads_are_refused():
    for engine in ("gpu", "", 3, None):
        with pytest.raises(GraphError, match="there is no engine .*Choose one of cpu, cuda, cuda-sim, reference"):
            engine_named(engine, 0)
    with pytest.raises(GraphError, match="threads"):
        engine_named("cpu", -1)
    with pytest.raises(GraphError, match="threads"):
        engine_named("reference", -1)
