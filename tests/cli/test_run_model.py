"""run, plan and bench on models: results, inputs of every kind, exit codes, errors in one line."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, run_model
from cgraph.cli.model import CliModel
from cgraph.cli.run_model import output_facts, read_labels
from cgraph.formats.onnx import save
from tests.support.tolerance import assert_near, near

RNG = np.random.default_rng(0)
FILTERS = RNG.standard_normal((4, 3, 3, 3)).astype("float32")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A model of a picture that gives four scores."""
    x = cg.Var((1, 3, 8, 8), name="image")
    scores = cg.softmax(cg.mean(cg.relu(cg.conv2d(x, FILTERS, 1, 1)), axis=(2, 3)))
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    save(path, scores, [x], ["scores"])
    return path


def expected(pixels):
    x = cg.Var((1, 3, 8, 8))
    scores = cg.softmax(cg.mean(cg.relu(cg.conv2d(x, FILTERS, 1, 1)), axis=(2, 3)))
    return cg.compile(scores, [x], engine="reference")(pixels)


@pytest.fixture
def pixels(tmp_path):
    values = RNG.random((1, 3, 8, 8), np.float32)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", image=values)
    return values


@pytest.mark.parametrize("given", ["x.npy", "x.npz", "image=x.npy"])
def test_outputs_are_kept_and_shown(classifier, pixels, tmp_path, monkeypatch, capsys, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("ant\nbee\ncat\ndog\n")
    assert main(["run", str(classifier), "-i", given, "--labels", "names.txt", "--top", "2", "--save", "y.npz"]) == 0
    want = expected(pixels)
    with np.load("y.npz") as found:
        assert_near(found["scores"], want, "float32 long sums")
    lines = capsys.readouterr().out.splitlines()
    best = int(want.argmax())
    assert lines[2].split() == [f"{want[0, best]:.6f}", str(best), ("ant", "bee", "cat", "dog")[best]]
    assert len(lines) == 4


def test_a_picture_is_brought_to_the_models_size(classifier, tmp_path, capsys):
    image_module = pytest.importorskip("PIL.Image")
    picture = np.full((20, 30, 3), (255, 0, 51), "uint8")
    image_module.fromarray(picture).save(tmp_path / "red.png")
    for options, colour in (([], (1, 0, 0.2)), (["--bgr"], (0.2, 0, 1)), (["--pixels", "signed"], (1, -1, -0.6))):
        assert main(["run", str(classifier), "-i", str(tmp_path / "red.png"), "--json", *options]) == 0
        facts = json.loads(capsys.readouterr().out)
        values = np.broadcast_to(np.array(colour, "float32")[None, :, None, None], (1, 3, 8, 8))
        want = expected(np.ascontiguousarray(values))
        assert facts["outputs"][0]["most"] == near(float(want.max()), "float32 long sums")
        assert facts["plan_nbytes"] >= facts["lower_bound_nbytes"] > 0


def test_sizes_that_the_file_leaves_open(tmp_path, capsys):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 2))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    np.save(tmp_path / "x.npy", np.zeros((3, 2), "float32"))
    assert main(["run", str(path), "-i", str(tmp_path / "x.npy"), "--shape", "N=3"]) == 0
    for given in ("x.npy", f"x={tmp_path / 'x.npy'}", str(tmp_path / "all.npz")):
        np.savez(tmp_path / "all.npz", x=np.zeros((3, 2), "float32"))
        capsys.readouterr()
        assert main(["run", str(path), "-i", str(tmp_path / given) if given == "x.npy" else given]) == 0
        assert "y float32[3, 2]" in capsys.readouterr().out
    assert main(["plan", str(path)]) == 2
    assert "give --shape N=1" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", np.zeros((3, 4), "float32"))
    assert main(["run", str(path), "-i", str(tmp_path / "x.npy")]) == 2
    assert "float32[3,2]" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", str(path), "--shape", "N"])


ERRORS = {
    "no such file": ["run", "nothing.onnx", "-i", "x.npy"],
    "no model": ["run", "x.npy", "-i", "x.npy"],
    "no input": ["run", "MODEL"],
    "an input too many": ["run", "MODEL", "-i", "x.npy", "-i", "x.npy"],
    "an input twice": ["run", "MODEL", "-i", "image=x.npy", "-i", "image=x.npy"],
    "an unknown input": ["run", "MODEL", "-i", "other.npz"],
    "an array of another shape": ["run", "MODEL", "-i", "small.npy"],
    "no array": ["run", "MODEL", "-i", "broken.npy"],
    "an object": ["run", "MODEL", "-i", "object.npy"],
    "a broken picture": ["run", "MODEL", "-i", "broken.jpg"],
    "an unknown strategy": ["run", "MODEL", "-i", "x.npy", "--memory", "magic"],
    "a network without weights": ["run", "net.cfg", "-i", "x.npy"],
    "a size that the file does not have": ["run", "MODEL", "-i", "x.npy", "--shape", "N=3"],
    "a value of no input": ["run", "MODEL", "-i", "x.npy", "--constant", "n=3"],
    "a value of another shape": ["run", "MODEL", "--constant", "image=3"],
    "a size of a model that has all": ["plan", "tests.cli.test_plan_file:chain", "--shape", "N=3"],
    "weights of a model that has its own": ["plan", "MODEL", "--weights", "x.npy"],
    "no runs": ["bench", "MODEL", "--runs", "0"],
    "a peer that reads other files": ["bench", "net.cfg", "--against", "onnxruntime"],
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_and_status_2(classifier, pixels, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    np.savez("other.npz", unknown=pixels)
    np.save("small.npy", pixels[..., 1:])
    np.save("object.npy", np.array([{}], object), allow_pickle=True)
    for file in ("broken.npy", "broken.jpg"):
        (tmp_path / file).write_bytes(b"nonsense")
    (tmp_path / "net.cfg").write_text("[net]\ninputs=4\n[connected]\noutput=2\n")
    args = [str(classifier) if arg == "MODEL" else arg for arg in ERRORS[name]]
    assert main(args) == 2
    found = capsys.readouterr()
    assert found.out == "" and found.err.startswith("cgraph: ") and found.err.count("\n") == 1


def test_traceback_shows_where_an_error_comes_from(classifier):
    with pytest.raises(cg.FormatError, match="no value for image .*Add --input NAME=FILE"):
        main(["--traceback", "run", str(classifier)])


def test_plan_of_a_model_names_what_is_alive_at_the_peak(classifier, capsys):
    assert main(["plan", str(classifier)]) == 0
    text = capsys.readouterr().out
    assert "lower bound" in text and "exact" in text and "are in use at step" in text
    assert main(["plan", str(classifier), "--budget", "1"]) == 1


def test_plan_of_a_darknet_network_needs_no_weights(tmp_path, capsys):
    (tmp_path / "net.cfg").write_text("[net]\ninputs=4\n[connected]\noutput=2\n")
    assert main(["plan", str(tmp_path / "net.cfg")]) == 0
    assert "lower bound" in capsys.readouterr().out


def test_bench_times_both_engines_and_compares_their_outputs(classifier, capsys):
    pytest.importorskip("onnxruntime")
    assert main(["bench", str(classifier), "--against", "onnxruntime", "--runs", "2", "--json", "--threads", "1"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["seconds"].keys() == {"cgraph", "onnxruntime"} and facts["threads"] == 1
    assert facts["seconds"]["cgraph"]["runs"] == 2
    assert facts["largest_difference"] < 1e-4
    assert facts["speed_ratio"] > 0


def test_bench_alone_prints_the_times(classifier, capsys):
    assert main(["bench", str(classifier), "--runs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "median" in lines[1]


@pytest.mark.slow
def test_warmup_compiles_what_models_need(classifier, capsys):
    assert main(["warmup", str(classifier)]) == 0
    assert "1 graphs" in capsys.readouterr().out
    assert main(["warmup"]) == 0
    assert main(["warmup"]) == 0
    assert " 0 kernels compiled" in capsys.readouterr().out.splitlines()[-1]


def nodes():
    """Two Vars that a run is to be given, made in this order, and one that holds a value."""
    late, early = cg.Var((3,), name="late"), cg.Var((3,), name="early")
    return [early - late * cg.Var((3,), name="w").assign([1, 2, 3])]


def test_vars_without_a_value_are_the_inputs_of_nodes(tmp_path, capsys):
    model = "tests.cli.test_run_model:nodes"
    np.save(tmp_path / "one.npy", np.ones(3, "f4"))
    np.save(tmp_path / "two.npy", np.full(3, 2, "f4"))
    given = [f"-i{tmp_path / name}.npy" for name in ("one", "two")]
    assert main(["run", model, *given, "--save", str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as found:
        np.testing.assert_array_equal(*found.values(), [1, 0, -1])
    assert main(["bench", model]) == 0
    assert main(["view", model, "-o", str(tmp_path / "page.html"), "--times"]) == 0
    capsys.readouterr()
    assert main(["run", model]) == 2 and "late" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("a.txt", "ant\nbee hive\n\ncat", ["ant", "bee hive", "", "cat"]),
        ("a.txt", '["ant"]', ['["ant"]']),
        ("a.json", '["ant", 7, "bee\\u00e9"]', ["ant", "7", "beeé"]),
        ("a.json", "[]", []),
        ("A.JSON", '["ant", "bee"]', ["ant", "bee"]),
        ("a.txt", "", []),
    ],
)
def test_labels_are_lines_or_a_list_of_json(name, text, labels, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_labels(tmp_path / name) == labels


@pytest.mark.parametrize(("text", "said"), [
    ('{"ant": 1}', "does not hold a list of names. Write one name per line"), ('"ant"', "does not hold a list"),
    ("[", ": Expecting value"), ("[" * 100_000, ": "),
])  # fmt: skip
def test_what_holds_no_list_of_labels_is_named(text, said, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(cg.FormatError) as error:
        read_labels(tmp_path / "a.json")
    assert str(error.value).startswith(str(tmp_path / "a.json")) and said in str(error.value)
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(cg.FormatError, match="a.txt: "):
        read_labels(tmp_path / "a.txt")


RANGES = [
    (np.array([[3, 200]], "u1"), (3, 200, 101.5)),
    (np.array([True, False]), (False, True, 0.5)),
    (np.array(-2.5), (-2.5, -2.5, -2.5)),
    (np.array([2**24, 1], "f4"), (1.0, 2.0**24, (2**24 + 1) / 2)),
    (np.zeros((0, 3), "f4"), None),
    (np.array([1j, 2]), None),
]


@pytest.mark.parametrize(("x", "want"), RANGES, ids=[f"{x.dtype}{x.shape}" for x, _ in RANGES])
def test_numbers_that_have_an_order_have_a_range(x, want):
    facts = output_facts("y", x, [], 0)
    assert (facts["name"], facts["dtype"], facts["shape"]) == ("y", str(x.dtype), list(x.shape))
    assert [facts.get(key) for key in ("least", "most", "mean")] == list(want or [None] * 3) and "top" not in facts


@pytest.mark.parametrize(
    ("x", "top", "classes"),
    [
        (np.array([[3, 200, 7]], "u1"), 2, [1, 2]),
        (np.array([0.5, 0.5, 0.1, 0.5]), 3, [0, 1, 3]),
        (np.array([[[1.0]], [[2.0]]]), 5, [1, 0]),
        (np.array([-1, -3, -2]), 5, [0, 2, 1]),
        (np.ones((2, 2)), 5, None),
        (np.ones((1, 1)), 5, None),
        (np.array(1.0), 5, None),
        (np.array([1.0, 2.0]), 0, None),
        (np.ones((2, 0)), 5, None),
    ],
    ids=str,
)
def test_the_best_classes_are_those_of_one_row_of_scores_and_equal_ones_keep_their_order(x, top, classes):
    facts = output_facts("y", x, ["a", "b"], top)
    found = facts.get("top")
    assert (found and [one["class"] for one in found]) == classes
    for one in found or []:
        assert one["value"] == x.ravel()[one["class"]] and one["label"] == ["a", "b", "", ""][one["class"]]


def two():
    x = cg.Var((2,), name="x")
    return [x + 1, x * 3]


def by_name():
    x = cg.Var((2,), name="x")
    return {"next": x + 1, "thrice": x * 3}


def compiled_by_name():
    x = cg.Var((2,), name="x")
    return cg.compile({"next": x + 1, "thrice": x * 3}, x)


@pytest.mark.parametrize("options", [[], ["--budget", "1MiB"], ["--precision", "bf16"]], ids=" ".join)
@pytest.mark.parametrize("function", ["by_name", "compiled_by_name"])
def test_outputs_by_name_are_shown_and_kept_by_name(function, options, tmp_path, capsys):
    """Also those of a saved function."""
    reference, folder = f"tests.cli.test_run_model:{function}", tmp_path / "saved"
    np.save(tmp_path / "x.npy", np.array([1, 2], "f4"))
    assert main(["save", reference, "-o", str(folder)]) == 0
    for model in ([reference, *options], [str(folder)]):
        words = ["run", *model, "-i", str(tmp_path / "x.npy"), "--save", str(tmp_path / "y.npz"), "--top", "0"]
        capsys.readouterr()
        assert main(words) == 0
        assert "next float32[2] from 2 to 3, mean 2.5\nthrice float32[2] from 3 to 6" in capsys.readouterr().out
        assert main([*words, "--json"]) == 0
        assert [x["name"] for x in json.loads(capsys.readouterr().out)["outputs"]] == ["next", "thrice"]
        with np.load(tmp_path / "y.npz") as found:
            assert {name: found[name].tolist() for name in found} == {"next": [2, 3], "thrice": [3, 6]}


def product_by_name():
    x = cg.Var((1, 8), name="x")
    y = x @ cg.Const(np.random.default_rng(0).standard_normal((8, 8)).astype("f4"))
    return {"next": y, "thrice": cg.relu(y)}


def test_outputs_by_name_keep_their_names_in_an_onnx_file(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 8), "f4"))
    reference = "tests.cli.test_run_model:product_by_name"
    assert main(["quantise", reference, "--samples", str(tmp_path / "x.npy"), "-o", str(tmp_path / "q.onnx")]) == 0
    assert cg.load(tmp_path / "q.onnx").names == ("next", "thrice")


@pytest.mark.parametrize(("times", "runs"), [("0", 1), ("1", 1), ("3", 3)])
def test_a_run_is_made_at_least_once_and_outputs_without_names_are_counted(times, runs, tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", np.array([1, 2], "f4"))
    counts, real = [], run_model.with_progress
    monkeypatch.setattr(
        run_model, "with_progress", lambda what, items, bars: counts.append(len(items)) or real(what, items, bars)
    )
    words = ["run", "tests.cli.test_run_model:two", "-i", str(tmp_path / "x.npy"), "--times", times]
    assert main([*words, "--save", str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as found:
        assert {name: found[name].tolist() for name in found} == {"output0": [2, 3], "output1": [3, 6]}
    assert counts == [runs]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_of_many_equal_scores_the_first_ones_are_the_best(dtype):
    """More than a sort of a few elements takes, which keeps their order by itself."""
    x = np.tile([0, 1], 500).astype(dtype)
    assert [row["class"] for row in output_facts("y", x, [], 4)["top"]] == [1, 3, 5, 7]


def rounded():
    x = cg.Var((4, 64), name="x")
    return x @ cg.Const(np.ones((64, 32), "f4"))


def test_a_run_within_an_error_says_first_how_its_layers_are_computed(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", np.ones((4, 64), "f4"))
    functions, compiled = [], CliModel.compiled
    monkeypatch.setattr(
        CliModel, "compiled", lambda model, **options: functions.append(compiled(model, **options)) or functions[-1]
    )
    words = ["run", "tests.cli.test_run_model:rounded", "-i", str(tmp_path / "x.npy")]
    assert main(words) == 0
    (plain,) = capsys.readouterr().out.splitlines()[:1]
    assert plain.startswith("load ") and functions.pop().precision is None
    assert main([*words, "--precision", "0.5"]) == 0
    lines, summary = capsys.readouterr().out.splitlines(), functions.pop().precision.summary()
    assert summary and lines[: len(summary)] == summary and lines[len(summary)].startswith("load ")
