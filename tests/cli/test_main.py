"""What every sub-command does: what a file leaves open is asked for, interrupts and broken pipes end it quietly."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cgraph import load
from cgraph.cli import COMMANDS, main
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import GraphError
from cgraph.function import compile
from cgraph.ops.leaf import Var
from tests.support.patience import PATIENCE


@pytest.fixture
def open_model(tmp_path):
    """``y = unsqueeze(x * sr + z, s)``, with sizes, a scalar and an axis that the file does not say."""
    onnx = pytest.importorskip("onnx")
    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    shapes = {"x": (real, ("N", "M")), "z": (real, ("N", None)), "sr": (real, ()), "s": (whole, (1,))}
    inputs = [onnx.helper.make_tensor_value_info(name, *found) for name, found in shapes.items()]
    nodes = [("Mul", "x sr", "a"), ("Add", "a z", "b"), ("Unsqueeze", "b s", "y")]
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
    given = ["--constant", "sr=2", "--constant", "s=[0]", "--save", str(tmp_path / "y.npz")]
    assert main(["run", str(open_model), *SIZES, *given, "-i", str(tmp_path / "x.npz")]) == 0
    with np.load(tmp_path / "y.npz") as found:
        np.testing.assert_array_equal(found["y"], 3 * x[None])
    np.save(tmp_path / "s.npy", np.array([0]))
    assert main(["plan", str(open_model), *SIZES, "--constant", f"s={tmp_path / 's.npy'}"]) == 0


@pytest.fixture
def counted_model(tmp_path):
    """The places of what is not 0 in x, and the numbers below n."""
    onnx = pytest.importorskip("onnx")
    whole = onnx.TensorProto.INT64
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("NonZero", ["x"], ["y"]), onnx.helper.make_node("Range", ["zero", "n", "one"], ["z"])],
        "g",
        [onnx.helper.make_tensor_value_info(*x) for x in (("x", whole, (5,)), ("n", whole, ()))],
        [onnx.helper.make_empty_tensor_value_info(name) for name in "yz"],
        [onnx.helper.make_tensor(name, whole, (), [i]) for i, name in enumerate(("zero", "one"))],
    )
    path = tmp_path / "counted.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return str(path)


def test_lengths_known_only_when_run_have_a_maximum(counted_model, tmp_path, capsys):
    assert main(["plan", counted_model]) == 2
    assert capsys.readouterr().err.endswith("give --maximum n=N or --maximum z=N or --constant n=VALUE\n")
    np.savez(tmp_path / "x.npz", x=[0, 3, 0, 0, 1], n=4)
    given = ["run", counted_model, "--maximum", "n=6", "-i", str(tmp_path / "x.npz"), "--save", str(tmp_path / "y.npz")]
    assert main(given) == 0
    assert "y int64[1, 2]" in capsys.readouterr().out
    with np.load(tmp_path / "y.npz") as found:
        assert found["y"].tolist() == [[1, 4]] and found["z"].tolist() == [0, 1, 2, 3]
    np.savez(tmp_path / "x.npz", x=[0, 3, 0, 0, 1], n=7)
    assert main(given) == 2
    assert capsys.readouterr().err == "cgraph: maximum gives 6 for 'n'; it is larger\n"


def test_what_needs_one_shape_refuses_lengths_known_only_when_run(counted_model, tmp_path, capsys):
    assert main(["save", counted_model, "--maximum", "n=6", "-o", str(tmp_path / "saved")]) == 0
    assert (tmp_path / "saved").is_dir()
    quantised = ["-o", str(tmp_path / "q.onnx"), "--samples", str(tmp_path)]
    assert main(["quantise", counted_model, "--maximum", "n=6", *quantised]) == 2
    assert "known only when run, which are not quantised" in capsys.readouterr().err
    assert main(["run", counted_model, "--maximum", "q=6", "--maximum", "n=6"]) == 2
    assert "maximum gives 'q', but no computed value has this name" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argument",
    [
        ["--threads", "-1"],
        ["--top", "-1"],
        ["--shape", "x=1x"],
        ["--constant", "s"],
        ["--constant", "s=no"],
        ["--maximum", "s=-1"],
    ],
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
        found = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert found.stderr == b"" and found.returncode == 141


def test_a_closed_output_is_no_error():
    command = f"exec {sys.executable} -m cgraph info >&-"
    found = subprocess.run(command, shell=True, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert found.stderr == b"" and found.returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_argument_is_refused_with_the_usage_of_its_command(command, capsys):
    required = {"run": ["x"], "save": ["x", "-o", "y"], "quantise": ["x", "--samples", "y", "-o", "z"]}
    required |= {"plan": ["x"], "view": ["x", "-o", "y"], "trace": ["x", "-o", "y"], "bench": ["x"]}
    required |= {"completion": ["bash"], "show": ["x"], "export": ["x", "--target", "portable", "-o", "y"]}
    with pytest.raises(SystemExit) as stopped:
        main([command, *required.get(command, []), "--bogus"])
    text = capsys.readouterr().err
    assert stopped.value.code == 2 and "unrecognized arguments: --bogus" in text
    assert text.startswith(f"usage: cgraph {command} ")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.wav", "a=x.npy"])
def test_a_file_that_is_not_there_is_named_once(name, open_model, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["run", str(open_model), *SIZES, "--constant", "s=[0]", "-i", name]
    assert main(given) == 2
    assert capsys.readouterr().err in (
        f"cgraph: {name}: No such file or directory\n",
        "cgraph: the model has no input 'a'. Use one of x, z, sr, s\n",
    )


def test_an_output_that_cannot_be_written_is_named_once(open_model, capsys):
    there = "/nowhere/trace.json"
    assert main(["trace", str(open_model), *SIZES, "--constant", "s=[0]", "-o", there]) == 2
    assert capsys.readouterr().err == f"cgraph: {there}: No such file or directory\n"


def test_a_model_comes_from_standard_input(open_model, capsys, monkeypatch):
    sizes = [*SIZES, "--constant", "s=[0]"]
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
