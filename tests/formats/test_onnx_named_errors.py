"""Whatever is wrong with an ONNX file, the error is typed and names the file."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.cli import main
from cgraph.errors import FormatError, InputError, PositionError
from cgraph.formats.onnx import compile_sizes, load, open_shapes
from cgraph.formats.unspecified import UnknownError
from tests.support.onnx_models import FLOAT, INT64, model_of

X = ("x", FLOAT, (4,))
node = helper.make_node


def tensor(**fields):
    return TensorProto(name="w", **fields)


def stored(w, **more):
    """A model that adds a tensor of this proto."""
    graph = helper.make_graph(
        [node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info(*X)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [w],
        **more,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()


def sparse(indices):
    values = numpy_helper.from_array(np.ones(1, "f4"), "w")
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices)), [4])


FILES = {
    "bytes": b"nonsense",
    "no graph": b"",
    "an operator": model_of([node("Nothing", ["x"], ["y"])], [X]),
    "a name": model_of([node("Add", ["x", "z"], ["y"])], [X]),
    "an output": model_of([node("Relu", ["x"], ["z"])], [X]),
    "an attribute": model_of([node("Softmax", ["x"], ["y"], axis="x")], [X]),
    "a shape": model_of([node("Reshape", ["x", "s"], ["y"])], [X], {"s": np.array([3])}),
    "a position": model_of(
        [node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])], [X], {"i": np.array(9)}
    ),
    "an opset": model_of([node("Relu", ["x"], ["y"])], [X], opset=99),
    "an open size": model_of([node("Relu", ["x"], ["y"])], [("x", FLOAT, ("N",))]),
    "an open value": model_of([node("ConstantOfShape", ["s"], ["y"])], [("s", INT64, (2,))]),
    "an input's dtype": model_of([node("Relu", ["x"], ["y"])], [("x", TensorProto.STRING, (4,))]),
    "an input of many axes": model_of([node("Relu", ["x"], ["y"])], [("x", FLOAT, (1,) * 99)]),
    "two inputs of one name": model_of([node("Relu", ["x"], ["y"])], [X, X]),
    "an input without a name": model_of([node("Relu", [""], ["y"])], [("", FLOAT, (4,))]),
    "other data": stored(tensor(data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)),
    "a tensor's dtype": stored(tensor(data_type=99, dims=[4])),
    "a tensor's size": stored(tensor(data_type=1, dims=[4], raw_data=b"x")),
    "a tensor's numbers": stored(tensor(data_type=3, dims=[1], int32_data=[999])),
    "a large tensor's numbers": stored(tensor(data_type=3, dims=[2000], int32_data=[999] * 2000)),
    "a large tensor's size": stored(tensor(data_type=7, dims=[1999], int64_data=[9] * 2000)),
    "a large tensor of another field": stored(tensor(data_type=11, dims=[2000], float_data=[9] * 4000)),
    "a sparse position": stored(tensor(data_type=1, dims=[4]), sparse_initializer=[sparse([9])]),
    "sparse positions of floats": stored(tensor(data_type=1, dims=[4]), sparse_initializer=[sparse([0.5])]),
    "an empty output": model_of([node("SequenceEmpty", [], ["y"])], [X]),
}


@pytest.mark.parametrize("name", FILES)
def test_an_error_names_the_file_on_every_way_in(name, tmp_path, capsys):
    path = tmp_path / "net.onnx"
    path.write_bytes(FILES[name])
    with pytest.raises((FormatError, PositionError)) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and text.count(str(path)) == 1
    with pytest.raises((FormatError, PositionError), match="^the model: "):
        load(FILES[name])
    for command in (["plan", str(path)], ["save", str(path), "-o", str(tmp_path / "s")]):
        assert main(command) != 0
        said = capsys.readouterr().err
        assert said.count(str(path)) == 1 and "Traceback" not in said


def test_what_is_open_still_says_what_would_close_it(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(FILES["an open size"])
    with pytest.raises(UnknownError) as caught:
        load(path)
    assert caught.value.shapes == {"N": 1} and str(path) in caught.value.reason


def test_what_the_user_gave_is_not_blamed_on_the_file():
    with pytest.raises(InputError):
        load(FILES["an open value"], constants={"s": ["a"]})


@pytest.mark.parametrize("reader", [open_shapes, compile_sizes])
def test_readers_of_sizes_name_the_file(reader, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(FILES["bytes"])
    with pytest.raises(FormatError, match="net.onnx: "):
        reader(path)
    path.write_bytes(model_of([node("Nothing", ["x"], ["y"])], [("x", FLOAT, ("N",))]))
    with pytest.raises(FormatError, match="net.onnx: 1 operators are not supported"):
        compile_sizes(path)(np.zeros(2, "f4"))


def test_names_in_messages_are_cut_short(tmp_path):
    raw = model_of([node("Add", ["x", "z" * 9999], ["y"] + ["o" * 999] * 99, name="n" * 9999)], [X])
    with pytest.raises(FormatError) as caught:
        load(raw)
    assert len(str(caught.value)) < 2000


def test_the_graph_of_a_saved_folder_names_itself(tmp_path, monkeypatch):
    x = cg.Var((2,), name="x")
    folder = tmp_path / "f"
    cg.compile([-x], [x]).save(folder, graph=FILES["an operator"])
    monkeypatch.setattr("cgraph.saved.manifest.__version__", "0")
    with pytest.raises(FormatError) as caught:
        cg.load(folder, trust=True)
    assert str(caught.value).startswith(f"{folder}: graph.onnx: 1 operators are not supported: Nothing. See ")
