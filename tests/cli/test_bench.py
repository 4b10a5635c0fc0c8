"""``cgraph bench``: inputs from a seed, turns of two engines, differences of outputs, and the printed lines."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import bench, main
from cgraph.cli.model import CliModel
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError, UnavailableError
from cgraph.formats.onnx import save
from tests.support.emulated import PairsEngine
from tests.support.sources import ROOT
from tests.support.tolerance import near


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_that_warm_up_do_not_count_and_each_engine_has_its_own_times(monkeypatch):
    now, length = [0.0], {"ours": 2.0, "theirs": 3.0}
    begun: list[str] = []

    def once(name):
        def call():
            begun.append(name)
            now[0] += length[name] if len(begun) > 4 * bench.WARM else 1e-6  # two runs of two engines in a turn

        return call

    monkeypatch.setattr(bench, "perf_counter", lambda: now[0])
    monkeypatch.setattr(bench, "sleep", lambda seconds: None)
    found = bench.alternate_runs({name: once(name) for name in length}, 5)
    assert found == {"ours": [2.0] * 5, "theirs": [3.0] * 5}
    assert len(begun) == 4 * (bench.WARM + 5)


def test_a_ratio_of_speeds_is_above_one_where_ours_is_faster(folder, monkeypatch, capsys):
    x = cg.Var((1, 4), name="x")
    save("net.onnx", cg.exp(x), [x])
    times = {"cgraph": [0.001, 0.002, 0.009], "onnxruntime": [0.003, 0.005, 0.006]}
    monkeypatch.setattr(bench, "onnxruntime_run", lambda path, values, threads: lambda: [1.5 * np.exp(values["x"])])
    monkeypatch.setattr(bench, "alternate_runs", lambda runs, count: times)
    arguments = ["bench", "net.onnx", "--against", "onnxruntime", "--threads", "1"]
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["speed_ratio"] == 2.5 and facts["largest_difference"] == near(1 / 3, "float64 through float32")
    assert facts["seconds"]["onnxruntime"] == {"least": 0.003, "median": 0.005, "runs": 3}
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.findall(r"[\d.]+", lines[1]) == ["1.000", "2.000", "3"] and "least" in lines[1].split("median")[0]
    assert lines[3].startswith("2.50 x the speed of onnxruntime; outputs differ by 3.33e-01")


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        ([1, 2], [1, 4], 0.5),
        ([1, -9], [1, -8], 0.125),
        ([3, 0], [0, 0], 3e30),
        ([], [], 0.0),
        ([0, 0], [0, 0], 0.0),
        ([1, INF, NAN], [2, INF, NAN], 0.5),
        ([1, NAN], [1, 2], INF),
        ([1, 2], [1, NAN], INF),
        ([1, INF], [1, 2], INF),
        ([1, INF], [1, -INF], INF),
        ([1, 2], [[1, 2]], INF),
        ([1], [1, 1], INF),
    ],
    ids=str,
)
def test_a_difference_is_relative_to_the_largest_value_of_the_other(x, y, want):
    assert bench.difference(np.array(x, "float32"), np.array(y, "float32")) == near(want, "float64 through float32")


def test_integers_truths_and_complex_numbers_are_compared_whole():
    assert bench.difference(np.array([0], "uint8"), np.array([255], "uint8")) == 1.0
    assert bench.difference(np.array([True, False]), np.array([True, True])) == 1.0
    assert bench.difference(np.array([1 + 2j]), np.array([1 + 4j])) == near(2 / abs(1 + 4j), "float64 formulas")


def test_inputs_are_normal_floats_and_small_integers_the_same_every_time():
    inputs = (
        cg.Var((200,), name="x"),
        cg.Var((200,), "int64", "n"),
        cg.Var((3,), "bool", "b"),
        cg.Var((), "float64", "s"),
    )
    model = CliModel((inputs[0] + 1.0,), inputs)
    one, other = bench.random_inputs(model), bench.random_inputs(model)
    assert [(x.shape, str(x.dtype)) for x in one.values()] == [(x.shape, str(x.dtype)) for x in inputs]
    assert list(one) == ["x", "n", "b", "s"] and set(one["n"]) == {0, 1} and one["x"].min() < 0 < one["x"].max()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_results_of_one_or_several_outputs_are_a_list():
    x = np.ones(2)
    assert bench.as_list(x)[0] is x and len(bench.as_list((x, x))) == 2 and len(bench.as_list([x])) == 1


def test_the_text_has_a_line_for_each_engine():
    facts = {
        "model": "m.onnx", "threads": 3, "load_and_compile_seconds": 1.256, "plan_nbytes": 2048,
        "seconds": {"cgraph": {"least": 0.001, "median": 0.0025, "runs": 20}},
    }  # fmt: skip
    lines = [
        "m.onnx: load and compile 1.26 s, 3 threads, arena 2 KiB",
        "cgraph       least     1.000 ms, median     2.500 ms of 20",
    ]
    assert bench.lines_of(facts) == lines
    facts["seconds"]["onnxruntime"] = {"least": 0.5, "median": 1.0, "runs": 20}
    facts["comparisons"] = {"onnxruntime": {"speed_ratio": 400.0, "largest_difference": 0.00012}}
    assert bench.lines_of(facts) == [
        *lines,
        "onnxruntime  least   500.000 ms, median  1000.000 ms of 20",
        "400.00 x the speed of onnxruntime; outputs differ by 1.20e-04 at most",
    ]


def test_one_engine_does_not_rest(monkeypatch):
    rests = []
    monkeypatch.setattr(bench, "sleep", rests.append)
    times = bench.alternate_runs({"ours": lambda: None}, 2)
    assert len(times["ours"]) == 2 and set(rests) == {0}
    bench.alternate_runs({"ours": lambda: None, "theirs": lambda: None}, 1)
    assert set(rests) == {0, bench.REST}


@pytest.mark.parametrize("runs", ["0", "-3"])
def test_at_least_one_run_counts(runs, capsys):
    assert main(["bench", "tests.cli.test_curve:images", f"--runs={runs}"]) == 2
    assert capsys.readouterr().err == f"cgraph: --runs is {runs}. Give at least 1\n"


def test_only_onnx_files_are_compared_with_onnxruntime():
    with pytest.raises(FormatError) as error:
        bench.onnxruntime_run("m.tflite", {}, 1)
    assert str(error.value) == "m.tflite: only .onnx files can be compared with onnxruntime"


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_the_ending_of_a_file_that_is_compared_has_any_case(tmp_path, engine):
    pytest.importorskip(engine)
    x = cg.Var((2,), name="x")
    save(tmp_path / "NET.ONNX", x + 1, [x], ["y"])
    runs = bench.PEERS[engine](str(tmp_path / "NET.ONNX"), {"x": np.ones(2, "f4")}, 1)
    assert all(np.asarray(run()[0]).tolist() == [2, 2] for run in runs.values())


def test_only_onnx_files_are_compared_with_openvino():
    with pytest.raises(FormatError, match=r"m.tflite: only .onnx files can be compared with openvino"):
        bench.openvino_runs("m.tflite", {}, 1)


def test_a_model_is_timed_beside_openvino_in_float32_and_as_it_comes(folder, capsys):
    pytest.importorskip("openvino", reason="openvino is not installed")
    x = cg.Var((2, 4), name="x")
    save("net.onnx", cg.exp(x) @ np.ones((4, 3), "f4"), [x])
    arguments = ["bench", "net.onnx", "--against", "openvino", "--runs", "2", "--threads", "1"]
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert list(facts["seconds"]) == ["cgraph", "openvino", "openvino as it comes"]
    assert facts["largest_difference"] == facts["comparisons"]["openvino"]["largest_difference"] < 1e-5
    assert facts["comparisons"]["openvino as it comes"]["largest_difference"] < 0.1
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith("openvino as it comes least") and "the speed of openvino as it comes" in lines[5]


SIGNAL_AFTER_OPENVINO = """
import signal
from cgraph.cli import main

assert main(["bench", "net.onnx", "--against", "openvino", "--runs", "1"]) == 0
signal.signal(signal.SIGINT, lambda *_: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


def test_signals_are_handled_after_openvino_ran(folder):
    pytest.importorskip("openvino", reason="openvino is not installed")
    x = cg.Var((2, 4), name="x")
    save("net.onnx", cg.exp(x), [x])
    command = [sys.executable, "-X", "faulthandler", "-c", SIGNAL_AFTER_OPENVINO]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["handled"]), done.stderr


@pytest.mark.parametrize("precision", ["bf16", "0.1"])
def test_rounded_layers_have_a_row_of_their_own(folder, precision, monkeypatch, capsys):
    monkeypatch.setattr(CpuEngine, "kernel_target", PairsEngine.kernel_target)
    x, y = cg.Var((4, 8), name="x"), cg.Var((8,), name="y")
    save("net.onnx", x @ np.random.default_rng(0).standard_normal((8, 8)).astype("f4") + y, [x, y])
    assert main(["bench", "net.onnx", "--runs", "2", "--precision", precision, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert list(facts["seconds"]) == ["cgraph", "cgraph bf16"]
    assert 0 < facts["comparisons"]["cgraph bf16"]["largest_difference"] < 0.1
    assert [layer[1] for layer in facts["precision"]["layers"]] == ["bf16"]


def test_a_model_is_timed_beside_onnxruntime_on_the_same_inputs(folder, capsys):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    x, y = cg.Var((2, 4), name="x"), cg.Var((4,), name="y")
    save("net.onnx", cg.exp(x) * y, [x, y])
    arguments = ["bench", "net.onnx", "--against", "onnxruntime", "--runs", "2", "--threads", "1", "--json"]
    assert main([*arguments, "--constant", "y=[1,2,3,4]"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["largest_difference"] < 1e-5 and facts["threads"] == 1 and facts["model"] == "net.onnx"
    assert facts["plan_nbytes"] >= facts["lower_bound_nbytes"] > 0
    assert {name: t["runs"] for name, t in facts["seconds"].items()} == {"cgraph": 2, "onnxruntime": 2}


class Notes(SimpleNamespace):
    """Attributes that a test or a caller sets."""


def test_another_engine_has_the_threads_of_the_run_and_the_settings_of_its_row(monkeypatch):
    sessions, compiled, output = [], [], SimpleNamespace(data=np.ones(2))
    request = SimpleNamespace(infer=lambda values, **shares: None, get_output_tensor=lambda i: output)

    def session(path, options, providers):
        sessions.append((path, vars(options), providers))
        return SimpleNamespace(run=lambda names, values: [names, values])

    def compile_model(model, device, settings):
        compiled.append((model, device, settings))
        return SimpleNamespace(create_infer_request=lambda: request, outputs=[0, 1])

    core = SimpleNamespace(read_model=lambda path: f"read {path}", compile_model=compile_model)
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(SessionOptions=Notes, InferenceSession=session))
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: core))
    values = {"x": np.zeros(2)}
    (theirs,) = bench.PEERS["onnxruntime"]("m.onnx", values, 5).values()
    assert theirs() == [None, values]
    threads = {"intra_op_num_threads": 5, "inter_op_num_threads": 1, "log_severity_level": 3}
    assert sessions == [("m.onnx", threads, ["CPUExecutionProvider"])]
    runs = bench.PEERS["openvino"]("m.onnx", values, 6)
    assert list(runs) == ["openvino", "openvino as it comes"]
    settings = {"INFERENCE_NUM_THREADS": 6, "PERFORMANCE_HINT": "LATENCY"}
    assert compiled == [
        ("read m.onnx", "CPU", settings | {"INFERENCE_PRECISION_HINT": "f32"}), ("read m.onnx", "CPU", settings),
    ]  # fmt: skip
    assert [x is output.data for x in runs["openvino"]()] == [True, True]


@pytest.mark.parametrize("engine", bench.PEERS)
def test_an_engine_that_is_not_installed_is_named_with_its_package(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(UnavailableError) as error:
        bench.PEERS[engine]("m.onnx", {}, 1)
    assert str(error.value) == f"{engine} is not installed: pip install {engine}"


def test_runs_with_samples_measure_a_tolerance_and_the_others_run_on_drawn_inputs(folder, monkeypatch, capsys):
    monkeypatch.setattr(CpuEngine, "kernel_target", PairsEngine.kernel_target)
    x = cg.Var((4, 8), name="x")
    save("net.onnx", x @ np.random.default_rng(0).standard_normal((8, 8)).astype("f4"), [x])
    np.save("s.npy", np.zeros((8, 8), "f4"))
    assert main(["bench", "net.onnx", "--runs", "1", "--precision", "1e-6", "--samples", "s.npy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [layer[1] for layer in facts["precision"]["layers"]] == ["bf16"]  # the product of zeros is exact
    assert facts["comparisons"]["cgraph bf16"]["largest_difference"] > 1e-4


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_of_several_outputs_the_largest_difference_counts(order):
    theirs = [np.float32([1, 2]), np.float32([4, 8]), np.float32([[16]])]
    ours = [theirs[0] + np.float32(0.5), theirs[1] + np.float32(4), theirs[2]]
    outputs = {"cgraph": [ours[i] for i in order], "peer": [theirs[i] for i in order]}
    times = {"cgraph": [1.0, 2.0, 9.0], "peer": [8.0, 7.0, 1.0]}
    assert bench.comparison("peer", outputs, times) == {"speed_ratio": 3.5, "largest_difference": 0.5}
    assert bench.comparison("peer", {"cgraph": [], "peer": []}, times)["largest_difference"] == 0
