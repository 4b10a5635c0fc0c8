"""``--stream``: weights in a file that is written under a bar, and what a run waits for."""

import json
import re
import sys

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.stream import report_written
from cgraph.formats.onnx import save
from tests.function.test_streamed_weights import chain


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Convolutions with filters of 144 KiB each, and what they make of a picture."""
    folder = tmp_path_factory.mktemp("model")
    x, y, value = chain(4)
    save(folder / "net.onnx", y, [x], ["features"])
    np.save(folder / "x.npy", value)
    return folder, cg.compile(y, x, winograd=False)(value)


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_run_reads_its_weights_from_the_file_that_it_writes(model, tmp_path, capsys, monkeypatch, has_rich):
    folder, want = model
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    arguments = ["run", str(folder / "net.onnx"), "-i", str(folder / "x.npy"), "--save", str(tmp_path / "y.npz")]
    arguments += ["--stream", str(tmp_path / "w"), "--budget", "1MiB"]
    for is_there in (False, True):
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert re.search(r"576 KiB read through a ring of .* KiB", out)
        assert ("written" in err) == (not has_rich and not is_there)
        with np.load(tmp_path / "y.npz") as found:
            np.testing.assert_array_equal(found["features"], want)
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["streamed_nbytes"] == 576 << 10 and facts["plan_nbytes"] + facts["ring_nbytes"] <= 1 << 20


def test_a_plan_says_how_a_budget_is_shared_out_and_what_a_run_waits_for(model, tmp_path, capsys):
    arguments = ["plan", str(model[0] / "net.onnx"), "--stream", str(tmp_path / "w")]
    assert main([*arguments, "--budget", "1MiB"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert int(re.search(r"\((\d+) bytes\) in all", lines[0])[1]) <= 1 << 20
    assert "weights   576 KiB in " in lines[1] and "waiting; predicted" in lines[3]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"]["measured"] > 0
    assert main([*arguments, "--budget", "1KiB"]) == 1
    assert "the least budget of this graph is" in capsys.readouterr().err


def test_what_has_no_weights_to_stream_says_so(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("id,first_op,last_op,size_bytes\n0,0,1,4096\n")
    assert main(["plan", str(tmp_path / "r.csv"), "--stream", str(tmp_path / "w")]) == 2
    assert "only a model has weights" in capsys.readouterr().err
    x = cg.Var((4,), name="x")
    save(tmp_path / "net.onnx", cg.sin(x), [x], ["y"])
    assert main(["plan", str(tmp_path / "net.onnx"), "--stream", str(tmp_path / "w")]) == 0
    assert "no constant of" in capsys.readouterr().out
    assert not (tmp_path / "w").exists()


def test_without_rich_one_line_says_that_all_bytes_are_written(tmp_path, capsys):
    for done in (0, 1 << 19, (1 << 20) - 1, 1 << 20):
        report_written(tmp_path / "w", done, 1 << 20)
    assert capsys.readouterr() == ("", f"{tmp_path / 'w'}: 1 MiB written\n")
