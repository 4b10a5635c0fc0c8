"""What a model's inputs may be: sizes that stay open, constants that are given."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.onnx import compile_sizes, load, open_shapes
from tests.support.onnx_models import FLOAT, INT64, model_of


def open_model(**constants):
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    return model_of(nodes, [("x", FLOAT, ("n", None, 3)), ("w", FLOAT, (3,))], constants)


def test_sizes_that_a_file_leaves_open_stay_open():
    assert open_shapes(open_model()) == {"x": ("n", "x.1", 3), "w": (3,)}
    assert open_shapes(open_model(w=np.ones(3, "f4"))) == {"x": ("n", "x.1", 3)}
    function = compile_sizes(open_model(w=np.array([-1, 0, 1], "f4")), {"n": 4, "x.1": 5})
    for shape in ((2, 1, 3), (4, 5, 3), (1, 2, 3)):
        x = np.random.default_rng(0).standard_normal(shape).astype("f4")
        np.testing.assert_array_equal(function(x)[0], np.maximum(x + np.array([-1, 0, 1], "f4"), 0))


def test_sizes_of_what_is_no_tensor_are_refused():
    graph = helper.make_graph(
        [helper.make_node("SequenceLength", ["x"], ["y"])], "g",
        [helper.make_tensor_sequence_value_info("x", FLOAT, ("n",))],
        [helper.make_tensor_value_info("y", INT64, ())],
    )  # fmt: skip
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    assert open_shapes(raw) == {}
    with pytest.raises(FormatError, match="'x' is not a tensor of a fixed number of axes"):
        compile_sizes(raw)
    with pytest.raises(FormatError, match="give its value in constants"):
        load(raw)


def test_dimensions_that_are_not_there_are_refused():
    with pytest.raises(FormatError, match="'m' is neither a dimension nor an input. Use one of"):
        load(open_model(), shapes={"m": 3})
