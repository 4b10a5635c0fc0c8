"""save and run: a folder that gives what the model gives, and refusals in one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, run_model
from cgraph.cli.model import CliModel
from cgraph.errors import FormatError, bytes_text
from cgraph.formats.onnx import save
from tests.support.saved import normal
from tests.support.tolerance import assert_near


@pytest.fixture
def model(tmp_path):
    x = cg.Var((4, 8), name="x")
    y = cg.tanh(x @ normal(8, 20))
    save(tmp_path / "net.onnx", y, [x], ["y"])
    np.save(tmp_path / "x.npy", normal(4, 8))
    return str(tmp_path / "net.onnx")


def test_a_model_is_saved_and_run(model, tmp_path, capsys):
    folder, given = str(tmp_path / "saved"), str(tmp_path / "x.npy")
    assert main(["save", model, "-o", folder, "--target", "avx2", "--target", "portable", "--graph"]) == 0
    sizes = [f"{bytes_text(path.stat().st_size):>10}  {path}" for path in sorted(Path(folder).iterdir())]
    assert capsys.readouterr().out.splitlines() == sizes and Path(folder, "graph.onnx").exists()
    assert main(["run", folder, "-i", given, "--json", "--save", str(tmp_path / "y.npz")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["plan_nbytes"] > 0 and facts["outputs"][0]["shape"] == [4, 20]
    assert main(["run", model, "-i", given, "--save", str(tmp_path / "want.npz")]) == 0
    with np.load(tmp_path / "y.npz") as got, np.load(tmp_path / "want.npz") as want:
        assert_near(got["y"], want["y"], "float32 sums near zero")
    assert main(["run", folder, "-i", given]) == 0
    assert "lower bound" not in capsys.readouterr().out.splitlines()[-1]


def test_weights_are_kept_in_half_precision(tmp_path, capsys):
    x = cg.Var((4, 300), name="x")
    save(tmp_path / "net.onnx", x @ normal(300, 200), [x], ["y"])
    np.save(tmp_path / "x.npy", normal(4, 300))
    model, half, whole = (str(tmp_path / name) for name in ("net.onnx", "half", "whole"))
    assert main(["save", model, "-o", whole]) == 0
    assert main(["save", model, "-o", half, "--weights-dtype", "bfloat16"]) == 0
    sizes = [sum(f.stat().st_size for f in (tmp_path / name).iterdir()) for name in ("half", "whole")]
    assert sizes[1] - sizes[0] > 2 * 290 * 200
    wanted = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    given = ["-i", str(tmp_path / "x.npy"), "--save"]
    assert main(["run", half, *given, wanted[0]]) == 0
    assert main(["run", model, "--weights-dtype", "bfloat16", *given, wanted[1]]) == 0
    assert Path(wanted[0]).read_bytes() and np.array_equal(*(np.load(path)["y"] for path in wanted))
    capsys.readouterr()


def test_what_a_saved_function_does_not_do_is_said_in_one_line(model, tmp_path, capsys):
    folder, given = str(tmp_path / "saved"), str(tmp_path / "x.npy")
    assert main(["save", model, "-o", folder]) == 0
    capsys.readouterr()
    for command, text in (
        (["save", model, "-o", folder], "exists already"),
        (["plan", folder], "has no graph"),
        (["run", folder, "-i", given, "--budget", "1MiB"], "is planned already"),
    ):
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert text in line
    (tmp_path / "saved").chmod(0o777)
    assert main(["run", folder, "-i", given]) == 2
    assert "trust" in capsys.readouterr().err
    assert main(["run", folder, "-i", given, "--trust"]) == 0


def test_a_saved_function_is_run_without_what_compiles(tmp_path):
    x = cg.Var((4,), name="x")
    cg.compile(cg.sin(x), [x]).save(tmp_path / "saved")
    np.save(tmp_path / "x.npy", np.ones(4, "float32"))
    heavy = ["cgraph.function", "cgraph.planning.plan", "cgraph.cli.model", "cgraph.view", "llvmlite", "onnx"]
    code = "import sys; from cgraph.cli import main; main(sys.argv[1:])"
    code += f"; print([m for m in {heavy} if m in sys.modules])"
    command = [sys.executable, "-c", code, "run", str(tmp_path / "saved"), "-i", str(tmp_path / "x.npy")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[-1] == "[]" and any("from 0.841471 to 0.841471" in line for line in lines)


def test_a_saved_model_keeps_the_names_of_its_outputs(model, tmp_path, capsys):
    assert main(["save", model, "-o", str(tmp_path / "saved")]) == 0
    capsys.readouterr()
    assert main(["run", str(tmp_path / "saved"), "-i", str(tmp_path / "x.npy"), "--json"]) == 0
    assert [x["name"] for x in json.loads(capsys.readouterr().out)["outputs"]] == ["y"]


@pytest.mark.parametrize(
    "words",
    [
        ["--budget", "1MiB"], ["--budget", "0"], ["--memory", "one_each"], ["--shape", "N=2"], ["--weights", "w.bin"],
        ["--state", "a=b"], ["--maximum", "n=3"], ["--stream", "w"], ["--weights-dtype", "float16"],
        ["--precision", "bf16"], ["--precision", "0.01"],
    ],
    ids="=".join,
)  # fmt: skip
def test_a_flag_of_planning_is_refused_for_a_saved_function(words, tmp_path, capsys):
    (tmp_path / "saved").mkdir()
    assert main(["run", str(tmp_path / "saved"), *words]) == 2
    assert capsys.readouterr().err == (
        f"cgraph: {tmp_path / 'saved'} is planned already; --budget, --memory, --shape, --weights, --state, --maximum, "
        "--stream, --weights-dtype and --precision change nothing. Leave them out\n"
    )


def test_a_saved_function_is_loaded_with_the_threads_and_the_trust_of_the_call(tmp_path, monkeypatch):
    (tmp_path / "saved").mkdir()
    calls = []

    def noted(path, **options):
        calls.append((path, options))
        raise FormatError("enough")

    monkeypatch.setattr(run_model, "load", noted)
    folder = str(tmp_path / "saved")
    for words in ([], ["--threads", "3"], ["--trust"]):
        assert main(["run", folder, *words]) == 2
    assert calls == [(folder, {"threads": n, "trust": trust}) for n, trust in ((0, False), (3, False), (0, True))]


def test_code_for_a_target_is_written_once_however_often_it_is_named(model, tmp_path, monkeypatch, capsys):
    targets, compiled = [], CliModel.compiled
    monkeypatch.setattr(
        CliModel,
        "compiled",
        lambda self, engine, **options: targets.append(engine.target) or compiled(self, engine=engine),
    )
    words = [word for name in ("portable", "avx2", "portable") for word in ("--target", name)]
    assert main(["save", model, "-o", str(tmp_path / "saved"), *words]) == 0
    assert targets == ["portable", "avx2"]
