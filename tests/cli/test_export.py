"""cgraph export: the list of targets, and options that reach `export` and `export_sizes`."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import export as command
from cgraph.cli import main
from cgraph.cli.model import CliModel
from cgraph.formats.onnx import save
from cgraph.kernels.machines import machines


@pytest.mark.parametrize("arguments", [["--target", "list"], ["model.onnx", "--target", "list", "-o", "folder"]])
def test_the_list_of_targets_has_a_line_for_each(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["export", *arguments])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0 and len(lines) == len(machines())
    for line, (name, row) in zip(lines, machines().items()):
        assert line.split()[:4] == [name, row.generation.triple, str(row.target.lanes), "lanes" + "," * row.target.fma]
        assert line.endswith(", fused multiply-add") == row.target.fma
    assert {row.target.fma for row in machines().values()} == {True, False}


@pytest.fixture
def model(tmp_path):
    """A file of two inputs and two outputs, whose batch is open."""
    onnx = pytest.importorskip("onnx")
    x, y = cg.Var((2, 3), name="x"), cg.Var((2, 3), name="y")
    save(tmp_path / "m.onnx", [x + y, x * np.float32(3)], [x, y], ["sum", "triple"])
    proto = onnx.load(tmp_path / "m.onnx")
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del proto.graph.value_info[:]
    onnx.save(proto, tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


@pytest.fixture
def calls(monkeypatch):
    """The arguments of each call of `export` and `export_sizes`, which write nothing."""
    calls = []

    def noted(function):
        return lambda *args, **named: calls.append((function, args, named)) or function

    for function in ("export", "export_sizes"):
        monkeypatch.setattr(command, function, noted(function))
    return calls


PLAIN = {"target": "neon", "name": None, "form": "whole", "memory": "static", "reset": False, "budget": None}
OPTIONS = {
    ("--name", "net"): {"name": "net"},
    ("--form", "small"): {"form": "small"},
    ("--memory", "caller"): {"memory": "caller"},
    ("--reset",): {"reset": True},
    ("--budget", "2KiB"): {"budget": 2048},
    ("--target", "cortex-m7"): {"target": "cortex-m7"},
}


@pytest.mark.parametrize("words", [(), *OPTIONS])
@pytest.mark.parametrize("sizes", [False, True])
def test_every_option_is_passed_on(model, calls, capsys, words, sizes, tmp_path):
    shape = ["--sizes", "batch=4", "--sizes", "batch=1"] if sizes else ["--shape", "batch=4"]
    assert main(["export", model, "--target", "neon", "-o", str(tmp_path / "out"), *shape, *words]) == 0
    ((name, args, named),) = calls
    assert capsys.readouterr().out == f"{name}\n" and name == ("export_sizes" if sizes else "export")
    names = named.pop("names")
    assert list(names) == ["sum", "triple"]
    if sizes:
        build, given, folder = args
        assert given == [{"batch": 4}, {"batch": 1}]
        graphs = [build(x) for x in given]
    else:
        outputs, inputs, folder = args
        graphs = [(outputs, inputs, named.pop("updates"))]
    assert folder == tmp_path / "out" and named == PLAIN | OPTIONS.get(words, {})
    for (outputs, inputs, updates), batch in zip(graphs, (4, 1)):
        assert [x.name for x in inputs] == ["x", "y"] and [y.shape for y in outputs] == [(batch, 3)] * 2
        assert not updates


@pytest.mark.parametrize("words", [(), ("--floats",)])
def test_each_of_several_sizes_is_read_beside_the_other_arguments_of_the_model(calls, words, monkeypatch, tmp_path):
    reads = []
    x = cg.Var((2, 3), name="x")
    model = CliModel((cg.exp(x),), (x,), {x: x + 1}, names=("y",))

    def read(args, **options):
        reads.append((args.shape, args.constant, options))
        return model

    monkeypatch.setattr(command, "model_from", read)
    sizes = ["--sizes", "batch=4,rows=7", "--sizes", "batch=1"]
    given = ["--shape", "width=5", "--constant", "a=2", *sizes, *words]
    assert main(["export", "m.onnx", "--target", "neon", "-o", str(tmp_path / "out"), *given]) == 0
    ((_, (build, found, _), named),) = calls
    assert found == [{"batch": 4, "rows": 7}, {"batch": 1}] and named["names"] == ("y",)
    assert [build(one) for one in found] == [(model.outputs, model.inputs, model.updates)] * 2
    shapes = [[("width", 5), ("batch", 4), ("rows", 7)], [("width", 5), ("batch", 1)]]
    options = {"invent": False, "floats": bool(words)}
    assert reads == [(shape, [("a", 2)], options) for shape in (shapes[0], *shapes)]
