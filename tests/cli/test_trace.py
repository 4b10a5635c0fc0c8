"""``cgraph trace``: a file that holds a trace, a line that says what was timed, errors in one line."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.formats.onnx import save


@pytest.fixture
def model(tmp_path):
    x = cg.Var((1, 64), name="x")
    save(tmp_path / "net.onnx", cg.softmax(np.sin(x) @ np.ones((64, 10), "float32")), [x], ["y"])
    return str(tmp_path / "net.onnx")


def test_a_model_is_traced_on_invented_inputs(model, tmp_path, capsys):
    path = tmp_path / "trace.json"
    assert main(["trace", model, "-o", str(path), "--threads", "1", "--memory", "one_each", "--runs", "1"]) == 0
    events = json.loads(path.read_text())["traceEvents"]
    steps = [x for x in events if x["ph"] == "X" and x["name"] != "all steps" and x["pid"] == 1]
    assert events[0]["args"]["name"] == f"{model}, 1 threads: steps one by one"
    assert events[2]["args"]["strategy"] == "one_each"
    assert any(x["args"].get("name") == "thread 0" for x in events if x["pid"] == 2)
    assert steps and capsys.readouterr().out.startswith(f"{path}: {len(steps)} steps on 1 threads, ")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--runs", "0"], "--runs is 0. Give at least 1"), (["--memory", "none"], "no memory strategy 'none'")],
)
def test_what_cannot_be_traced_is_an_error_in_one_line(model, tmp_path, capsys, options, message):
    assert main(["trace", model, "-o", str(tmp_path / "trace.json"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "trace.json").exists()
