"""Tile registers by default: which graphs compute on them, the trial's answer, and saving without them."""

import os
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.engine.reference import ReferenceEngine
from cgraph.ir.graph import apply
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.isa.x86 import PORTABLE
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.integer import IntegerConv
from cgraph.ops.physical.tiled import TiledMatmul
from cgraph.planning.options import CompileOptions
from cgraph.precision import tiles
from cgraph.precision.tiles import engines_of, trial_name
from cgraph.system import child_processes
from tests.support.emulated import TilesEngine, compute_on_tiles

RNG = np.random.default_rng(3)
WEIGHTS = RNG.standard_normal((70, 45)).astype("f4")
BF16, FLOAT32 = CompileOptions(precision="bf16"), CompileOptions()


def product():
    x = cg.Var((37, 70), name="x")
    return x, cg.relu(x @ cg.Const(WEIGHTS, name="w"))


def bytes_graph(dtype="uint8"):
    return cg.astype(cg.Var((4,), dtype, "x"), "float32") * 2


def uses_tiles(function):
    return any(isinstance(n.op, TiledMatmul) for n in function.compiled.layout.steps)


@pytest.fixture
def on_tiles(monkeypatch):
    compute_on_tiles(monkeypatch)


@pytest.fixture
def trials(monkeypatch, tmp_path):
    """A machine with tiles and an empty cache; the list has the answers of its trials, and grows by a mark for each."""
    answers: list = []
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setattr(tiles, "cache_folder", cache_folder)
    monkeypatch.setattr(tiles, "tiles_state", lambda: "permitted")
    monkeypatch.setattr(tiles, "run_trial", lambda: answers.append("run") or answers[0])
    return answers


def compute():
    """What a new process finds."""
    return tiles.tiles_compute.__wrapped__()


@pytest.mark.parametrize("answer", [True, False])
def test_a_machine_has_one_trial_whose_answer_is_kept(answer, trials):
    trials.append(answer)
    assert [compute() for _ in range(3)] == [answer] * 3 and trials[1:] == ["run"]


def test_a_trial_without_an_answer_leaves_float32_and_is_not_kept(trials):
    trials.append(None)
    assert not compute() and not compute() and trials[1:] == ["run", "run"]
    trials[0] = True
    assert compute()


@pytest.mark.parametrize("state", ["", "refused"])
def test_without_permission_there_is_no_trial(state, trials, monkeypatch):
    monkeypatch.setattr(tiles, "tiles_state", lambda: state)
    assert not compute() and not trials


@pytest.mark.parametrize("lacking", ["cache_folder", "host_key"])
def test_without_a_cache_or_a_name_of_the_processor_each_process_has_a_trial(trials, monkeypatch, lacking):
    monkeypatch.setattr(tiles, lacking, lambda: None)
    trials.append(True)
    assert compute() and compute() and trials[1:] == ["run", "run"]


def test_other_kernels_and_processors_have_other_trials(monkeypatch):
    names = {trial_name("one"), trial_name("two")}
    monkeypatch.setattr(tiles, "emitter_hash", lambda family: f"changed {family}")
    assert len({*names, trial_name("one")}) == 3


@pytest.mark.parametrize("family", ["tile_products", "tile_conv", "tile_attention"])
def test_each_family_of_kernels_has_a_part_in_the_name(family, monkeypatch):
    before, emitter_hash = trial_name("one"), tiles.emitter_hash
    monkeypatch.setattr(tiles, "emitter_hash", lambda x: "changed" if x == family else emitter_hash(x))
    assert trial_name("one") != before


def test_a_trial_runs_its_module_and_prints_nothing(monkeypatch):
    calls = []
    monkeypatch.setattr(child_processes, "run_module", lambda *given: calls.append(given) or 0)
    assert tiles.run_trial()
    ((module, arguments, output, errors, seconds),) = calls
    assert (module, arguments, seconds) == ("cgraph.precision.tile_trial", [], tiles.SECONDS)
    assert output.name == errors.name == os.devnull and output.closed


def test_a_process_that_cannot_start_is_a_failed_trial(monkeypatch):
    def fail(*args):
        raise OSError("no more processes")

    monkeypatch.setattr(child_processes, "run_module", fail)
    assert tiles.run_trial() is None
    for status, answer in ((0, True), (1, False), (-4, False), (None, None)):
        monkeypatch.setattr(child_processes, "run_module", lambda *args, status=status: status)
        assert tiles.run_trial() == answer


@pytest.mark.parametrize(
    ("graph", "options"), [(product()[1], BF16), (bytes_graph(), FLOAT32), (bytes_graph("int8"), FLOAT32)]
)
def test_the_default_engine_takes_tiles_where_a_graph_gains(graph, options, on_tiles):
    runs, savable = engines_of(CpuEngine(threads=2, poison=True), (graph,), options)
    assert runs == CpuEngine(threads=2, poison=True, tiles=True)
    assert savable == CpuEngine(threads=2, poison=True, tiles=False)


OTHERS = [
    *(CpuEngine(tiles=x) for x in (False, True)),
    CpuEngine("portable"),
    ReferenceEngine(),
    TwinEngine(of=PORTABLE),
]


@pytest.mark.parametrize("engine", OTHERS, ids=repr)
def test_other_engines_stay_what_they_are(engine, on_tiles):
    assert engines_of(engine, (product()[1],), BF16) == (engine, engine)


def test_float32_asks_for_no_permission(monkeypatch):
    monkeypatch.setattr(tiles, "host", lambda: SimpleNamespace(has=lambda *features: True))
    monkeypatch.setattr(tiles, "tiles_state", lambda: pytest.fail("the system was asked"))
    tiles.tiles_compute.cache_clear()
    assert engines_of(CpuEngine(), (product()[1],), FLOAT32) == (CpuEngine(), CpuEngine())


def test_several_results_of_one_op_are_no_bytes(on_tiles):
    values, _ = cg.eigh(cg.Var((3, 3), name="x"))
    assert engines_of(CpuEngine(), (values,), FLOAT32) == (CpuEngine(), CpuEngine())


def test_a_failed_trial_leaves_float32(on_tiles, monkeypatch):
    monkeypatch.setattr(tiles, "tiles_compute", lambda: False)
    assert engines_of(CpuEngine(), (product()[1],), BF16) == (CpuEngine(), CpuEngine())


def test_bf16_computes_on_tiles_by_default(on_tiles):
    x, y = product()
    numbers = RNG.standard_normal(x.shape).astype("f4")
    function = cg.compile(y, [x], precision="bf16")
    want = cg.compile(y, [x], engine=TilesEngine(), precision="bf16")(numbers)
    assert uses_tiles(function) and not uses_tiles(cg.compile(y, [x]))
    np.testing.assert_array_equal(function(numbers), want)
    assert function.precision.bf16_layers == {"w"}


@pytest.mark.parametrize("precision", ["bf16", "a tolerance"])
def test_saved_and_pickled_functions_have_no_tiles(precision, on_tiles, tmp_path):
    x, y = product()
    state = cg.Var((37, 45), name="state")
    state.assign(np.zeros(state.shape, "f4"))
    frozen = cg.Var((45,), name="frozen")
    frozen.assign(np.ones(45, "f4"))
    numbers = RNG.standard_normal(x.shape).astype("f4")
    choice = "bf16" if precision == "bf16" else cg.Tolerance(1.0, [numbers])
    graph = {"total": state + y * frozen}, [x], {state: state + y}
    function = cg.compile(*graph, precision=choice, freeze=[frozen])
    plain = cg.compile(*graph, precision=choice, freeze=[frozen], engine=CpuEngine(tiles=False))
    assert uses_tiles(function) and not uses_tiles(function.for_saving())
    function(numbers)
    kept = state.eval()
    function.save(tmp_path / "f")
    want = pickle.loads(pickle.dumps(plain))(numbers)["total"]  # saved code may round the sum of a pair in another way
    for loaded in (cg.load(tmp_path / "f"), pickle.loads(pickle.dumps(function))):
        assert loaded.names == ("total",) and loaded.precision.bf16_layers == plain.precision.bf16_layers
        np.testing.assert_array_equal(loaded(numbers)["total"], want)
    np.testing.assert_array_equal(state.eval(), kept)


def test_a_frozen_var_that_changes_later_keeps_its_value_in_what_is_saved(on_tiles):
    x, y = product()
    factor = cg.Var((45,), name="factor")
    factor.assign(np.full(45, 2, "f4"))
    function = cg.compile(y * factor, [x], precision="bf16", freeze=[factor])
    numbers = RNG.standard_normal(x.shape).astype("f4")
    want = function(numbers)
    factor.assign(np.full(45, 1000, "f4"))
    got = pickle.loads(pickle.dumps(function))(numbers)
    assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


def test_a_budget_that_blocks_of_64_channels_exceed_is_met_without_tiles(on_tiles):
    x = cg.Var((1, 16, 24, 24), "uint8", "x")
    y = x
    for channels in (96, 16, 96, 16):
        filters, scale = RNG.integers(-128, 128, (channels, y.shape[1], 3, 3), "int8"), np.full(channels, 0.01, "f4")
        op = IntegerConv(Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 1), 7, Result(zero=7))
        y = apply(op, y, *map(cg.Const, (filters, np.zeros(channels, "i4"), scale)))
    numbers = RNG.integers(0, 256, x.shape, "uint8")
    narrow, wide = (cg.compile(y, [x], engine=CpuEngine(tiles=t)) for t in (False, True))
    least = [smallest(y, x, t) for t in (False, True)]
    assert least[0] < least[1] <= wide.nbytes
    function = cg.compile(y, [x], budget=least[0])
    assert function.nbytes <= least[0] and function.for_saving() is function
    np.testing.assert_array_equal(function(numbers), narrow(numbers))
    with pytest.raises(cg.BudgetError):
        cg.compile(y, [x], budget=least[0] - 64)


def smallest(y, x, on_tiles):
    """The least budget that is met."""
    with pytest.raises(cg.BudgetError) as caught:
        cg.compile(y, [x], engine=CpuEngine(tiles=on_tiles), budget=1)
    return int(re.search(r"the least budget of this graph is (\d+) bytes", str(caught.value))[1])


def test_a_request_for_tiles_is_kept_and_cannot_be_saved(on_tiles, tmp_path):
    x, y = product()
    function = cg.compile(y, [x], engine=CpuEngine(tiles=True), precision="bf16")
    assert function.for_saving() is function
    with pytest.raises(cg.FormatError, match=r"Compile with CpuEngine\(tiles=False\)"):
        function.save(tmp_path / "f")


@pytest.mark.parametrize("outputs", ["one", "list", "names"])
def test_a_function_that_fits_only_without_tiles_gives_what_any_other_does(outputs, on_tiles, monkeypatch):
    """Its outputs are one or several, with or without names, as they were asked for."""
    x, y = product()
    asked = {"one": y, "list": [y, -y], "names": {"y": y, "minus": -y}}[outputs]
    numbers = RNG.standard_normal(x.shape).astype("f4")
    want = cg.compile(asked, [x], engine=CpuEngine(tiles=False), precision="bf16")

    def refuse(self, request, options):
        if self.tiles:
            raise cg.BudgetError("tiles need more")
        return plan(self, request, options)

    plan = CpuEngine.plan
    monkeypatch.setattr(CpuEngine, "plan", refuse)
    function = cg.compile(asked, [x], precision="bf16")
    got = function(numbers)
    assert function.names == want.names and type(got) is type(want(numbers))
    for i in range(len(got)):  # rows of one output, or outputs
        np.testing.assert_array_equal(got[i], want(numbers)[i])
