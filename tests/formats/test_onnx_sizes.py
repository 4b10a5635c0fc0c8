"""Functions of ONNX models with symbolic dimensions: names of axes, shapes of inputs, one result for each size."""

import numpy as np
import pytest

from cgraph.errors import BudgetError, FormatError
from cgraph.formats.onnx.sizes import compile_sizes, open_shapes

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

from tests.support.onnx_models import FLOAT, INT64, model_of  # noqa: E402

ADD = [helper.make_node("Add", ["a", "b"], ["y"])]


def test_axes_without_a_name_are_called_by_input_and_index():
    model = model_of(ADD, [("a", FLOAT, ["rows", None]), ("b", FLOAT, [3, None, 0])])
    assert open_shapes(model) == {"a": ("rows", "a.1"), "b": (3, "b.1", 0)}


def test_inputs_that_are_stored_or_have_no_number_of_axes_have_no_shape():
    inputs = [("a", FLOAT, ["rows"]), ("b", FLOAT, [1])]
    assert open_shapes(model_of(ADD, inputs, {"b": np.ones(1, "f4")})) == {"a": ("rows",)}
    unknown = model_of(ADD, [("a", FLOAT, ["rows"]), ("b", FLOAT, None)])
    assert open_shapes(unknown) == {"a": ("rows",)}
    with pytest.raises(FormatError, match="input 'b' is not a tensor of a fixed number of axes"):
        compile_sizes(unknown)


def test_a_function_computes_each_size():
    model = model_of(ADD, [("a", TensorProto.FLOAT, ["rows", 2]), ("b", FLOAT, [2])])
    add = compile_sizes(model, most={"rows": 5})
    b = np.array([10, 20], "f4")
    for rows in (5, 1, 3):
        a = np.arange(2 * rows, dtype="f4").reshape(rows, 2)
        np.testing.assert_array_equal(np.asarray(add(a, b)[0]), a + b)


def test_constants_and_options_are_passed_on_and_results_have_the_outputs_names():
    """A shape that decides the result's and stays an operand, and two outputs."""
    nodes = [helper.make_node("Reshape", ["a", "shape"], ["y"]), helper.make_node("Neg", ["y"], ["minus"])]
    inputs = [("a", FLOAT, ["rows", 2]), ("shape", INT64, [2])]
    model = model_of(nodes, inputs, outputs=("y", "minus"))
    function = compile_sizes(model, {"rows": 6}, {"shape": np.array([2, -1])}, engine="reference")
    for rows in (6, 1, 3):
        a = np.arange(2 * rows, dtype="f4").reshape(rows, 2)
        results = function(a=a, shape=np.array([2, -1]))
        np.testing.assert_array_equal(results["y"], a.reshape(2, -1))
        np.testing.assert_array_equal(results["minus"], -a.reshape(2, -1))
    assert [x.shape for x in function.at(rows=3).outputs] == [(2, 3), (2, 3)]  # not the most that a shape may ask for
    with pytest.raises(BudgetError):
        compile_sizes(model, {"rows": 6}, {"shape": np.array([2, -1])}, budget=16)


def test_an_output_that_is_listed_twice_gets_a_name_that_no_input_has():
    nodes = [helper.make_node("Neg", ["y_1"], ["y"])]
    function = compile_sizes(model_of(nodes, [("y_1", FLOAT, ["rows"])], outputs=("y", "y")))
    assert function.names == ("y", "y_2")
    a = np.arange(3, dtype="f4")
    for got in function(a):
        np.testing.assert_array_equal(np.asarray(got), -a)


def test_an_input_that_is_no_tensor_is_given_as_a_constant_or_refused():
    floats = helper.make_tensor_type_proto(FLOAT, None)
    nodes = [helper.make_node("SequenceAt", ["items", "at"], ["b"]), *ADD]
    graph = helper.make_graph(
        nodes, "g",
        [
            helper.make_tensor_value_info("a", FLOAT, ["rows", 2]),
            helper.make_value_info("items", helper.make_sequence_type_proto(floats)),
        ],
        [helper.make_tensor_value_info("y", FLOAT, None)], [helper.make_tensor("at", INT64, [], [1])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    assert open_shapes(model) == {"a": ("rows", 2)}
    with pytest.raises(FormatError, match="input 'items' is not a tensor of a fixed number of axes. Use load with"):
        compile_sizes(model)
    items = [np.zeros(2, "f4"), np.array([10, 20], "f4")]
    add = compile_sizes(model, constants={"items": items})
    for rows in (1, 3):
        a = np.arange(2 * rows, dtype="f4").reshape(rows, 2)
        np.testing.assert_array_equal(np.asarray(add(a)[0]), a + items[1])
