"""Engines by name, for a number of threads, and engine objects as they are."""

import os
import warnings
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import engine as engine_module
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engines import ENGINES, cuda, engine_named
from cgraph.engine.export import ExportEngine
from cgraph.engine.reference import ReferenceEngine
from cgraph.errors import GraphError
from cgraph.kernels import target
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.planning.options import CompileOptions
from cgraph.record import replace
from cgraph.storage.weight_file import StreamedWeights


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


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"model name": "A Processor", "vendor": "V", "model": "7", "flags": "x"}, "A Processor"),
        ({"vendor": "V", "model": "7", "flags": "x"}, "vendor V, model 7"),
        ({"model": "7", "flags": "x"}, "model 7"),
        ({"flags": "x"}, "a machine"),
        ({}, "a machine"),
    ],
)
def test_a_processor_is_named_as_the_system_names_it(monkeypatch, facts, name):
    """By all facts that there are but the last, the features."""
    monkeypatch.setattr(engine_module, "cpuinfo", lambda: facts)
    monkeypatch.setattr(
        engine_module, "host_architecture", lambda: SimpleNamespace(cpuinfo=("vendor", "model", "flags"))
    )
    monkeypatch.setattr(engine_module.platform, "machine", lambda: "a machine")
    assert engine_module.cpu_name() == name


@pytest.mark.parametrize("missing", [0, 1])
def test_a_plan_larger_than_this_machines_memory_is_warned_of(monkeypatch, missing):
    x = cg.Var((100, 100), name="x")
    y = cg.cumsum(cg.cumsum(x, 0), 1)
    nbytes = cg.compile(y, [x]).nbytes
    monkeypatch.setattr(engine_module, "memory_nbytes", lambda: nbytes - missing)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert cg.compile(y, [x]).nbytes == nbytes
    texts = [str(w.message) for w in told if w.category is cg.MemoryWarning]
    assert len(texts) == missing and all("this machine has 39.06 KiB" in text for text in texts), texts
    assert all(w.filename == __file__ for w in told), "it names the line that compiles"


def test_instances_of_a_program_share_its_code_and_nothing_that_a_run_changes():
    x = cg.Var((4,), name="x")
    program = cg.compile(cg.exp(x), [x], engine=CpuEngine(threads=3, poison=True)).program
    assert (program.threads, program.poison) == (3, engine_module.POISON)
    first, second = program.instance(), program.instance()
    assert first.code is second.code is program.code
    assert first.args is not second.args and not np.shares_memory(first.arena, second.arena)
    assert (first.arena == engine_module.POISON).all() and len(first.arena) == program.code.nbytes
    memory = np.zeros(program.code.nbytes + 64, np.uint8)
    shared = program.instance(memory)
    assert np.shares_memory(shared.arena, memory) and not memory[program.code.nbytes :].any()


@pytest.mark.parametrize("threads", [-1, True, np.True_, 1.5, "two", None, np.array([1, 2]), np.float64(2)], ids=repr)
def test_threads_are_an_integer_from_0_on_for_any_engine(threads):
    for engine in ("cpu", "reference", CpuEngine(threads=2), ReferenceEngine()):
        with pytest.raises(GraphError, match="it must be an integer >= 0. Pass 0 for all the cores"):
            engine_named(engine, threads)
    with pytest.raises(GraphError, match="it must be an integer >= 0"):
        CpuEngine(threads=threads)


def test_an_integer_of_numpy_is_a_number_of_threads_and_an_engine_for_all_cores_takes_no_other():
    assert engine_named("cpu", np.int64(3)) == CpuEngine(threads=3) == CpuEngine(threads=np.int8(3))
    engine = CpuEngine()
    assert engine_named(engine, 0) is engine
    with pytest.raises(GraphError, match="threads is 2, but the engine cpu has threads=0. Pass only one of them"):
        engine_named(engine, 2)


@pytest.mark.parametrize("engine", [CpuEngine(), ExportEngine("cortex-m7"), cuda().CudaEngine(cuda().SIMULATED)])
def test_each_option_of_lowering_reaches_it(engine, monkeypatch):
    """A GPU has neither Winograd convolutions nor products of pairs."""
    roots, asked, layers, is_gpu = (cg.Var((2,)) + 1,), [], RoundedLayers(), engine.name == "cuda"
    module = import_module(type(engine).__module__)
    monkeypatch.setattr(module, "lower_graph", lambda roots, target, how: asked.append(how) or roots)
    for passes, winograd in ((True, False), (False, True)):
        options = CompileOptions(passes=passes, winograd=winograd, weights_dtype="float16", precision=layers)
        assert engine.lower(roots, options) is roots
        how = asked.pop()
        assert not asked and (how.passes, how.storage_dtype) == (passes, np.dtype("float16"))
        assert (how.winograd, how.pairs, how.layers) == ((False, False, None) if is_gpu else (winograd, True, layers))
    engine.lower(roots, CompileOptions())
    how = asked.pop()
    assert (how.passes, how.winograd, how.storage_dtype, how.pairs) == (True, not is_gpu, None, False)


@pytest.mark.parametrize(
    ("path", "folder"),
    [("w", os.curdir), (os.path.join("a", "b", "w"), os.path.join("a", "b")), (os.sep + "w", os.sep)],
)
def test_packed_constants_of_streamed_weights_go_to_a_file_in_their_folder(path, folder, monkeypatch):
    files, in_file, in_memory = [], SimpleNamespace(keep="in a file"), SimpleNamespace(keep="in memory")
    monkeypatch.setattr(engine_module, "Spool", lambda *where: files.append(where) or in_file)
    monkeypatch.setattr(engine_module, "HugePages", lambda: in_memory)
    assert engine_module.keep_for(CompileOptions()) == "in memory" and files == []
    assert engine_module.keep_for(CompileOptions(weights=StreamedWeights(path))) == "in a file"
    assert files == [(folder, engine_module.HASHED_NBYTES)]


class Lowered(Exception):
    """Ends a compile whose options are accepted."""


IMAGE = cg.Var((1, 1, 4, 4), name="image")
OPTIONS = {
    "budget": "1MiB", "precision": "bf16", "weights": StreamedWeights("w"), "weights_dtype": "float16", "rows": [IMAGE],
}  # fmt: skip
REFUSED = {
    CpuEngine(tiles=False): "", cuda().CudaEngine(cuda().SIMULATED): "precision weights rows",
    ExportEngine("avx2"): "weights rows", ReferenceEngine(): "budget precision weights weights_dtype rows",
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("engine", REFUSED, ids=lambda engine: engine.name)
def test_each_engine_refuses_the_options_that_it_would_ignore(engine, option, monkeypatch):
    def lower(*_):
        raise Lowered

    monkeypatch.setattr(type(engine), "lower", lower)
    is_refused = option in REFUSED[engine].split()
    takes_whole = option == "rows" and engine.name in ("cuda", "reference")
    text = "takes images whole" if takes_whole else f"does not support {option}=; leave it out"
    with pytest.raises(GraphError, match=f"^the engine {engine.name} {text}") if is_refused else pytest.raises(Lowered):
        cg.compile(IMAGE * 2, [IMAGE], engine=engine, **{option: OPTIONS[option]})
