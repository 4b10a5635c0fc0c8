"""cgraph quantise: samples from a folder, an ONNX file, a report; refusals in one line."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli import quantise as command
from cgraph.errors import GraphError
from cgraph.formats.onnx import load, save
from cgraph.quantiser import Choices
from tests.quantiser.nets import Net
from tests.support.tolerance import assert_near


@pytest.fixture
def model(tmp_path):
    net, x = Net(), cg.Var((1, 3, 8, 8), name="image")
    y = cg.softmax(net.linear(cg.mean(cg.relu(net.conv(x, 8)), (2, 3)), 4))
    save(tmp_path / "net.onnx", y, [x], ["scores"])
    (tmp_path / "samples").mkdir()
    np.save(tmp_path / "samples" / "a.npy", net.normal(5, 3, 8, 8))
    np.savez(tmp_path / "samples" / "b.npz", image=net.normal(2, 3, 8, 8))
    (tmp_path / "samples" / "notes.txt").write_text("nothing")
    return str(tmp_path / "net.onnx")


def test_a_model_is_quantised_by_a_folder(model, tmp_path, capsys):
    out, samples = str(tmp_path / "q.onnx"), str(tmp_path / "samples")
    np.save(tmp_path / "wanted.npy", np.zeros(7, "int64"))
    command = ["quantise", model, "--samples", samples, "-o", out, "--wanted", str(tmp_path / "wanted.npy")]
    assert main([*command, "--json", "--table", "--method", "entropy"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["layers"] == 2 and len(facts["table"]) == 2 and facts["likeness"]["agreement"] > 0.5
    model_, value = load(out), Net(3).normal(1, 3, 8, 8)
    assert model_.names == ("scores",)
    assert_near(model_.compile()(value)[0], load(model).compile()(value)[0], "int8 shares")
    assert main([*command, "--most", "7", "--as-they-are"]) == 0
    assert "2 layers quantised" in capsys.readouterr().out


def test_pictures_are_samples(model, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((20, 30, 3), "uint8") + 90).save(tmp_path / "grey.png")
    assert main(["quantise", model, "--samples", str(tmp_path / "grey.png"), "-o", str(tmp_path / "q.onnx")]) == 0
    assert "same answer for 100.0%" in capsys.readouterr().out


def test_what_cannot_be_quantised_is_said_in_one_line(model, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "other.npz", picture=np.zeros((1, 3, 8, 8), "float32"))
    (tmp_path / "bad.npy").write_bytes(b"no array")
    np.save(tmp_path / "image.npy", np.zeros((1, 3, 8, 8), "float32"))
    out, samples = str(tmp_path / "q.onnx"), str(tmp_path / "samples")
    for arguments, text in (
        (["--samples", str(tmp_path / "empty"), "-o", out], "holds no pictures"),
        (["--samples", str(tmp_path / "other.npz"), "-o", out], "no array for the input image"),
        (["--samples", str(tmp_path / "bad.npy"), "-o", out], "bad.npy"),
        (["--samples", samples, "-o", out, "--wanted", str(tmp_path / "bad.npy")], "bad.npy"),
        (
            ["--samples", samples, "-o", out, "--constant", f"image={tmp_path / 'image.npy'}"],
            "every input has its value",
        ),
        (["--samples", samples, "-o", str(tmp_path / "q.txt")], "written as .onnx"),
        (["--samples", samples, "-o", out, "--skip", "nobody"], "no layer 'nobody'"),
        (["--samples", samples, "-o", out, "--agreement", "7"], "agreement is 7.0. Pass a share"),
    ):
        assert main(["quantise", model, *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert text in line


CHOICES = {
    (): {},
    ("--method", "percentile"): {"method": "percentile"},
    ("--images", "int8"): {"images": "int8"},
    ("--symmetric",): {"symmetric": True},
    ("--as-they-are",): {"correct": False},
    ("--skip", "a", "--skip", "b"): {"skip": ("a", "b")},
    ("--agreement", "0.75"): {"agreement": 0.75},
    ("--table",): {"sensitivity": True},
}


@pytest.mark.parametrize("words", CHOICES)
def test_every_option_is_passed_on(model, words, tmp_path, monkeypatch):
    calls = []

    def noted(outputs, inputs, runs, labels, tell, **options):
        calls.append((inputs, runs, labels, options))
        raise GraphError("enough")

    monkeypatch.setattr(command, "quantise", noted)
    np.save(tmp_path / "wanted.npy", np.arange(3))
    main([
        "quantise", model, "--samples", str(tmp_path / "samples"), "-o", str(tmp_path / "q.onnx"), *words,
        "--most", "6", "--wanted", str(tmp_path / "wanted.npy"),
    ])  # fmt: skip
    (((x,), runs, labels, options),) = calls
    assert x.name == "image" and len(runs) == 6 and labels.tolist() == [0, 1, 2]
    assert options == Choices._defaults | CHOICES[words]


@pytest.mark.parametrize("name", ["q.ONNX", "q.Onnx"])
def test_the_result_may_be_named_in_any_letters(name, model, tmp_path):
    assert main(["quantise", model, "--samples", str(tmp_path / "samples"), "-o", str(tmp_path / name)]) == 0
    assert load(tmp_path / name).names == ("scores",)
