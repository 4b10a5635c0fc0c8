"""Arguments about precision: what they allow, and which options of `compile` they become."""

import argparse
import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.precision_arguments import add_precision, precision_options
from cgraph.dtypes.storage import BY_NAME
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError
from cgraph.formats.onnx import save
from cgraph.planning.mixed_precision import Tolerance
from tests.support.emulated import PairsEngine
from tests.support.saved import normal


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_precision(parser)
    return parser


def no_samples():
    raise AssertionError("nothing is measured")


def test_what_is_not_asked_for_is_no_option(parser):
    assert precision_options(parser.parse_args([]), no_samples) == {}
    assert precision_options(parser.parse_args(["--precision", "bf16"]), no_samples) == {"precision": "bf16"}


@pytest.mark.parametrize("name", BY_NAME)
def test_every_storage_dtype_is_one_of_weights(parser, name):
    args = parser.parse_args(["--weights-dtype", name, "--precision", "bf16"])
    assert precision_options(args, no_samples) == {"weights_dtype": name, "precision": "bf16"}


def test_a_number_is_a_tolerance_with_samples(parser):
    options = precision_options(parser.parse_args(["--precision", "1e-2"]), lambda: [(1,)])
    assert isinstance(options["precision"], Tolerance)
    assert options["precision"].error == 0.01 and options["precision"].samples == [(1,)]


def test_samples_without_a_tolerance_are_refused(parser):
    for words in (["--samples", "x"], ["--samples", "x", "--precision", "bf16"]):
        with pytest.raises(FormatError, match="--samples is for --precision ERROR"):
            precision_options(parser.parse_args(words), no_samples)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--weights-dtype", "float64"], "invalid choice"), (["--precision"], "expected one argument"),
        (["--precision", "float16"], "neither bf16 nor a number"), (["--precision", "nan"], "finite number"),
        (["--precision", "1e-9"], "Pass at least 6e-08"), (["--precision=-1"], "Pass at least 6e-08"),
    ],
)  # fmt: skip
def test_others_are_refused(parser, words, text, capsys):
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(words)
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and words[0].split("=")[0] in error and text in error


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The path of a model whose product rounds on any machine, and of its input."""
    monkeypatch.setattr(CpuEngine, "kernel_target", PairsEngine.kernel_target)
    x = cg.Var((4, 8), name="x")
    save(tmp_path / "net.onnx", cg.tanh(x @ cg.Const(normal(8, 20), name="w")), [x], ["y"])
    np.save(tmp_path / "x.npy", normal(8, 8))
    np.save(tmp_path / "one.npy", normal(4, 8))
    return str(tmp_path / "net.onnx"), str(tmp_path / "x.npy"), str(tmp_path / "one.npy")


def test_a_run_measures_with_its_own_input_or_with_samples(model, capsys):
    path, samples, one = model
    for more in ([], ["--samples", samples]):
        assert main(["run", path, "-i", one, "--precision", "0.1", *more]) == 0
        assert capsys.readouterr().out.startswith("1 of 1 layers in bf16, 100.0% of their multiply-adds\nmeasured")
    assert main(["run", path, "-i", one, "--precision", "1e-7", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["precision"]
    assert [x[1] for x in facts["layers"]] == ["float32"] and facts["errors"] == [["y", 0.0]]


def test_a_saved_function_needs_samples_and_has_the_precision(model, tmp_path, capsys):
    path, samples, _ = model
    folder = str(tmp_path / "saved")
    assert main(["save", path, "-o", folder, "--precision", "0.1"]) == 2
    assert "Give --samples FOLDER" in capsys.readouterr().err
    assert main(["save", path, "-o", folder, "--precision", "0.1", "--samples", samples]) == 0
    assert "1 of 1 layers in bf16" in capsys.readouterr().out
    assert len(cg.load(folder).precision.bf16_layers) == 1
