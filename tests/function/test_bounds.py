"""Nothing grows without bound: what is remembered of calls, of evaluated nodes and of structures."""

import gc
import tracemalloc
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph import function as function_module
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.storage.function_cache import FunctionCache, nbytes_of
from cgraph.system.bounded_cache import LEAST_ENTRIES, MOST_ENTRIES, MOST_ITEMS, Bounded, most_of
from tests.support.injection import Lines, events
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_near

KIB = 1 << 10


def sorted_cells(count: int, steps: int) -> tuple[list[cg.Var], list[cg.Node]]:
    cells = [cg.Var((4,), "float64", f"v{i}").assign(np.zeros(4)) for i in range(count)]
    outputs: list[cg.Node] = []
    for x in cells:
        y: cg.Node = x
        for _ in range(steps):
            y = cg.sort(y) * 0.5
        outputs.append(y)
    return cells, outputs


@pytest.mark.parametrize("engine", ["cpu", CudaEngine(SIMULATED)], ids=["cpu", "cuda-sim"])
def test_ever_new_sets_of_changed_vars_take_no_more_memory(engine, monkeypatch):
    monkeypatch.setattr("cgraph.system.bounded_cache.MOST_ENTRIES", 8)
    rng, (cells, outputs) = np.random.default_rng(0), sorted_cells(5, 2)  # 32 sets, of which 8 are remembered
    function = cg.compile(outputs, threads=1, engine=engine) if engine == "cpu" else cg.compile(outputs, engine=engine)

    def call() -> None:
        for i in np.flatnonzero(rng.random(len(cells)) < 0.5):
            cells[i].assign(np.full(4, rng.random()))
        assert_near([x[0] for x in function()], [x.value[0] / 4 for x in cells], "float64 through float32")

    for _ in range(14):
        call()
    recompute, instance = function.incremental, function._idle[0].instance
    remembered = recompute.answers, recompute.cones, recompute.states, getattr(instance, "_rows", ())
    assert max(map(len, (*remembered, getattr(instance, "_parts", ())))) == 8


@pytest.mark.slow
def test_traced_memory_stays_the_same_with_ever_new_sets_of_changed_vars():
    rng, (cells, outputs) = np.random.default_rng(0), sorted_cells(20, 5)
    function, found = cg.compile(outputs, threads=1), {}
    tracemalloc.start()
    for k in range(701):
        for i in np.flatnonzero(rng.random(20) < 0.5):
            cells[i].assign(np.zeros(4))
        function()
        if k in (350, 700):
            gc.collect()
            found[k] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert found[700] - found[350] < 64 * KIB


def test_a_bounded_mapping_drops_its_oldest_entries():
    kept: Bounded[int, int] = Bounded(3)
    for i in range(5):
        assert kept.keep(i, 10 * i) == 10 * i
        assert len(kept) <= 3
    assert dict(kept) == {2: 20, 3: 30, 4: 40}


def test_a_cache_of_larger_entries_has_fewer_of_them():
    assert most_of(0) == most_of(1) == MOST_ENTRIES
    assert most_of(MOST_ITEMS // 10) == 10
    assert most_of(MOST_ITEMS * 10) == LEAST_ENTRIES


def test_an_exception_at_any_line_leaves_a_cache_within_its_bounds():
    for at in range(1, 40):
        kept, functions = Bounded[int, int](2), FunctionCache(2, 100)

        def act(kept=kept, functions=functions) -> None:
            for i in range(4):
                kept.keep(i, i)
                functions.keep(i, SimpleNamespace(), 40)
                functions.get(i)

        if not Lines(at).during(act):
            assert at > len(events(act))
            break
        act()
        assert len(kept) <= 2 and len(functions) <= 2 and functions.nbytes <= 100


def test_several_threads_share_a_cache():
    functions, failed = FunctionCache(4, 100), []

    def use(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for key in rng.integers(0, 12, 3000).tolist():
                if functions.get(key) is None:
                    functions.keep(key, SimpleNamespace(), 10)
        except BaseException as error:  # told in the test's own thread
            failed.append(error)

    threads = [Thread(target=use, args=(i,)) for i in range(4)]
    for x in threads:
        x.start()
    for x in threads:
        x.join(PATIENCE)
    assert not failed and len(functions) <= 4


def test_functions_go_when_they_are_too_large_together_the_latest_used_last():
    functions = FunctionCache(3, 100)
    for name, nbytes in (("a", 50), ("b", 50)):
        functions.keep(name, name, nbytes)
    assert functions.get("a") == "a"
    functions.keep("c", "c", 1)
    assert functions.get("b") is None and functions.get("a") == "a" and len(functions) == 2
    functions.keep("large", "large", 1000)
    assert functions.get("large") == "large" and len(functions) == 1, "the latest one stays"
    for name in "defg":
        functions.keep(name, name, 1)
    assert len(functions) == 3 and functions.get("large") is None


def test_functions_of_the_last_single_nodes_are_remembered(monkeypatch):
    compiled = []
    monkeypatch.setattr(function_module, "EVALUATED", FunctionCache(3, 1 << 25))
    real = function_module.compile
    monkeypatch.setattr(function_module, "compile", lambda *args: compiled.append(args) or real(*args))
    nodes = [cg.Const(np.arange(3.0)) + i for i in range(5)]
    for i, node in enumerate(nodes):
        np.testing.assert_array_equal(node.eval(), np.arange(3.0) + i)
    assert len(compiled) == 5 and len(function_module.EVALUATED) == 3
    assert nodes[4].eval().tolist() == [4, 5, 6] and len(compiled) == 5
    assert nodes[0].eval().tolist() == [0, 1, 2] and len(compiled) == 6


def test_evaluated_nodes_are_remembered_up_to_a_number_of_bytes(monkeypatch):
    monkeypatch.setattr(function_module, "EVALUATED", FunctionCache(64, 1 << 20))
    for i in range(12):
        found = cg.item(cg.mean(cg.sort(cg.Const(np.full(30_000, float(i))) + 1.0)))
        assert found == i + 1
        assert function_module.EVALUATED.nbytes <= 1 << 20
    assert 0 < len(function_module.EVALUATED) < 5


def test_bytes_of_a_function_are_its_arena_constants_and_vars():
    x, given = cg.Var((1000,), "float64").assign(np.zeros(1000)), cg.Var((1000,), "float64", "given")
    y = cg.sort(x) * cg.Const(np.arange(1000.0))
    function = cg.compile(y)
    assert nbytes_of(function) >= function.nbytes + 16_000
    other = cg.compile(cg.sort(given), [given])
    assert nbytes_of(other) < other.nbytes + 64 * KIB
    folded = cg.Const(np.arange(1e6)) + 1.0
    assert nbytes_of(cg.compile(folded), (folded,)) >= 16e6, "the constant before and behind the passes"
