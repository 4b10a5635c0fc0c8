"""The comparison of the zoo's files in one process: inputs by their names and open axes, outputs of dictionaries."""

import numpy as np
from onnx import TensorProto, helper

from benchmarks.zoo.compare import array_of, feeds_of, values_for


def graph_of(**shapes):
    inputs = [helper.make_tensor_value_info(x, TensorProto.INT64, shape) for x, shape in shapes.items()]
    return helper.make_graph([], "g", inputs, [])


def test_open_axes_have_sizes_by_their_place():
    graph = graph_of(
        input_ids=["N", "L"], decoder_input_ids=["N", "M"], attention_mask=["N", "A"], past_0=["N", 4, "P"]
    )
    feeds = feeds_of(graph, {"N": 2, "L": 5, "M": 3, "P": 7}, 1)
    shapes = {name: x.shape for name, x in feeds.items()}
    assert shapes == {
        "input_ids": (2, 5), "decoder_input_ids": (2, 3), "attention_mask": (2, 12), "past_0": (2, 4, 7)
    }  # fmt: skip
    assert (feeds["attention_mask"] == 1).all() and feeds["input_ids"].min() >= 3


def test_boxes_have_their_second_corner_after_the_first():
    boxes = values_for("bbox", [2, 3, 4], TensorProto.INT64, np.random.default_rng(0))
    assert boxes.shape == (2, 3, 4) and (boxes[..., 2:] > boxes[..., :2]).all()
    words = values_for("text", [4], TensorProto.STRING, np.random.default_rng(0))
    assert words.shape == (4,) and all(isinstance(x, str) for x in words)


def test_dictionaries_of_scores_are_compared_by_their_values():
    np.testing.assert_array_equal(array_of([{"a": 1, "b": 2}, {"a": 3, "b": 4}]), [[1, 2], [3, 4]])
