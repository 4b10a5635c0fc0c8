"""save and run: a folder that gives what the model gives, and refusals in one line."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.formats.onnx import save
from tests.support.saved import normal


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
    assert {line.split("/")[-1] for line in capsys.readouterr().out.splitlines()} >= {"manifest.json", "graph.onnx"}
    assert main(["run", folder, "-i", given, "--json", "--save", str(tmp_path / "y.npz")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["plan_nbytes"] > 0 and facts["outputs"][0]["shape"] == [4, 20]
    assert main(["run", model, "-i", given, "--save", str(tmp_path / "want.npz")]) == 0
    with np.load(tmp_path / "y.npz") as got, np.load(tmp_path / "want.npz") as want:
        np.testing.assert_allclose(got["output0"], want["y"], 1e-5, 1e-6)
    assert main(["run", folder, "-i", given]) == 0
    assert "lower bound" not in capsys.readouterr().out.splitlines()[-1]


def test_what_a_saved_function_does_not_do_is_said_in_one_line(model, tmp_path, capsys):
    folder, given = str(tmp_path / "saved"), str(tmp_path / "x.npy")
    assert main(["save", model, "-o", folder]) == 0
    capsys.readouterr()
    for command, text in (
        (["save", model, "-o", folder], "is there already"),
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
