"""Every flag of every command reaches what it is about, with its value, and has its default where it is left out."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import arrays, bench, main, model, plan_file, run_model, show, trace, view, whole_parser
from cgraph.cli import save as save_command
from cgraph.cli.model import CliModel, ModelOptions
from cgraph.cli.pictures import Look
from cgraph.errors import GraphError
from cgraph.formats.onnx import save
from cgraph.planning.mixed_precision import Tolerance
from cgraph.record import replace

STOP = "that is enough"


class Calls(list):
    """Names and values that spies note."""

    def of(self, name: str) -> list[Any]:
        return [value for key, value in self if key == name]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a network of a picture and a factor, a picture, samples, labels and a planning file."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    x, factor = cg.Var((1, 3, 6, 6), name="x"), cg.Var((), name="factor")
    filters = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("f4")
    save("net.onnx", cg.mean(cg.relu(cg.conv2d(x, filters)), (2, 3)) * factor, [x, factor], ["scores"])
    image.fromarray(np.arange(10 * 6 * 3, dtype="u1").reshape(10, 6, 3)).save("p.png")
    Path("labels.txt").write_text("a\nb\nc\nd\n")
    np.savez("s.npz", x=np.ones((3, 3, 6, 6), "f4"), factor=np.ones(3, "f4"))
    Path("r.csv").write_text("id,first_op,last_op,size_bytes\n0,0,3,100\n1,1,2,300\n2,2,5,200\n")
    return tmp_path


def stop(*args: Any, **options: Any) -> Any:
    raise GraphError(STOP)


# -- arguments that name a model ---------------------------------------------------------------------------------------

OUT = {
    "run": ["-i", "p.png"], "save": ["-o", "out"], "export": ["-o", "out", "--target", "neon"],
    "quantise": ["-o", "q.onnx", "--samples", "p.png"], "plan": [], "view": ["-o", "out.html"], "show": [],
    "trace": ["-o", "t.json"], "bench": [],
}  # fmt: skip
DRAWN = ("plan", "view", "show", "trace", "bench")  # commands for which missing parameters are drawn
NAMES: dict[tuple[str, ...], dict[str, Any]] = {
    (): {},
    ("--shape", "N=2", "--shape", "x=1x3"): {"shapes": {"N": 2, "x": (1, 3)}},
    ("--constant", "a=2", "--constant", "b=[1]"): {"constants": {"a": 2, "b": [1]}},
    ("--maximum", "boxes=7", "--maximum", "n=9"): {"maximum": {"boxes": 7, "n": 9}},
    ("--state", "a=b", "--state", "c=d"): {"state": {"a": "b", "c": "d"}},
}


@pytest.mark.parametrize("words", [*NAMES, ("--weights", "w.bin")])
@pytest.mark.parametrize("command", OUT)
def test_arguments_about_the_model_reach_its_reader(command, words, folder, monkeypatch, calls, capsys):
    monkeypatch.setattr(model, "load_model", lambda *args: calls.append(("load", args)) or stop())
    name = "net.cfg" if "--weights" in words else "net.onnx"
    ours = [w for w in OUT[command] if command != "run"]  # a run would read shapes of inputs from the file
    assert main([command, name, *ours, *words]) == 2 and STOP in capsys.readouterr().err
    plain = ModelOptions(invent=command in DRAWN, floats=command != "export")
    want = replace(plain, **NAMES.get(words, {"weights": Path("w.bin")}))
    assert calls.of("load") == [(name, want)]


# -- pictures and samples ----------------------------------------------------------------------------------------------

PICTURES = {
    "run": ["-i", "p.png"],
    "save": ["-o", "out", "--precision", "0.5", "--samples", "p.png"],
    "quantise": ["-o", "q.onnx", "--samples", "p.png"],
    "bench": ["--precision", "0.5", "--samples", "p.png"],
}
LOOKS = {
    (): {},
    ("--pixels", "signed"): {"pixels": "signed"},
    ("--bgr",): {"bgr": True},
    ("--fit", "crop"): {"fit": "crop"},
}


@pytest.mark.parametrize("words", LOOKS)
@pytest.mark.parametrize("command", PICTURES)
def test_options_of_pictures_reach_the_picture(command, words, folder, monkeypatch, calls, capsys):
    monkeypatch.setattr(
        arrays, "read_picture", lambda path, x, look: calls.append(("look", (path, x.name, look))) or stop()
    )
    assert main([command, "net.onnx", *PICTURES[command], "--constant", "factor=2", *words]) == 2
    assert STOP in capsys.readouterr().err
    assert calls.of("look") == [(Path("p.png"), "x", Look(**LOOKS[words]))]


# -- options of compile ------------------------------------------------------------------------------------------------

COMPILED = {
    "run": {"memory": "auto", "threads": 0, "budget": None},
    "save": {"memory": "auto", "budget": None},
    "view": {},
    "trace": {"memory": "auto", "threads": 0},
    "bench": {"memory": "auto", "threads": 0},
}
PLANS: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = {
    (): ("run save view trace bench", {}),
    ("--memory", "one_each"): ("run save view trace bench", {"memory": "one_each"}),
    ("--budget", "2KiB"): ("run save view", {"budget": 2048}),
    ("--budget", "0"): ("run save view", {"budget": 0}),
    ("--threads", "3"): ("run trace bench", {"threads": 3}),
    ("--weights-dtype", "float16"): ("run save bench", {"weights_dtype": "float16"}),
    ("--precision", "bf16"): ("run save bench", {"precision": "bf16"}),
}
ROWS = [(command, words) for words, (commands, _) in PLANS.items() for command in commands.split()]


@pytest.mark.parametrize(("command", "words"), ROWS)
def test_options_about_the_plan_reach_compile(command, words, folder, monkeypatch, calls, capsys):
    """A comparison with rounded layers compiles twice: without these options, and with them."""
    real = CliModel.compiled

    def compiled(self: CliModel, **options: Any) -> Any:
        calls.append(("compiled", options))
        is_first_of_two = (
            command == "bench" and words[:1] in (("--weights-dtype",), ("--precision",)) and len(calls) == 1
        )
        return real(self) if is_first_of_two else stop()

    monkeypatch.setattr(CliModel, "compiled", compiled)
    assert main([command, "net.onnx", *OUT[command], "--constant", "factor=2", *words]) == 2
    assert STOP in capsys.readouterr().err
    found = calls.of("compiled")
    engine = found[-1].pop("engine", None)
    assert (engine is not None) == (command == "save") and (engine is None or engine.tiles is False)
    assert found[-1] == COMPILED[command] | PLANS[words][1]
    assert found[:-1] in ([], [COMPILED[command]])


@pytest.mark.parametrize(("command", "samples", "count"), [
    ("run", [], 1), ("run", ["--samples", "s.npz"], 3), ("bench", [], 1), ("bench", ["--samples", "s.npz"], 3),
    ("save", ["--samples", "s.npz"], 3),
])  # fmt: skip
def test_a_tolerance_is_measured_with_samples_or_the_own_input(command, samples, count, folder, monkeypatch, calls):
    real = CliModel.compiled
    monkeypatch.setattr(
        CliModel,
        "compiled",
        lambda self, **options: calls.append(options) or (stop() if "precision" in options else real(self)),
    )
    main([command, "net.onnx", *OUT[command], "--constant", "factor=2", "--precision", "0.25", *samples])
    tolerance = calls[-1]["precision"]
    assert isinstance(tolerance, Tolerance) and tolerance.error == 0.25 and len(tolerance.samples) == count


# -- counts, files and texts -------------------------------------------------------------------------------------------


def test_a_run_has_its_times_labels_top_and_file(folder, monkeypatch, calls):
    monkeypatch.setattr(run_model, "facts_of", lambda *args: calls.append(args) or {"seconds": {}, "outputs": []})
    monkeypatch.setattr(run_model, "lines_of", lambda facts: ["text"])
    words = ["run", "net.onnx", "-i", "p.png", "--constant", "factor=2"]
    assert main(words) == main([*words, "--labels", "labels.txt", "--top", "2", "--save", "o.npz"]) == 0
    assert [(x[3], x[4]) for x in calls] == [([], 5), (["a", "b", "c", "d"], 2)]
    np.testing.assert_array_equal(np.load("o.npz")["scores"], calls[1][2]["scores"])


@pytest.mark.parametrize(("words", "count"), [((), 20), (("--runs", "4"), 4), (("--runs", "1"), 1)])
def test_a_comparison_has_as_many_runs_and_threads_as_it_was_told(words, count, folder, monkeypatch, calls, capsys):
    monkeypatch.setattr(
        bench, "alternate_runs", lambda runs, n: calls.append((sorted(runs), n)) or {k: [1.0] for k in runs}
    )
    monkeypatch.setitem(
        bench.PEERS, "onnxruntime", lambda path, values, threads: calls.append((path, sorted(values), threads)) or {}
    )
    assert main(["bench", "net.onnx", "--threads", "2", *words]) == 0
    assert calls == [(["cgraph"], count)]
    assert "2 threads" in capsys.readouterr().out
    monkeypatch.setattr(bench, "cores", lambda: 7)
    peers = ["bench", "net.onnx", "--against", "onnxruntime"]
    for threads, want in (([], 7), (["--threads", "2"], 2)):
        with pytest.raises(KeyError):  # the peer of this test has no figures
            main([*peers, *threads])
        assert ("net.onnx", ["factor", "x"], want) in calls


@pytest.mark.parametrize(("words", "count"), [((), 3), (("--runs", "5"), 5)])
def test_a_trace_has_as_many_runs_as_it_was_told(words, count, folder, monkeypatch, calls):
    monkeypatch.setattr(trace, "timed_report", lambda function, *values, repeats: calls.append(("report", repeats)))
    monkeypatch.setattr(
        trace, "record_run", lambda function, values, named, runs: calls.append(("record", runs)) or stop()
    )
    assert main(["trace", "net.onnx", "-o", "t.json", *words]) == 2
    assert calls == [("report", count), ("record", count)]
    assert main(["trace", "net.onnx", "-o", "t.json", "--runs", "0"]) == 2


@pytest.mark.parametrize(
    "words", [(), ("--graph",), ("--target", "portable"), ("--target", "portable", "--target", "host")]
)
def test_a_saved_function_has_its_targets_and_its_graph(words, folder, monkeypatch, calls):
    saved = SimpleNamespace(precision=None, save=lambda path, **options: (path.mkdir(), calls.append(options)))
    monkeypatch.setattr(CliModel, "compiled", lambda self, engine, **options: calls.append(engine) or saved)
    named = [w for w in words if w in save_command.TARGETS] or ["host"]
    assert main(["save", "net.onnx", "-o", "out", *words]) == 0
    *engines, options = calls
    assert [x.target for x in engines] == [save_command.CpuEngine(name).target for name in named]
    assert options["also"] == [saved] * (len(named) - 1) and options["names"] == ("scores",)
    assert (options["graph"] is not None) == ("--graph" in words)


@pytest.mark.parametrize(("words", "passes"), [((), None), (("--after", "all"), "all"), (("--trace",), "trace")])
def test_a_text_is_of_the_pass_that_was_named(words, passes, folder, monkeypatch, calls):
    monkeypatch.setattr(show, "text", lambda outputs, passes=None: calls.append((type(outputs), passes)) or "text")
    assert main(["show", "net.onnx", *words]) == main(["show", "net.onnx", "--compiled"]) == 0
    assert calls == [(tuple, passes), (cg.Function, None)]


@pytest.mark.parametrize("words", [(), ("--times",)])
def test_a_page_has_the_times_that_were_asked_for(words, folder, monkeypatch, calls):
    monkeypatch.setattr(
        view, "page_html", lambda function, title, figures=None: calls.append((title, figures)) or "page"
    )
    monkeypatch.setitem(view.PICTURES, (".html", view.MEMORY), view.page_html)
    monkeypatch.setattr(view, "timed_report", lambda function, *values: "figures")
    assert main(["view", "net.onnx", "-o", "p.html", *words]) == 0
    assert calls == [("net.onnx", "figures" if words else None)] and Path("p.html").read_text() == "page"


@pytest.mark.parametrize("name", ["net.onnx", "r.csv"])
def test_a_plan_is_of_the_strategy_and_in_the_files_that_were_named(name, folder, monkeypatch, calls, capsys):
    real = plan_file.plans_of
    monkeypatch.setattr(
        plan_file,
        "plans_of",
        lambda problem, names, budget: calls.append((names, budget)) or real(problem, names, budget),
    )
    assert main(["plan", name, "--strategy", "one_each", "--svg", "m.svg", "--save", "m.json"]) == 0
    assert "one_each" in capsys.readouterr().out and calls == [(["one_each"], None)]
    assert "<svg" in Path("m.svg").read_text() and '"one_each"' in Path("m.json").read_text()
    assert main(["plan", name, "--strategy", "one_each", "--json"]) == 0
    printed, written = (json.loads(x) for x in (capsys.readouterr().out, Path("m.json").read_text()))
    assert printed["operands"] == written["operands"] and printed["nbytes"] == written["nbytes"]
    assert main(["plan", name, "--strategy", "one_each", "--budget", "1MiB"]) == 0
    assert calls[-1] == (["one_each"], None if name == "net.onnx" else 1 << 20)


# -- no flag is left out -----------------------------------------------------------------------------------------------

ELSEWHERE = {
    "tests/cli/test_export.py": "export --target --output --name --form --memory --reset --sizes --budget",
    "tests/cli/test_quantise.py": """quantise --samples --output --most --method --images --symmetric --as-they-are
        --skip --agreement --table --wanted --json""",
    "tests/cli/test_info.py": "info --json",
    "tests/cli/test_numbers.py": "run --times --json --stream",
    "tests/cli/test_stream.py": "plan --stream",
    "tests/cli/test_plan_file.py": "plan --paper --precisions --output",
    "tests/cli/test_bench.py": "bench --json",
    "tests/cli/test_save.py": "run --trust",
    "tests/cli/test_view.py": "view --graph --as-written",
    "tests/formats/tflite": "export --floats",
}
"""Flags that tests of other files pass."""
HERE = """
run --input --labels --top --save --samples|save --output --target --graph --samples|bench --against --runs --samples
trace --output --runs|show --after --trace --compiled|view --output --times|plan --strategy --svg --save --json --budget
"""


def test_no_flag_is_left_out():
    passed = {
        (command, flag) for command in OUT for flag in ("--shape", "--constant", "--maximum", "--state", "--weights")
    }
    passed |= {(command, words[0]) for command in PICTURES for words in LOOKS if words}
    passed |= {(command, words[0]) for command, words in ROWS if words}
    for row in (*ELSEWHERE.values(), *HERE.replace("\n", "|").split("|")):
        command, *flags = row.split() or [""]
        passed |= {(command, flag) for flag in flags}
    parsers = whole_parser()._subparsers._group_actions[0].choices
    flags = {(name, x.option_strings[-1]) for name, p in parsers.items() for x in p._actions if x.option_strings}
    assert flags - {(name, "--help") for name in parsers} == passed


# -- values of inputs --------------------------------------------------------------------------------------------------


def noted_report(calls: Calls):
    return lambda function, *values, **options: calls.append(("values", values)) or stop()


RUNS = {
    "trace": (trace, ["-o", "t.json"]),
    "view": (view, ["-o", "p.html", "--times"]),
    "plan": (plan_file, ["--stream", "w"]),
}


@pytest.mark.parametrize("words", [(), ("--constant", "factor=2")])
@pytest.mark.parametrize("command", RUNS)
def test_what_is_timed_runs_on_drawn_inputs_and_on_the_values_of_the_call(command, words, folder, monkeypatch, calls):
    """In the order of the model's inputs; `bench` is tested beside another engine."""
    module, more = RUNS[command]
    monkeypatch.setattr(module, "timed_report", noted_report(calls))
    assert main([command, "net.onnx", *more, *words]) == 2
    ((x, factor),) = calls.of("values")
    drawn = bench.random_inputs(model.load_model("net.onnx"))
    np.testing.assert_array_equal(x, drawn["x"])
    assert factor == (2 if words else drawn["factor"]) and drawn["factor"] != 2
