"""Inputs by position, by name and in a dictionary; results by position and by name."""

import copy
import pickle

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import GraphError, InputError
from cgraph.formats import onnx

A, B = np.arange(3, dtype="f4"), np.full(3, 2, "f4")


def function() -> cg.Function:
    x, y = cg.Var((3,), name="x"), cg.Var((3,), name="input.1")
    return cg.compile({"sum": x + y, "product": x * y}, [x, y])


@pytest.mark.parametrize("call", [
    lambda f: f(A, B),
    lambda f: f({"x": A, "input.1": B}),
    lambda f: f({"input.1": B}, x=A),
    lambda f: f(A, **{"input.1": B}),
    lambda f: f.run(None, {"x": A, "input.1": B}),
])  # fmt: skip
def test_arrays_are_passed_by_position_by_name_and_in_a_dictionary(call):
    total, product = call(function())
    np.testing.assert_array_equal(total, A + B)
    np.testing.assert_array_equal(product, A * B)


def test_results_are_a_list_that_takes_names_and_becomes_a_dictionary():
    results = function()(A, B)
    assert isinstance(results, list) and results.names == ("sum", "product") == tuple(dict(results))
    assert results["product"] is results[1] is dict(results)["product"] and len(results[:1]) == 1
    for other in (pickle.loads(pickle.dumps(results)), copy.deepcopy(results)):
        np.testing.assert_array_equal(other["sum"], A + B)
    with pytest.raises(InputError, match="the Function has no output 'box'. Use one of sum, product"):
        results["box"]


def test_run_returns_the_outputs_of_these_names_in_their_order():
    f, feed = function(), {"x": A, "input.1": B}
    product, total = f.run(["product", "sum"], feed)
    np.testing.assert_array_equal(product, A * B)
    np.testing.assert_array_equal(total, A + B)
    assert [x.tolist() for x in f.run(["sum"], feed)] == [(A + B).tolist()] and f.run([], feed) == []
    x = cg.Var((3,), name="x")
    assert len(cg.compile(x + 1, [x]).run(["output0"], {"x": A})) == 1, "a single output, too, comes in a list"


def test_a_run_with_an_unknown_output_changes_no_var():
    x, v = cg.Var((), name="x"), cg.Var((), name="v").assign(1.0)
    f = cg.compile({"y": x + v}, [x], {v: v + x})
    with pytest.raises(InputError, match="the Function has no output 'z'. Use one of y"):
        f.run(["z"], {"x": 1.0})
    assert v.value == 1


def test_wrong_calls_name_the_input_and_how_to_pass_it():
    f = function()
    wrong = {
        r"input input.1 float32\[3\] is missing. Pass {'input.1': array}": (({"x": A},), {}),
        r"input x float32\[3\] is missing. Pass x=array": (({"input.1": A},), {}),
        "the Function has no input 'z'. Use one of x, input.1": (({"z": A},), {}),
        "input 'x' is given twice": (({"x": A, "input.1": B},), {"x": A}),
    }
    for text, (args, named) in wrong.items():
        with pytest.raises(InputError, match=text):
            f(*args, **named)
    for names, feed in (("sum", {}), (None, A), ([1], {})):
        with pytest.raises(InputError, match="run takes a list of output names, or None, and a dictionary"):
            f.run(names, feed)
    with pytest.raises(GraphError, match="the name of an output is a text, not 1"):
        cg.compile({"y": cg.Var((3,)), 1: cg.Var((3,)) + 1})


def test_names_survive_saving_pickling_copies_and_other_libraries(tmp_path):
    f = function()
    f.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    loaded.save(tmp_path / "again")
    others = (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f), f.returning("numpy"), f)
    for other in (loaded, cg.load(tmp_path / "again"), *others):
        assert other.names == ("sum", "product")
        np.testing.assert_array_equal(other({"x": A, "input.1": B})["product"], A * B)


IMAGE = cg.Var((1, 2, 24, 6), name="image")
HEAD = cg.max_pool2d(cg.relu(IMAGE), 3, 1, pad=1)
GAIN = cg.Var((3,), name="gain").assign([1, 2, 3])


@pytest.mark.parametrize("options", [
    {}, {"engine": "reference"}, {"threads": 2}, {"budget": 5000}, {"rows": [IMAGE]}, {"rows": [IMAGE, HEAD]},
    {"precision": "bf16"}, {"recompute": True}, {"changing": [GAIN]}, {"freeze": [GAIN]},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("one", [True, False])
def test_outputs_have_their_names_whatever_else_is_asked_for(options, one):
    outputs = {"head": HEAD} if one else {"head": HEAD, "gain": GAIN * 2}
    f = cg.compile(outputs, [IMAGE], **options)
    assert f.names == tuple(outputs)
    want = cg.compile(list(outputs.values()), [IMAGE])(np.ones(IMAGE.shape, "f4"))
    got = f(np.ones(IMAGE.shape, "f4"))
    assert got.names == tuple(outputs)
    for name, x in zip(outputs, want):
        np.testing.assert_array_equal(got[name], x)


def test_names_survive_a_folder_whose_graph_is_compiled_again(tmp_path, monkeypatch):
    x = cg.Var((3,), name="x")
    outputs = {"sine": cg.sin(x), "cosine": cg.cos(x)}
    f = cg.compile(outputs, [x])
    f.save(tmp_path / "saved", graph=onnx.serialised(list(outputs.values()), [x]))
    monkeypatch.setattr("cgraph.saved.read.host_features", lambda: frozenset())
    loaded = cg.load(tmp_path / "saved")
    assert isinstance(loaded, cg.Function) and loaded.names == ("sine", "cosine")


def test_a_model_with_named_results_keeps_the_names_when_it_is_compiled_and_exported(tmp_path):
    class TwoHeads(nn.Layer):
        def build(self, x, mode):
            return {"double": x * 2, "sum": cg.sum(x, 1)}

    predict = nn.compile(TwoHeads(), batch=2, samples=[nn.Sample((3,))])
    results = predict(np.ones((5, 3), "f4"))
    assert results["double"].shape == (5, 3) and results["sum"].tolist() == [3] * 5
    x = cg.Var((2, 3), name="x")
    onnx.save(tmp_path / "m.onnx", TwoHeads()(x), [x])
    assert cg.load(tmp_path / "m.onnx").names == predict.function.names == ("double", "sum")


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_one_named_output_comes_in_a_list_on_every_engine(engine):
    x = cg.Var((3,), name="x")
    assert cg.compile({"y": x + 1}, [x], engine=engine)(A)["y"].tolist() == [1, 2, 3]


def test_a_function_of_sizes_takes_a_dictionary_and_names_its_results():
    def build(sizes):
        x = cg.Var((sizes["n"],), name="x")
        return {"double": x * 2, "sum": cg.sum(x)}, [x]

    f = cg.compile_sizes(build, {"x": ("n",)})
    for n in (3, 5):
        x = np.arange(n, dtype="f4")
        np.testing.assert_array_equal(f({"x": x})["double"], x * 2)
        assert f.run(["sum"], {"x": x})[0] == x.sum()
