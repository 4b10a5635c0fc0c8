"""The table of ``cgraph plan --precisions``: bytes of each way to compute, and models that have none."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.model import CliModel
from cgraph.cli.precisions import precision_lines
from cgraph.errors import FormatError, GraphError
from cgraph.formats.onnx import save
from cgraph.view.report import report


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_precisions_have_arena_and_constants_and_their_sum(folder, capsys):
    x = cg.Var((1, 8, 16, 16), name="x")
    y = cg.relu(cg.conv2d(x, np.ones((16, 8, 3, 3), "f4"), pad=1))
    save("net.onnx", y, [x])
    assert main(["plan", "net.onnx", "--precisions"]) == 0
    rows = {line[:18].strip(): line[18:].split() for line in capsys.readouterr().out.splitlines()[1:]}
    facts = report(cg.formats.onnx.load("net.onnx").compile())
    assert facts.nbytes != facts.const_nbytes
    assert rows["float32"] == [str(n) for n in (facts.nbytes, facts.const_nbytes, facts.nbytes + facts.const_nbytes)]
    for words in rows.values():
        if all(word.isdigit() for word in words):
            assert int(words[2]) == int(words[0]) + int(words[1])


def product():
    x = cg.Var((64, 256), name="x")
    return x, cg.relu(x @ cg.Const(np.ones((256, 256), "float32")))


def test_each_way_has_a_row_in_columns():
    x, y = product()
    lines = precision_lines(CliModel((y,), (x,)), {}, "m")
    assert lines[0] == "                           arena     constants      together"
    assert [line[:18].rstrip() for line in lines[1:]] == ["float32", "bfloat16 weights", "bf16 products", "int8"]
    sizes = [[int(line[18 + 14 * i : 32 + 14 * i]) for i in range(3)] for line in lines[1:]]
    assert all(arena + constants == both for arena, constants, both in sizes)
    assert sizes[0][1] == 4 * 256 * 256 and sizes[1][1] == sizes[0][1] // 2 and sizes[3][1] < sizes[1][1]


def test_a_way_that_there_is_not_says_why_and_the_others_stay():
    x = cg.Var((4, 4), name="x")
    lines = precision_lines(CliModel((cg.exp(x),), (x,)), {}, "m")
    assert lines[-1].startswith("int8              ") and "there is no convolution of images" in lines[-1]
    assert lines[1].split()[0] == "float32" and len(lines) == 5


def test_values_of_inputs_may_be_given_and_are_checked():
    x, y = product()
    table = precision_lines(CliModel((y,), (x,)), {"x": np.ones((64, 256), "float32")}, "m")
    assert table == precision_lines(CliModel((y,)), {}, "m")


def test_a_compiled_function_or_a_state_is_refused():
    x, y = product()
    function = cg.compile(y, x)
    for model in (CliModel((y,), (x,), function=function), CliModel((y,), (x,), {cg.Var((64, 256)): y})):
        with pytest.raises(FormatError, match="^m is compiled already or keeps a state"):
            precision_lines(model, {}, "m")


class NoWeights(CliModel):
    """A model that can be compiled in float32 only; it notes the options."""

    asked: list = []  # noqa: RUF012 emptied by its test

    def compiled(self, **options):
        self.asked.append(options)
        if "weights_dtype" in options:
            raise GraphError("no such weights")
        return super().compiled()


def test_rows_stand_for_the_options_of_their_names_and_one_without_a_plan_ends_nothing():
    x, y = product()
    NoWeights.asked.clear()
    lines = precision_lines(NoWeights((y,), (x,)), {}, "m")
    assert NoWeights.asked == [{}, {"weights_dtype": "bfloat16"}, {"precision": "bf16"}]
    assert lines[2] == "bfloat16 weights  no such weights"
    assert lines[3].split()[:2] == ["bf16", "products"] and lines[3].split()[2:] == lines[1].split()[1:]


def test_the_quantiser_gets_the_values_that_were_passed_and_draws_the_others(monkeypatch):
    samples = []

    def noted(outputs, inputs, runs, **options):
        samples.extend(runs)
        raise GraphError("enough")

    monkeypatch.setattr("cgraph.cli.precisions.quantise", noted)
    x, y = (cg.Var((4, 4), name=name) for name in "xy")
    value = np.full((4, 4), 7, "f4")
    for constants in ({"x": value}, {"y": value}):
        precision_lines(CliModel((x @ y,), (x, y)), constants, "m")
    (x1, y1), (x2, y2) = samples
    assert (x1 == 7).all() and (y2 == 7).all() and (y1 != 7).all() and (x2 != 7).all()
