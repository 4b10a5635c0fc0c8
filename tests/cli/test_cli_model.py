"""The MODEL argument: files by ending, Python references, flags that change nothing, and questions back to the user."""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main, model
from cgraph.cli.model import (
    READERS,
    CliModel,
    ModelOptions,
    _here_first,
    arguments_of,
    load_model,
    model_from,
    model_of,
    open_vars,
    python_object,
    read_keras,
)
from cgraph.cli.model_arguments import ENDINGS, add_model
from cgraph.errors import FormatError
from cgraph.formats.onnx import save
from cgraph.formats.unspecified import UnknownError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def args_of(*words):
    parser = argparse.ArgumentParser()
    add_model(parser)
    return parser.parse_args(words)


def test_modules_of_the_current_folder_come_first_while_a_model_is_opened(tmp_path, monkeypatch):
    """A file beside the model hides a module of that name elsewhere, and is not looked for afterwards."""
    for folder, value in (("here", 1), ("elsewhere", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a_module_twice.py").write_text(f"VALUE = {value}\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    before = list(sys.path)
    with _here_first():
        assert import_module("a_module_twice").VALUE == 1
    assert sys.path == before


def test_the_search_path_is_what_it_was_whether_a_reference_is_there_or_not(monkeypatch, folder):
    import sys

    (folder / "here_now.py").write_text("value = 3\n")
    before = list(sys.path)
    assert python_object("here_now:value") == 3
    with pytest.raises(cg.FormatError):
        python_object("not_here:value")
    assert sys.path == before


def test_the_inputs_of_bare_nodes_are_the_open_vars_in_the_order_of_their_creation():
    second, first = cg.Var((2,), name="second"), cg.Var((2,), name="first")
    weight = cg.Var((2,), name="weight").assign(np.ones(2, "f4"))
    assert open_vars([first * weight, second + first]) == (second, first)
    assert model_of([first * weight, second], "m").inputs == (second, first)
    assert model_of(first + 1.0, "m").outputs[0].name == "add"


@pytest.mark.parametrize("is_compiled", [False, True])
def test_outputs_by_name_keep_their_names(is_compiled):
    """Also if options compile the Function anew; two outputs that are one node have both names."""
    x = cg.Var((2,), name="x")
    outputs = {"twice": x * 2, "next": x + 1, "again": x + 1}
    model = model_of(cg.compile(outputs, x) if is_compiled else outputs, "m")
    assert model.names == tuple(outputs) and model.inputs == (x,)
    for options in ({}, {"threads": 1}):
        results = model.compiled(**options)(np.ones(2, "f4"))
        assert {name: results[name].tolist() for name in outputs} == {"twice": [2, 2], "next": [2, 2], "again": [2, 2]}


def test_equal_names_of_outputs_are_told_apart():
    x = cg.Var((2,), name="x")
    assert CliModel((x, x + 1), (x,), names=("y", "y")).compiled().names == ("y", "y_1")


@pytest.mark.parametrize(
    "value", [3, [], [cg.Var((2,)), 3], None, "text", {}, {"y": 3}, {0: cg.Var((2,))}, {"y": [cg.Var((2,))]}], ids=str
)
def test_only_functions_and_nodes_are_models(value):
    with pytest.raises(FormatError) as error:
        model_of(value, "m:f")
    assert str(error.value) == (
        f"m:f gives {value!r:.60}, expected a Function, a node, a sequence of nodes or a dictionary of nodes by name. "
        "Return one of these"
    )


def test_a_compiled_function_stays_the_users_own_unless_options_ask_for_another():
    x = cg.Var((2,), name="x")
    function = cg.compile(cg.exp(x), x)
    model = model_of(function, "m")
    assert model.compiled() is function and (model.inputs, model.outputs) == (function.inputs, function.outputs)
    other = model.compiled(threads=1)
    assert other is not function and other.inputs == function.inputs
    plain = CliModel((cg.exp(x),), (x,)).compiled(engine="reference")
    np.testing.assert_array_equal(plain(np.zeros(2, "f4")), [[1, 1]])


REFERENCES = """
import cgraph as cg
x = cg.Var((2,), name="x")
node = cg.exp(x)
function = cg.compile(node, x)
number = 7
def made():
    return [node, x]
def broken():
    raise ValueError("by hand")
"""


def test_a_reference_is_an_object_or_what_its_function_returns(folder):
    (folder / "a_model_here.py").write_text(REFERENCES)
    assert [x.name for x in load_model("a_model_here:made").outputs] == ["exp", "x"]
    assert load_model("a_model_here:node").outputs[0].name == "exp"
    assert load_model("a_model_here:function").function is python_object("a_model_here:function")
    assert python_object("a_model_here:number") == 7 and callable(python_object("a_model_here:made", call=False))
    with pytest.raises(FormatError) as error:
        load_model("a_model_here:broken")
    assert str(error.value) == "a_model_here:broken: ValueError: by hand"
    with pytest.raises(FormatError, match="^a_model_here:gone: AttributeError: "):
        load_model("a_model_here:gone")


@pytest.mark.parametrize("text", ["model.pb", "a:", ":b", "a.b", "1a:b", "a:b:c", "a:b c", "a-b:c", "a..b:c", ""])
def test_what_is_neither_a_file_nor_a_reference_is_refused(text):
    with pytest.raises(FormatError) as error:
        load_model(text)
    assert str(error.value) == (
        f"{text} is not a model: give a file (.onnx, .cfg, .tflite, .keras, .h5, .hdf5) or a Python reference such as "
        "package.module:function"
    )


def test_the_reader_is_that_of_the_ending_in_any_case(folder):
    assert tuple(READERS) == ENDINGS == (".onnx", ".cfg", ".tflite", ".keras", ".h5", ".hdf5")
    x = cg.Var((2,), name="x")
    save("NET.ONNX", cg.exp(x), [x], ["y"])
    model = load_model("NET.ONNX")
    assert [v.name for v in model.inputs] == ["x"] and model.names == ("y",) and model.read is None


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["net.cfg", "--shape", "n=1"], "--shape"),
        (["m:f", "--weights", "w"], "--weights"),
        (["net.onnx", "--weights", "w"], "--weights"),
        (["net.tflite", "--state", "a=b"], "--state"),
        (["net.cfg", "--maximum", "n=1"], "--maximum"),
        (["-", "--weights", "w"], "--weights"),
    ],
)
def test_a_flag_that_changes_nothing_is_refused(words, flag):
    with pytest.raises(FormatError) as error:
        model_from(args_of(*words))
    assert str(error.value) == f"{words[0]}: {flag} changes nothing here. Leave it out"


def test_a_folder_is_a_saved_function_without_a_graph(folder):
    (folder / "saved").mkdir()
    with pytest.raises(FormatError) as error:
        model_from(args_of("saved"))
    assert str(error.value) == (
        "saved is a folder: a saved function, which cgraph run runs, has no graph. Give the model file"
    )


def test_constants_are_inputs_of_the_model(folder):
    x = cg.Var((2,), name="x")
    save("net.onnx", cg.exp(x), [x])
    assert [v.name for v in model_from(args_of("net.onnx", "--constant", "x=[1,2]")).inputs] == ["x"]
    with pytest.raises(FormatError) as error:
        model_from(args_of("net.onnx", "--constant", "y=3"))
    assert str(error.value) == "--constant y: the model has no such input. Use one of x"


def test_a_darknet_needs_weights_where_none_may_be_invented():
    with pytest.raises(FormatError) as error:
        load_model("net.cfg", ModelOptions(invent=False))
    assert str(error.value) == "net.cfg describes a network without its parameters; give --weights FILE"


def test_questions_are_asked_in_the_words_of_the_command_line():
    shapes = UnknownError("why", shapes={"N": 1, "x": (1, 3)})
    assert arguments_of(shapes) == "--shape N=1 --shape x=1x3"
    both = UnknownError("why", shapes={"N": 1}, constants=("s", "t"), maximum=("n", "m"))
    assert arguments_of(both) == "--maximum n=N or --maximum m=N or --shape N=1 --constant s=VALUE --constant t=VALUE"
    assert arguments_of(UnknownError("why", maximum=("n",))) == "--maximum n=N"


def test_a_missing_file_keeps_its_name():
    with pytest.raises((FormatError, OSError), match="nothing.onnx"):
        load_model(str(Path("nothing.onnx")))


@pytest.mark.parametrize("ending", [".h5", ".hdf5"])
def test_a_keras_file_runs_with_the_sizes_of_its_inputs(tmp_path, monkeypatch, capsys, ending):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    rows = [
        {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, None, 2]}},
        {"class_name": "GlobalMaxPooling1D", "name": "most", "config": {}, "inbound_nodes": [[["x", 0, 0, {}]]]},
    ]
    ends = {"input_layers": [["x", 0, 0]], "output_layers": [["most", 0, 0]]}
    with h5py.File(f"net{ending}", "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": {"layers": rows, **ends}})
        file.create_group("model_weights")
    x = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("f4")
    np.save("x.npy", x)
    assert main(["run", f"net{ending}", "-i", "x.npy", "--save", "out.npz"]) == 0
    np.testing.assert_array_equal(np.load("out.npz")["most"], x.max(1))
    assert (
        main(["plan", f"net{ending}", "--shape", "x.1=4"]) == 0
        and main(["plan", f"net{ending}", "--shape", "x=2x4x2"]) == 0
    )
    for shapes, want in (({"x.1": 4}, (1, 4, 2)), ({"x.1": 4, "batch": 3}, (3, 4, 2)), ({"x": (5, 4, 2)}, (5, 4, 2))):
        assert read_keras(Path(f"net{ending}"), ModelOptions(shapes=shapes)).inputs[0].shape == want
    capsys.readouterr()
    for given, words in (([], "give --shape x.1=1"), (["--shape", "y=3"], "'y' is not a size of this network")):
        assert main(["plan", f"net{ending}", *given]) == 2
        assert words in capsys.readouterr().err


def test_every_unknown_size_of_a_keras_file_is_asked_for(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    rows = [
        {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, None, None, 2]}},
        {"class_name": "InputLayer", "name": "y", "config": {"batch_input_shape": [None, 3, None, 2]}},
        *(
            {"class_name": "GlobalMaxPooling2D", "name": f"most {x}", "config": {}, "inbound_nodes": [[[x, 0, 0, {}]]]}
            for x in "xy"
        ),
    ]
    ends = {"input_layers": [[x, 0, 0] for x in "xy"], "output_layers": [[f"most {x}", 0, 0] for x in "xy"]}
    with h5py.File("net.h5", "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": {"layers": rows, **ends}})
        file.create_group("model_weights")
    for shapes, words in (
        ({}, "--shape x.1=1 --shape x.2=1 --shape y.2=1"), ({"x.1": 4, "y": (1, 2, 3, 5)}, "--shape x.2=1"),
    ):  # fmt: skip
        with pytest.raises(FormatError) as raised:
            read_keras(Path("net.h5"), ModelOptions(shapes=shapes))
        assert str(raised.value) == f"net.h5: sizes of inputs are unknown; give {words}"


def test_a_function_that_is_compiled_anew_keeps_its_updates():
    x, state = cg.Var((2,), name="x"), cg.Var((2,), name="state").assign(np.zeros(2, "f4"))
    function = cg.compile(x + state, x, updates={state: state + x})
    other = model_of(function, "m").compiled(threads=1)
    assert other is not function and list(other.updates) == [state]
    other(np.ones(2, "f4"))
    assert state.value.tolist() == [1, 1]
    plain = CliModel((x + state,), (x,), {state: state + x}).compiled(engine="reference")
    plain(np.ones(2, "f4"))
    assert state.value.tolist() == [2, 2]


@pytest.mark.parametrize("name", ["NET.ONNX", "net.Onnx"])
def test_flags_of_a_format_belong_to_its_ending_in_any_letters(name, folder):
    x = cg.Var((1, 2), name="x")
    save("net.onnx", cg.exp(x), [x])
    Path("net.onnx").rename(name)
    assert model_from(args_of(name, "--shape", "x=1x2")).inputs[0].shape == (1, 2)
    with pytest.raises(FormatError, match=f"^{name}: --weights changes nothing here. Leave it out$"):
        model_from(args_of(name, "--weights", "w"))


@pytest.mark.parametrize("name", ["net.onnx", "folder/net.onnx"])
def test_a_question_names_the_file_once(name, folder):
    helper = pytest.importorskip("onnx").helper
    values = [helper.make_tensor_value_info(x, 1, ["N", 2]) for x in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", values[:1], values[1:])
    (folder / "folder").mkdir()
    Path(name).write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(FormatError) as error:
        load_model(name)
    assert str(error.value) == f"{name}: sizes of inputs are unknown; give --shape N=1"


@pytest.mark.parametrize(("weights", "seed"), [(None, 0), (Path("w"), None)])
def test_parameters_are_drawn_from_the_seed_0_only_without_a_file_of_them(weights, seed, monkeypatch):
    calls = []
    monkeypatch.setattr(model.darknet, "load", lambda *args, **named: calls.append((args, named)))
    with pytest.raises(AttributeError):  # since load returns None
        load_model("net.cfg", ModelOptions(weights=weights))
    assert calls == [((Path("net.cfg"), weights), {"seed": seed})]
