"""What every sub-command does: what a file leaves open is asked for, interrupts and broken pipes end it quietly."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cgraph import load
from cgraph.cli import main
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import GraphError
from cgraph.function import compile
from cgraph.ops.leaf import Var


@pytest.fixture
def open_model(tmp_path):
    """``y = reshape(x * sr + z, s)``, with sizes, a scalar and a shape that the file does not say."""
    onnx = pytest.importorskip("onnx")
    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    shapes = {"x": (real, ("N", "M")), "z": (real, ("N", None)), "sr": (real, ()), "s": (whole, (1,))}
    inputs = [onnx.helper.make_tensor_value_info(name, *found) for name, found in shapes.items()]
    nodes = [("Mul", "x sr", "a"), ("Add", "a z", "b"), ("Reshape", "b s", "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, given.split(), [name]) for kind, given, name in nodes],
        "g",
        inputs,
        [onnx.helper.make_tensor_value_info("y", real, None)],
    )
    path = tmp_path / "open.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return path


SIZES = ["--shape", "N=2", "--shape", "M=3", "--shape", "z=2x3"]


def test_a_file_is_asked_for_in_the_command_lines_words(open_model, capsys):
    for given, asked in (
        ([], "sizes of inputs are unknown; give --shape N=1 --shape M=1 --shape z=1x1"),
        (["--shape", "N=2"], "give --shape M=1 --shape z=1x1"),
        ([*SIZES, "--shape", "sr=16000"], "'sr' is declared as [], not [16000]; give --constant sr=VALUE"),
        (SIZES, "depends on input 's'; give --constant s=VALUE"),
    ):
        assert main(["plan", str(open_model), *given]) == 2
        assert capsys.readouterr().err.endswith(f"{asked}\n")


def test_constants_are_values_of_inputs(open_model, tmp_path, capsys):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.savez(tmp_path / "x.npz", x=x, z=x)
    given = ["--constant", "sr=2", "--constant", "s=[6]", "--save", str(tmp_path / "y.npz")]
    assert main(["run", str(open_model), *SIZES, *given, "-i", str(tmp_path / "x.npz")]) == 0
    with np.load(tmp_path / "y.npz") as found:
        np.testing.assert_array_equal(found["y"], 3 * x.reshape(6))
    np.save(tmp_path / "s.npy", np.array([6]))
    assert main(["plan", str(open_model), *SIZES, "--constant", f"s={tmp_path / 's.npy'}"]) == 0


@pytest.mark.parametrize(
    "argument", [["--threads", "-1"], ["--top", "-1"], ["--shape", "x=1x"], ["--constant", "s"], ["--constant", "s=no"]]
)
def test_arguments_that_are_no_values_are_refused(argument, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run", "x.onnx", *argument])
    assert stopped.value.code == 2


def test_a_negative_number_of_threads_is_refused(tmp_path):
    with pytest.raises(GraphError, match="threads is -1"):
        compile(Var((2,)) + 1.0, threads=-1)
    with pytest.raises(GraphError, match="threads is -2"):
        CpuEngine(threads=-2)
    compile(Var((2,)) + 1.0).save(tmp_path / "saved")
    with pytest.raises(GraphError, match="threads is -3"):
        load(tmp_path / "saved", threads=-3)


def test_an_interrupt_is_one_line_and_status_130(capsys):
    assert main(["plan", "tests.cli.test_main:interrupted"]) == 130
    assert capsys.readouterr().err == "cgraph: interrupted\n"


def interrupted():
    raise KeyboardInterrupt


def test_who_reads_no_more_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "cgraph", "info"]
    with os.fdopen(writing, "wb") as pipe:
        found = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=120)
    assert found.stderr == b"" and found.returncode == 141


def test_a_model_comes_from_standard_input(open_model, capsys, monkeypatch):
    sizes = [*SIZES, "--constant", "s=[6]"]
    assert main(["plan", str(open_model), *sizes]) == 0
    by_name = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(open_model.read_bytes())))
    assert main(["plan", "-", *sizes]) == 0
    assert strategies(capsys.readouterr().out) == strategies(by_name) != []
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(open_model.read_bytes())))
    assert main(["plan", "-"]) == 2
    assert "standard input: sizes of inputs are unknown; give --shape N=1" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no model")))
    assert main(["plan", "-"]) == 2


def strategies(table):
    """Names and bytes of a printed table of plans."""
    return [line.split()[:2] for line in table.splitlines() if re.match(r"\w+ +[\d,]+ +\d\.\d{4}", line)]
