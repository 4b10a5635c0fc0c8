import argparse
import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, plan_file
from cgraph.cli.model import CliModel
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import BudgetError, FormatError
from cgraph.memory.problem import Plan
from cgraph.memory.strategies import STRATEGIES
from cgraph.planning.options import CompileOptions
from cgraph.precision.tiles import engines_of
from cgraph.view.figures import Alive, Figures
from tests.support.emulated import compute_on_tiles


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,first_op,last_op,size_bytes,name\n0,0,1,4096,conv\n1,1,2,4096,relu\n2,2,3,4096,pool\n")
    return path


def test_plan_lists_every_strategy(records, capsys):
    assert main(["plan", str(records)]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[4:]}
    assert rows.keys() == {"auto", *STRATEGIES}
    assert rows["auto"][:2] == ["8192", "1.0000"]
    assert rows["one_each"][:2] == ["12288", "1.5000"]


def test_one_strategy_alone(records, capsys):
    assert main(["plan", str(records), "--strategy", "one_each"]) == 0
    text = capsys.readouterr().out
    assert "one_each" in text
    assert "greedy_by_size" not in text


def test_a_budget_that_is_met_or_missed(records, capsys):
    assert main(["plan", str(records), "--budget", "8KiB"]) == 0
    assert main(["plan", str(records), "--budget", "8000"]) == 1
    assert "192 bytes are missing" in capsys.readouterr().err
    assert main(["plan", str(records), "--budget", "8192", "--strategy", "one_each"]) == 1
    assert "one_each needs 12 KiB" in capsys.readouterr().err


def test_a_model_is_changed_until_it_fits(capsys):
    assert main(["plan", "tests.cli.test_plan_file:layers", "--budget", "256KiB", "--strategy", "auto"]) == 0
    text = capsys.readouterr().out
    assert "within the budget" in text
    assert "in bands" in text


def test_a_plan_of_a_model_is_written_if_it_is_within_the_budget_and_the_curve_always(tmp_path, capsys):
    plan, curve = tmp_path / "plan.json", tmp_path / "curve.svg"
    model = ["plan", "tests.cli.test_plan_file:chain", "--strategy", "auto", "--save", str(plan), "-o", str(curve)]
    assert main([*model, "--budget", "63"]) == 1
    assert "the budget is 63 B" in capsys.readouterr().err and not plan.exists() and curve.exists()
    assert main([*model, "--budget", "64"]) == 0
    assert json.loads(plan.read_text())["nbytes"] == 64


def layers():
    x = y = cg.Var((1, 8, 64, 64), name="x")
    for _ in range(3):
        y = cg.relu(cg.conv2d(y, cg.Const(np.full((8, y.shape[1], 3, 3), 0.1, "float32")), pad=1))
    return cg.compile(cg.max_pool2d(y, 8), [x])


def test_patches_around_the_peak_as_in_the_paper(capsys):
    assert main(["plan", "benchmarks.restructuring:resnet18", "--paper"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0.4", "41.6", "11.9"] in rows
    assert ["3h,", "3w", "48.8", "25.7"] in rows


@pytest.mark.parametrize("on_tiles", [False, True])
def test_bytes_of_three_precisions_side_by_side(on_tiles, capsys, monkeypatch):
    if on_tiles:
        compute_on_tiles(monkeypatch)
    assert main(["plan", "tests.cli.test_plan_file:product", "--precisions"]) == 0
    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["arena", "constants", "together"]
    found = {" ".join(row[:-3]): list(map(int, row[-3:])) for row in rows}
    assert found.keys() == {"float32", "bfloat16 weights", "bf16 products", "int8"}
    assert all(arena + constants == both for arena, constants, both in found.values())
    weights = {name: constants for name, (_, constants, _) in found.items()}
    assert weights["bfloat16 weights"] == weights["float32"] / 2 == 2 * 256 * 256
    engine, _ = engines_of(CpuEngine(), (product(),), CompileOptions(precision="bf16"))
    rounded = "bfloat16 weights" if engine.kernel_target.multiplies_bfloat16 else "float32"
    assert weights["bf16 products"] == weights[rounded]
    assert weights["int8"] < 0.3 * weights["float32"]


def test_precisions_of_what_is_compiled_or_quantised_are_not_known(capsys):
    assert main(["plan", "tests.cli.test_plan_file:layers", "--precisions"]) == 2
    assert "compiled already" in capsys.readouterr().err
    assert main(["plan", "tests.cli.test_plan_file:chain", "--precisions"]) == 0
    assert "there is no convolution of images and no product" in capsys.readouterr().out


def product():
    x = cg.Var((64, 256), name="x")
    return cg.relu(x @ cg.Const(np.ones((256, 256), "float32")))


def test_a_model_without_images_has_no_patches(capsys):
    assert main(["plan", "nn.models.no_such:model", "--paper"]) == 2
    assert main(["plan", "tests.cli.test_plan_file:chain", "--paper"]) == 2
    assert "no images to be cut" in capsys.readouterr().err


def chain():
    return cg.exp(cg.Var((4, 4)))


def test_picture_and_plan_are_written(records, tmp_path, capsys):
    svg, plan = tmp_path / "plan.svg", tmp_path / "plan.json"
    assert main(["plan", str(records), "--svg", str(svg), "--save", str(plan)]) == 0
    assert xml.fromstring(svg.read_text()).tag.endswith("svg")
    assert json.loads(plan.read_text())["nbytes"] == 8192
    capsys.readouterr()
    assert main(["plan", str(records), "--json"]) == 0
    assert capsys.readouterr().out == plan.read_text()


def test_json_is_all_that_is_printed_whatever_the_budget(capsys):
    model = ["plan", "tests.cli.test_plan_file:layers", "--json", "--strategy", "auto"]
    assert main([*model, "--budget", "256KiB"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["strategy"] and "within the budget" in found.err


def test_an_error_is_one_line_and_status_two(tmp_path, capsys):
    assert main(["plan", str(tmp_path / "absent.csv")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cgraph: ")
    assert error.count("\n") == 1


def test_an_unknown_file_ending_names_the_known_ones(tmp_path, capsys):
    assert main(["plan", str(tmp_path / "model.xyz")]) == 2
    assert "is not a model: give a file (.onnx, .cfg, .tflite, .keras, .h5, .hdf5)" in capsys.readouterr().err


def test_traceback_shows_where_an_error_comes_from(tmp_path):
    with pytest.raises(FormatError):
        main(["--traceback", "plan", str(tmp_path / "absent.csv")])


@pytest.mark.parametrize(
    "arguments", [[], ["plan"], ["plan", "x.csv", "--budget", "much"], ["plan", "x.csv", "--strategy", "x"]]
)
def test_wrong_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_planning_file_is_searched_until_a_plan_fits_and_no_further(records, capsys, monkeypatch):
    asked = []
    watched = "cgraph.cli.plan_file.exact_with_progress"
    monkeypatch.setattr(watched, lambda problem, capacity: asked.append(capacity) or one(problem))
    assert main(["plan", str(records), "--budget", "8KiB"]) == 0
    assert not asked and "exact" not in capsys.readouterr().out
    assert main(["plan", str(records), "--budget", "8000"]) == 1
    assert main(["plan", str(records), "--budget", "12000", "--strategy", "exact"]) == 1
    assert asked[0] == 8000 and asked[-1] == 12000


def one(problem):
    return STRATEGIES["one_each"](problem)


def test_the_exact_search_says_that_no_plan_fits(records, capsys):
    assert main(["plan", str(records), "--budget", "8000", "--strategy", "exact"]) == 1
    assert "exact: no plan fits in 7.81 KiB (8000 bytes)" in capsys.readouterr().err


def test_the_json_of_a_model_has_its_schedule_its_vars_and_its_constants(tmp_path):
    path = tmp_path / "plan.json"
    assert main(["plan", "tests.cli.test_plan_file:layers", "--strategy", "auto", "--save", str(path)]) == 0
    plan = json.loads(path.read_text())
    numbers = [f"step {i}" for i in range(len(plan["steps"]))]
    numbers += [f"var {i}" for i in range(len(plan["vars"]))] + [f"constant {i}" for i in range(len(plan["constants"]))]
    assert [x["step"] for x in plan["steps"]] == [*range(len(plan["steps"]))] and plan["vars"]
    for x in plan["steps"]:
        operand = plan["operands"][x["operand"]]
        assert operand["first"] <= x["step"] <= operand["last"]
        earlier = numbers[: x["step"]] + numbers[len(plan["steps"]) :]
        assert x["reads"] and set(x["reads"]) <= set(earlier)
        assert x["line"].startswith("test_plan_file.py:") and x["op"] and x["value"]


LONG = "a strategy that is no function, in more than sixty letters in all"


def test_a_reference_that_is_no_function_is_refused_in_a_few_letters(capsys):
    assert main(["plan", "tests.cli.test_plan_file:chain", "--strategy", "tests.cli.test_plan_file:LONG"]) == 2
    assert capsys.readouterr().err == (
        f"cgraph: tests.cli.test_plan_file:LONG is {LONG!r:.60}, not a function of a Problem. Name a memory strategy\n"
    )


def difference():
    """Two Vars and two constants, in an order that matters, and a view."""
    x, y = cg.Var((2, 3), name="x"), cg.Var((3,), name="y")
    turned = cg.transpose(cg.cumsum(x - y, 0) - np.full((2, 3), 5, "f4"))
    return cg.compile(turned @ np.arange(8, dtype="f4").reshape(2, 4), [x, y], passes=False)


def test_the_steps_of_a_plan_read_their_operands_in_order_and_leaves_have_their_numbers(tmp_path):
    path = tmp_path / "plan.json"
    model = "tests.cli.test_plan_file:difference"
    assert main(["plan", model, "--strategy", "auto", "--save", str(path)]) == 0
    plan, layout = json.loads(path.read_text()), difference().compiled.layout
    assert [x["name"] for x in plan["vars"]] == ["x", "y"] and [x["nbytes"] for x in plan["vars"]] == [24, 12]
    assert [(x["value"], x["nbytes"]) for x in plan["constants"]] == [("float32[2,3]", 24), ("float32[2,4]", 32)]
    steps = [(x["op"], x["value"], x["reads"]) for x in plan["steps"]]
    assert steps == [
        ("subtract", "float32[2,3]", ["var 0", "var 1"]), ("cumsum", "float32[2,3]", ["step 0"]),
        ("subtract", "float32[2,3]", ["step 1", "constant 0"]), ("matmul", "float32[3,4]", ["step 2", "constant 1"]),
    ]  # fmt: skip
    assert [x["name"] for x in plan["steps"]] == [node.label for node in layout.steps]


def test_a_strategy_that_is_not_there_is_refused_with_all_that_are(monkeypatch):
    monkeypatch.setattr(plan_file, "entry_points_by_name", lambda: {"theirs": None, "others": None})
    for name in ("theirs", "auto", "one_each", "module:function"):
        assert plan_file.strategy_name(name) == name
    with pytest.raises(argparse.ArgumentTypeError) as error:
        plan_file.strategy_name("ours")
    names = ", ".join((*plan_file.CHOICES, "theirs", "others"))
    assert str(error.value) == f"there is no strategy 'ours'. Use one of {names}, or module:function"


def test_the_line_of_the_peak_has_each_number_at_its_words():
    alive = (Alive(3 << 10, "relu float32[768]", "net.py:7"), Alive(1 << 10, "x", ""))
    figures = Figures(
        (), 5, 4 << 10, alive, 6 << 10, 7 << 10, 1, 1, 9 << 10, 8 << 10, "depth_first", "auto", True, None
    )
    assert plan_file.peak_lines(figures) == [
        "order depth_first: 4 KiB are in use at step 5, 7 KiB would be without sharing; outside the arena 8 KiB of "
        "constants and 9 KiB of Vars",
        "       3 KiB  relu float32[768]  net.py:7",
        "       1 KiB  x",
    ]


def test_operands_without_bytes_have_a_plan_without_a_ratio(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("id,first_op,last_op,size_bytes\n0,0,1,0\n")
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", "one_each", "--budget", "0"]) == 0
    _, _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [row[-2:] for row in rows[:2]] == [["0", "-"]] * 2 and rows[2][:3] == ["one_each", "0", "-"]


@pytest.mark.parametrize("strategy", [[], ["--strategy", "one_each"]])
@pytest.mark.parametrize("words", [["--budget", "1MiB"], ["-o", "curve.svg"], ["--stream", "w", "--budget", "1MiB"]])
def test_the_strategy_is_that_of_the_curve_and_of_streamed_weights_too(words, strategy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    calls = []

    def noted(*args, **options):
        calls.append(options.get("memory") or args[-1])
        raise BudgetError("enough")

    monkeypatch.setattr(plan_file, "plans_of", lambda *args: {"a": (Plan((), 0), 0.0)})
    monkeypatch.setattr(plan_file, "curve_of", noted)
    if "--stream" in words:
        monkeypatch.setattr(CliModel, "compiled", noted)
    assert main(["plan", "tests.cli.test_plan_file:chain", *words, *strategy]) in (1, 2)
    assert calls == [plan_file.strategy_of(strategy[-1] if strategy else "auto")]
