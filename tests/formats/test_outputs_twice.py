"""Outputs that are listed twice, share a name, or are inputs: every position has its value, every name is another."""

import json

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.cli import main
from cgraph.errors import FormatError
from cgraph.formats.model import Model
from cgraph.formats.onnx import load, serialised
from cgraph.ir.labels import distinct_names

X = np.array([1, -2, 3], "f")
STORED = np.array([4, 5, 6], "f")
VALUES = {"x": X, "a": -X, "b": abs(X), "w": STORED}


def listing(names):
    """A model whose outputs are these values: an input, a stored one, and two that are computed."""
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in names],
        [numpy_helper.from_array(STORED, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def same(results, names):
    assert len(results) == len(names)
    for result, name in zip(results, names):
        np.testing.assert_array_equal(result, VALUES[name])


@given(st.lists(st.sampled_from("xabw"), min_size=1, max_size=6))
def test_every_position_of_the_outputs_has_its_value(names):
    model = load(listing(names))
    same(model.compile()(X), names)
    assert len(set(model.names)) == len(names)
    assert [name.split("_")[0] for name in model.names] == names


@pytest.mark.parametrize("names", ["aab", "xax", "wwa", "aaa"])
def test_what_is_written_and_saved_has_every_output_too(names, tmp_path):
    model = load(listing(names))
    again = load(serialised(model.outputs, model.inputs, model.names))
    same(again.compile()(X), names)
    assert again.names == model.names and [x.name for x in again.inputs] == ["x"]
    model.compile().save(tmp_path / "f", names=list(names))
    saved = cg.load(tmp_path / "f", trust=True)
    same(saved(X), names)
    assert saved.names == distinct_names(names)


@pytest.mark.parametrize("names", ["aab", "bxx"])
def test_the_command_line_shows_and_keeps_every_output(names, tmp_path, capsys):
    path, array, kept = tmp_path / "net.onnx", tmp_path / "x.npy", tmp_path / "out.npz"
    path.write_bytes(listing(names))
    np.save(array, X)
    main(["save", str(path), "-o", str(tmp_path / "saved")])
    labels = load(path).names
    for source in (path, tmp_path / "saved"):
        capsys.readouterr()
        main(["run", str(source), "--input", str(array), "--save", str(kept), "--json", "--trust"])
        assert [x["name"] for x in json.loads(capsys.readouterr().out)["outputs"]] == list(labels)
        with np.load(kept) as arrays:
            same([arrays[name] for name in labels], names)


def test_a_quantised_model_has_every_output(tmp_path):
    path, array = tmp_path / "net.onnx", tmp_path / "x.npy"
    x, weights = cg.Var((2, 3), name="x"), np.random.default_rng(0).normal(size=(3, 3)).astype("f4")
    y = cg.matmul(x, weights)
    path.write_bytes(serialised([y, y, -x], [x], ["y", "y", "z"]))
    np.save(array, np.stack([X, -X]))
    assert main(["quantise", str(path), "--samples", str(array), "-o", str(tmp_path / "q.onnx")]) == 0
    model = load(tmp_path / "q.onnx")
    first, second, third = model.compile()(np.stack([X, -X]))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.sign(third), np.sign(np.stack([-X, X])))
    assert model.names == ("y", "y_1", "z")


def test_what_is_written_has_no_name_twice_whatever_it_is_called():
    x = cg.Var((3,), name="x")
    raw = serialised([-x, -x, abs(x), x], [x], ["x", "x", "x_1", "x"])
    proto = onnx.load_from_string(raw)
    onnx.checker.check_model(proto)
    assert len({v.name for v in (*proto.graph.output, *proto.graph.input)}) == 5
    results = load(raw).compile()(X)
    for result, expected in zip(results, (-X, -X, abs(X), X), strict=True):
        np.testing.assert_array_equal(result, expected)


@given(
    st.lists(st.sampled_from(["y", "y_1", "y_2", "y_1_1", "z"]), max_size=8), st.sets(st.sampled_from(["y_1", "y_3"]))
)
def test_distinct_names_change_only_what_is_there_twice(names, others):
    labels = distinct_names(names, others)
    assert len(set(labels)) == len(names)
    for i, (name, label) in enumerate(zip(names, labels)):
        if name in names[:i] or label != name:
            assert label != name and label.startswith(f"{name}_") and label not in {*names, *others}
    assert all(labels[names.index(name)] == name for name in names)


def test_names_of_all_formats_are_distinct_and_as_many_as_outputs():
    x = cg.Var((2,), name="x")
    y = -x
    model = Model((x,), (y, y, x, y), ("y", "y", "x", "y_1"), {"y_2": y})
    assert model.names == ("y", "y_3", "x", "y_1")
    with pytest.raises(FormatError, match="1 names for 2 outputs"):
        Model((x,), (y, y), ("y",))


def test_outputs_of_open_length_are_each_cut():
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["p"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(n, k, None) for n, k in (("p", 7), ("x", 1), ("p", 7))],
    )
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    first, same_x, last = model.compile()(np.array([0, 2, 0], "f"))
    assert first.tolist() == last.tolist() == [[1]] and same_x.tolist() == [0, 2, 0]


def test_two_initialisers_of_one_name_are_refused():
    proto = onnx.load_from_string(listing("a"))
    proto.graph.initializer.append(proto.graph.initializer[0])
    with pytest.raises(FormatError, match="two initialisers have the name 'w'"):
        load(proto.SerializeToString())
