"""Each layer of Keras by itself, as NumPy computes it in Keras' order of axes; and what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 6, 2)).astype(np.float32)
FLAT = RNG.normal(size=(3, 5)).astype(np.float32)


def network(kind: str, config: dict, weights: dict | None = None, inputs: int = 1, shape: tuple = X.shape) -> KerasFile:
    """One layer that reads the inputs ``0``, ``1``, …"""
    first = [
        {"class_name": "InputLayer", "name": str(i), "config": {"batch_input_shape": [None, *shape[1:]]}}
        for i in range(inputs)
    ]
    nodes = [[[str(i), 0, 0, {}] for i in range(inputs)]]
    layers = [*first, {"class_name": kind, "name": "layer", "config": config, "inbound_nodes": nodes}]
    config = {
        "layers": layers,
        "input_layers": [[x["name"], 0, 0] for x in first],
        "output_layers": [["layer", 0, 0]],
    }
    return KerasFile({"class_name": "Functional", "config": config}, {"layer": weights or {}})


def computed(file: KerasFile, *values: np.ndarray) -> np.ndarray:
    """The network's result in Keras' order of axes, for values in that order."""
    graph = graph_of(file, len(values[0]))
    found = cg.compile(graph.outputs[0], graph.inputs, engine="reference")(*(np.moveaxis(x, -1, 1) for x in values))
    return np.moveaxis(found, 1, -1) if found.ndim > 1 else found


def windows(x: np.ndarray, fill: float) -> np.ndarray:
    """Of 3 × 2 elements, two apart, with Keras' padding "same": ``[n, h, w, c, 3, 2]``."""
    padded = np.pad(x, ((0, 0), (0, 1), (0, 0), (0, 0)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (1, 2))[:, ::2, ::2]


def average(x: np.ndarray) -> np.ndarray:
    return np.nanmean(windows(x, np.nan), (-1, -2))


POOL = {"pool_size": [3, 2], "strides": [2, 2], "padding": "same"}
MEAN, VARIANCE = np.array([1, -1], "f4"), np.array([4, 0.25], "f4")
LAYERS: dict[str, tuple] = {
    "MaxPooling2D": (POOL, {}, lambda x: windows(x, -np.inf).max((-1, -2))),
    "AveragePooling2D": (POOL, {}, average),
    "GlobalMaxPooling2D": ({}, {}, lambda x: x.max((1, 2))),
    "GlobalAveragePooling2D": ({"keepdims": True}, {}, lambda x: x.mean((1, 2), keepdims=True)),
    "ZeroPadding2D": (
        {"padding": [[1, 0], [2, 3]]}, {}, lambda x: np.pad(x, ((0, 0), (1, 0), (2, 3), (0, 0))),
    ),
    "ReLU": ({"max_value": 0.5}, {}, lambda x: np.clip(x, 0, 0.5)),
    "Dropout": ({"rate": 0.5}, {}, lambda x: x),
    "BatchNormalization": (
        {"epsilon": 0.5}, {"moving_mean": MEAN, "moving_variance": VARIANCE},
        lambda x: (x - MEAN) / np.sqrt(VARIANCE + 0.5),
    ),
    "Activation": ({"activation": "softmax"}, {}, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_is_what_numpy_computes(kind):
    config, weights, want = LAYERS[kind]
    assert_near(computed(network(kind, config, weights), X), want(X), "float32 sums near zero")


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, 3])
def test_images_are_joined_along_any_axis(axis):
    other = X + 1
    found = computed(network("Concatenate", {"axis": axis}, inputs=2), X, other)
    np.testing.assert_array_equal(found, np.concatenate([X, other], axis))


def test_a_dense_layer_is_a_product_with_an_activation():
    kernel, bias = RNG.normal(size=(5, 4)).astype("f4"), RNG.normal(size=4).astype("f4")
    file = network("Dense", {"activation": "relu"}, {"kernel": kernel, "bias": bias}, shape=FLAT.shape)
    assert_near(computed(file, FLAT), np.maximum(FLAT @ kernel + bias, 0), "float32 sums near zero")


@pytest.mark.parametrize("multiplier", [1, 2, 3])
def test_a_depthwise_convolution_is_a_plain_loop_for_any_multiplier(multiplier):
    """Result c * multiplier + m is channel c under its filter m."""
    kernel = RNG.normal(size=(3, 2, 2, multiplier)).astype("f4")  # [rows, columns, channels, multiplier]
    bias = RNG.normal(size=2 * multiplier).astype("f4")
    config = {"strides": [1, 2], "padding": "valid", "depth_multiplier": multiplier}
    file = network("DepthwiseConv2D", config, {"depthwise_kernel": kernel, "bias": bias})
    expected = np.empty((3, 2, 3, 2 * multiplier))
    for n, i, j, c, m in np.ndindex(3, 2, 3, 2, multiplier):
        window = X[n, i : i + 3, 2 * j : 2 * j + 2, c].astype(np.float64)
        expected[n, i, j, c * multiplier + m] = (window * kernel[:, :, c, m]).sum() + bias[c * multiplier + m]
    assert_near(computed(file, X), expected, "float32 sums near zero")


def twice(file: KerasFile) -> KerasFile:
    layer = file.config["config"]["layers"][-1]
    layer["inbound_nodes"] = layer["inbound_nodes"] * 2
    return file


def subclassed(file: KerasFile) -> KerasFile:
    return KerasFile(file.config | {"class_name": "MyModel"}, file.weights)


REFUSED = {
    "a layer that is used twice": (twice(network("ReLU", {})), "is used 2 times"),
    "no functional network": (subclassed(network("ReLU", {})), "'MyModel' is not a functional or sequential network"),
    "channels first": (network("ReLU", {"data_format": "channels_first"}), "has channels first"),
    "an unknown activation": (network("Activation", {"activation": "swish"}), "'swish' is not supported"),
    "a slope": (network("ReLU", {"negative_slope": 0.1}), "negative_slope 0.1"),
    "a threshold": (network("ReLU", {"threshold": 0.1}), "threshold 0.1"),
    "a dense layer on images": (network("Dense", {}, {"kernel": np.ones((2, 2), "f4")}), "a Dense layer on"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    file, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        graph_of(file, 1)
