"""What layers of sequences of Keras refuse."""

import pytest

from cgraph.errors import FormatError
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile
from tests.support.keras_networks import HEADS, PLAIN, UNITS, C, T, X, arrays, heads, layer, run, start, stored


def lstm(named=None, **options):
    return [start("x", (T, C)), layer("LSTM", "l", ["x"], PLAIN | options, named)]


REFUSED = {
    "states that stay": (lstm(stateful=True), "stateful=True is not supported. Build the layer with stateful=False"),
    "one of two states": (lstm({"initial_state": ["x", 0, 0]}), "called with 1 states, and has 2"),
    "an argument": (lstm({"other": ["x", 0, 0]}), "its argument other= is not supported. Pass initial_state, mask by"),
    "an argument of a plain layer": (
        [start("x", (T, C)), layer("ReLU", "l", ["x"], {}, {"mask": ["x", 0, 0]})], "mask= is not supported. Pass none",
    ),
    "gates of heads": (
        [start("x", (T, C)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS | {"use_gate": True})], "use_gate",
    ),
    "heads of images": (
        [start("x", (T, C, 2)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS)], "Reshape its operands",
    ),
    "joined scores": (
        [start("x", (T, C)), layer("Attention", "l", ["x", "x"], {"score_mode": "concat"})], "Use 'dot'",
    ),
    "products of images": ([start("x", (T, C, 2)), layer("Dot", "l", ["x", "x"], {"axes": 1})], "Reshape them"),
    "an unknown merge": (
        [start("x", (T, C)), layer("Bidirectional", "l", ["x"], {
            "layer": {"class_name": "LSTM", "config": PLAIN | {"name": "g"}}, "merge_mode": "max"})],
        "merge_mode 'max'",
    ),
    "an unknown function": (
        [start("x", (T, C)), {**layer("TFOpLambda", "l", [], {"function": "nn.relu"}),
         "inbound_nodes": [["x", 0, 0, {"y": 1}]]}], "function 'nn.relu' is not supported",
    ),
}  # fmt: skip


def run_with_any_arrays(rows):
    """The output of the layer `l`, which finds arrays of each kind."""
    w = arrays("LSTM")
    both = stored(w, "l/forward_g/cell") | stored(w, "l/backward_g/cell")
    return run(rows, {"l": stored(w, "cell") | both | heads(C, C, C, C)}, [X], [("l", 0)])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    rows, words = REFUSED[name]
    with pytest.raises(FormatError, match=words):
        run_with_any_arrays(rows)


MORE_REFUSED = {
    "windows that slide": (
        [start("x", (T, C)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS | {"sliding_window": 2})],
        "use_gate and sliding_window are not supported",
    ),
    "an image as the key of heads": (
        [
            start("x", (T, C)),
            layer("Reshape", "y", ["x"], {"target_shape": [T, C, 1]}),
            layer("MultiHeadAttention", "l", ["x", "x", "y"], HEADS),
        ],
        "Reshape its operands",
    ),
    "a product with an image": (
        [
            start("x", (T, C)),
            layer("Reshape", "y", ["x"], {"target_shape": [T, C, 1]}),
            layer("Dot", "l", ["x", "y"], {"axes": 1}),
        ],
        "a Dot of images is not supported",
    ),
    "an operator of other axes": (
        [
            start("x", (T, C)),
            layer("GlobalAveragePooling1D", "y", ["x"]),
            layer("TFOpLambda", "l", ["x"], {"function": "math.add"}, {"y": ["y", 0, 0]}),
        ],
        "math.add of 3 and 2 axes is not supported",
    ),
    "states of a convolutional layer that stay": (
        [start("x", (T, 4, C)), layer("ConvLSTM1D", "l", ["x"], {"stateful": True})],
        "stateful=True and masks are not supported",
    ),
    "a mask before a convolutional layer": (
        [
            start("x", (T, C)),
            layer("Masking", "m", ["x"]),
            layer("TimeDistributed", "t", ["m"], {
                "layer": {"class_name": "Reshape", "config": {"name": "r", "target_shape": [2, 2]}},
            }),
            layer("ConvLSTM1D", "l", ["t"], {}),
        ],
        "stateful=True and masks are not supported",
    ),
    "three states of two": (
        [start("x", (T, C)), start("s", (UNITS,)), layer("LSTM", "l", ["x", "s", "s", "s"], PLAIN)],
        "called with 3 states, and has 2",
    ),
    "an unknown inner activation": (
        [start("x", (T, C)), layer("LSTM", "l", ["x"], PLAIN | {"recurrent_activation": "squash"})],
        "activation 'squash' is not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE_REFUSED)
def test_each_condition_of_a_layer_of_sequences_is_checked(name):
    rows, words = MORE_REFUSED[name]
    with pytest.raises(FormatError, match=words):
        graph_of_rows(rows)


def graph_of_rows(rows):
    weights = {"l": {f"l/{path}": x for path, x in stored(arrays("LSTM"), "cell").items()}}
    inputs = [[row["name"], 0, 0] for row in rows if row["class_name"] == "InputLayer"]
    config = {"layers": rows, "input_layers": inputs, "output_layers": [["l", 0, 0]]}
    return graph_of(KerasFile({"class_name": "Functional", "config": config}, weights), {"batch": 1})
