"""Sequences and optionals of ONNX files, and outputs that are sequences; their meaning is in ONNX's own node tests."""

import numpy as np
import pytest

from cgraph.errors import FormatError, PositionError
from cgraph.formats.onnx import load

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
X = np.arange(6, dtype="f4").reshape(2, 3)


def sequence_info(name):
    return helper.make_value_info(name, helper.make_sequence_type_proto(FLOATS))


def model_of(nodes, outputs):
    """A model of one input X ``[2, 3]``."""
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, (2, 3))]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), ir_version=10).SerializeToString()


def added(*names):
    """A graph that adds its inputs."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Sum", list(names), ["total"])], "body", infos, [total])


def test_each_item_of_an_output_that_is_a_sequence_is_an_output_with_its_index_in_its_name():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("Identity", ["rows"], ["same"]),
        helper.make_node("Neg", ["X"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))
    model = load(model_of(nodes, [sequence_info("same"), y]))
    assert model.names == ("same.0", "same.1", "y")
    results = model.compile()(X)
    for got, want in zip(results, (X[:1], X[1:], -X), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(results["same.1"], X[1:])


def test_an_output_that_is_an_empty_sequence_is_refused():
    with pytest.raises(FormatError, match="output 'none' is empty; only tensors can be outputs. Remove it"):
        load(model_of([helper.make_node("SequenceEmpty", [], ["none"])], [sequence_info("none")]))


def test_a_graph_is_built_for_each_item_with_arrays_and_items_of_other_sequences():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("SequenceMap", ["rows", "X", "rows"], ["sums"], body=added("a", "b", "c")),
    ]
    results = load(model_of(nodes, [sequence_info("sums")])).compile()(X)
    for i, got in enumerate(results):
        np.testing.assert_array_equal(got, X + 2 * X[i : i + 1])


def test_sequences_of_other_lengths_are_not_mapped_together():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("SplitToSequence", ["X"], ["columns"], axis=1),
        helper.make_node("SequenceMap", ["rows", "columns"], ["sums"], body=added("a", "b")),
    ]
    with pytest.raises(FormatError, match="sequences of 2, 3 items: all must have one length"):
        load(model_of(nodes, [sequence_info("sums")]))


@pytest.mark.parametrize(("at", "is_inside"), [(-3, False), (-2, True), (1, True), (2, False)])
def test_an_item_is_at_an_index_of_the_sequence(at, is_inside):
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("Constant", [], ["at"], value_int=at),
        helper.make_node("SequenceAt", ["rows", "at"], ["y"]),
    ]
    data = model_of(nodes, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    if is_inside:
        np.testing.assert_array_equal(load(data).compile()(X)[0], X[at][None])
        return
    with pytest.raises(PositionError, match=f"index {at} is outside a sequence of 2 items"):
        load(data)
