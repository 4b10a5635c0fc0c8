"""Each layer of Keras by itself, as NumPy computes it in Keras' order of axes; and what is refused."""

import math
import re

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats import keras_rules
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile
from cgraph.formats.keras_layers import RULES
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
    graph = graph_of(file, {"batch": len(values[0])})
    found = cg.compile(graph.outputs[0], graph.inputs, engine="reference")(
        *(np.moveaxis(x, -1, 1) if x.ndim > 3 else x for x in values)
    )
    return np.moveaxis(found, 1, -1) if found.ndim > 3 else found


def windows(x: np.ndarray, fill: float) -> np.ndarray:
    """Of 3 × 2 elements, two apart, with Keras' padding "same": ``[n, h, w, c, 3, 2]``."""
    padded = np.pad(x, ((0, 0), (0, 1), (0, 0), (0, 0)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (1, 2))[:, ::2, ::2]


def average(x: np.ndarray) -> np.ndarray:
    return np.nanmean(windows(x, np.nan), (-1, -2))


POOL = {"pool_size": [3, 2], "strides": [2, 2], "padding": "same"}
MEAN, VARIANCE = np.array([1, -1], "f4"), np.array([4, 0.25], "f4")
SLOPES = RNG.normal(size=(4, 1, 2)).astype("f4")
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
    "Cropping2D": ({"cropping": [[1, 0], [2, 3]]}, {}, lambda x: x[:, 1:, 2:-3]),
    "ELU": ({"alpha": 0.5}, {}, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "Identity": ({}, {}, lambda x: x),
    "LayerNormalization": (
        {"axis": [3], "epsilon": 0.5}, {"gamma": MEAN, "beta": VARIANCE},
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5) * MEAN + VARIANCE,
    ),
    "LayerScale": ({}, {"gamma": MEAN}, lambda x: x * MEAN),
    "LeakyReLU": ({"negative_slope": 0.25}, {}, lambda x: np.where(x > 0, x, x * 0.25)),
    "Normalization": (
        {"axis": [-1], "mean": None}, {"mean": MEAN, "variance": np.array([4, 0], "f4")},
        lambda x: (x - MEAN) / np.array([2, 1e-7], "f4"),
    ),
    "PReLU": ({}, {"alpha": SLOPES}, lambda x: np.where(x > 0, x, x * SLOPES)),
    "Permute": ({"dims": [3, 1, 2]}, {}, lambda x: x.transpose(0, 3, 1, 2)),
    "Rescaling": ({"scale": 0.5, "offset": -1}, {}, lambda x: x * 0.5 - 1),
    "Softmax": ({"axis": 2}, {}, lambda x: np.exp(x) / np.exp(x).sum(2, keepdims=True)),
    "StochasticDepth": ({}, {}, lambda x: x),
    "UpSampling2D": ({"size": [2, 3]}, {}, lambda x: x.repeat(2, 1).repeat(3, 2)),
    "BatchNormalization with scale and shift": (
        {"axis": [3], "epsilon": 0.5},
        {"gamma": MEAN, "beta": VARIANCE, "moving_mean": VARIANCE, "moving_variance": VARIANCE},
        lambda x: (x - VARIANCE) / np.sqrt(VARIANCE + 0.5) * MEAN + VARIANCE,
    ),
    "BatchNormalization without a shift": (
        {"epsilon": 0.5}, {"gamma": MEAN, "moving_mean": VARIANCE, "moving_variance": VARIANCE},
        lambda x: (x - VARIANCE) / np.sqrt(VARIANCE + 0.5) * MEAN,
    ),
    "BatchNormalization without a scale": (
        {"epsilon": 0.5}, {"beta": MEAN, "moving_mean": VARIANCE, "moving_variance": VARIANCE},
        lambda x: (x - VARIANCE) / np.sqrt(VARIANCE + 0.5) + MEAN,
    ),
    "GroupNormalization of each channel without a scale": (
        {"axis": -1, "groups": -1, "epsilon": 0.5}, {"beta": MEAN},
        lambda x: (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.5) + MEAN,
    ),
    "ReLU up to nothing": ({"max_value": 0.0}, {}, lambda x: x * 0),
    "ELU without a slope": ({}, {}, lambda x: np.where(x > 0, x, np.expm1(x))),
    "GroupNormalization": (
        {"axis": -1, "groups": 2, "epsilon": 0.5}, {"gamma": MEAN},
        lambda x: (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.5) * MEAN,
    ),
    "LeakyReLU of Keras 2": ({"alpha": 0.5}, {}, lambda x: np.where(x > 0, x, x * 0.5)),
    "Normalization of all alike": (
        {"axis": None}, {"mean": np.float32(0.5), "variance": np.float32(4)}, lambda x: (x - 0.5) / 2,
    ),
    "Normalization over no axis": (
        {"axis": []}, {"mean": np.float32(0.5), "variance": np.float32(4)}, lambda x: (x - 0.5) / 2,
    ),
    "ReLU without an end": ({"negative_slope": 0.0, "threshold": 0.0}, {}, lambda x: np.maximum(x, 0)),
    "RMSNormalization": (
        {"axis": [-1], "epsilon": 0.5}, {"scale": MEAN},
        lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.5) * MEAN,
    ),
    "Softmax of channels": ({}, {}, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "UnitNormalization": ({"axis": [1]}, {}, lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
    "Flatten": ({}, {}, lambda x: x.reshape(3, -1)),
    "Reshape": ({"target_shape": [6, 2, 4]}, {}, lambda x: x.reshape(3, 6, 2, 4)),
    **{
        f"{kind} at rest": ({"rate": 0.5, "stddev": 1.0, "l1": 0.5}, {}, lambda x: x)
        for kind in ("ActivityRegularization", "AlphaDropout", "GaussianDropout", "GaussianNoise", "SpatialDropout2D")
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_is_what_numpy_computes(kind):
    config, weights, want = LAYERS[kind]
    assert_near(computed(network(kind.split()[0], config, weights), X), want(X), "float32 sums near zero")


SLOPE = np.array([0.5, 2.0, -1.0, 0.0, 1.0], "f4")


@pytest.mark.parametrize("shape", [(3, 5), (3, 4, 5)])
def test_vectors_and_sequences_have_their_features_last(shape):
    x = RNG.normal(size=shape).astype("f4")
    slopes = np.broadcast_to(SLOPE, shape[1:]) * np.arange(1, 1 + shape[1])[:, None] if len(shape) == 3 else SLOPE
    slopes = np.ascontiguousarray(slopes, "f4")
    found = computed(network("PReLU", {}, {"alpha": slopes}, shape=shape), x)
    assert_near(found, np.where(x > 0, x, x * slopes), "float32 sums near zero")
    kernel, spread = RNG.normal(size=(5, 2)).astype("f4"), np.exp(x - x.max(-1, keepdims=True))
    found = computed(network("Dense", {}, {"kernel": kernel}, shape=shape), x)
    assert_near(found, x @ kernel, "float32 sums near zero")
    found = computed(network("Softmax", {"axis": -1}, shape=shape), x)
    assert_near(found, spread / spread.sum(-1, keepdims=True), "float32 sums near zero")
    scaled = computed(network("LayerScale", {}, {"gamma": SLOPE}, shape=shape), x)
    np.testing.assert_array_equal(scaled, x * SLOPE)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("Add", np.add), ("Subtract", np.subtract), ("Multiply", np.multiply), ("Maximum", np.maximum),
     ("Minimum", np.minimum)],
)  # fmt: skip
def test_operands_of_a_merge_keep_their_order(kind, rule):
    other, third = X[::-1], X * np.float32(0.5) - 1
    np.testing.assert_array_equal(computed(network(kind, {}, inputs=2), X, other), rule(X, other))
    if kind != "Subtract":  # which takes two
        found = computed(network(kind, {}, inputs=3), X, other, third)
        np.testing.assert_array_equal(found, rule(rule(X, other), third))


def test_an_average_takes_any_number_of_operands():
    values = [X, X[::-1], X * 3]
    assert_near(computed(network("Average", {}, inputs=3), *values), sum(values) / 3, "float32 sums near zero")


def test_stored_statistics_can_be_undone():
    file = network("Normalization", {"axis": -1, "mean": [[[1, -1]]], "variance": [[[4, 0.25]]], "invert": True})
    assert_near(computed(file, X), X * np.array([2, 0.5], "f4") + MEAN, "float32 sums near zero")


@pytest.mark.parametrize("without", ["gamma", "beta"])
def test_a_layer_norm_may_lack_its_scale_or_shift(without):
    weights = {"gamma": MEAN, "beta": VARIANCE}
    whole = weights | {without: np.full(2, without == "gamma", "f4")}
    options = {"axis": -1, "epsilon": 0.5}
    del weights[without]
    found, want = (computed(network("LayerNormalization", options, x), X) for x in (weights, whole))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(("window", "stride"), [(3, 2), (2, 3), (2, 2), (4, 1)])
def test_a_transposed_convolution_spreads_each_element_over_a_window(padding, window, stride):
    kernel = RNG.normal(size=(window, 3, 5, 2)).astype("f4")  # [rows, columns, results, channels]
    options = {"kernel_size": [window, 3], "strides": [stride, 2], "padding": padding}
    whole = np.zeros((3, 4 * stride + window, 6 * 2 + 3, 5))
    for i, j in np.ndindex(4, 6):
        whole[:, i * stride : i * stride + window, 2 * j : 2 * j + 3] += np.einsum("nc,rskc->nrsk", X[:, i, j], kernel)
    if padding == "same":
        start, size = max(window - stride, 0) // 2, (4 * stride, 12)
    else:
        start, size = 0, (4 * stride + max(window - stride, 0), 13)
    want = whole[:, start : start + size[0], : size[1]]  # columns: one element more than the stride is cut behind
    assert_near(computed(network("Conv2DTranspose", options, {"kernel": kernel}), X), want, "float32 sums near zero")


def test_a_separable_convolution_is_a_depthwise_and_a_pointwise_one():
    options = {"kernel_size": [3, 2], "strides": [2, 2], "padding": "same", "activation": "relu"}
    deep, wide = RNG.normal(size=(3, 2, 2, 3)).astype("f4"), RNG.normal(size=(1, 1, 6, 4)).astype("f4")
    bias = RNG.normal(size=4).astype("f4")
    middle = computed(network("DepthwiseConv2D", options | {"activation": None}, {"kernel": deep}), X)
    weights = {"depthwise_kernel": deep, "pointwise_kernel": wide, "bias": bias}
    found = computed(network("SeparableConv2D", options, weights), X)
    assert_near(found, np.maximum(middle @ wide[0, 0] + bias, 0), "float32 sums near zero")


def test_a_dense_layer_reads_the_last_axis_of_images():
    kernel, bias = RNG.normal(size=(2, 5)).astype("f4"), RNG.normal(size=5).astype("f4")
    found = computed(network("Dense", {}, {"kernel": kernel, "bias": bias}), X)
    assert_near(found, X @ kernel + bias, "float32 sums near zero")


ACTIVATIONS = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "exponential": np.exp,
    "gelu": lambda x: [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x.astype(float)],
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.2),
    "linear": lambda x: x,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * np.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def test_every_activation_has_a_formula():
    assert set(ACTIVATIONS) == {name for name in keras_rules.ACTIVATIONS if " of " not in name} | {"linear"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_formula(name):
    x = np.linspace(-8, 8, 41, dtype=np.float32)
    found = computed(network("Activation", {"activation": name}, shape=(1, 41)), x[None])
    assert_near(found[0], np.asarray(ACTIVATIONS[name](x)), "float32 formulas near zero")


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


def subclassed(file: KerasFile) -> KerasFile:
    return KerasFile(file.config | {"class_name": "MyModel"}, file.weights)


REFUSED = {
    "no functional network": (subclassed(network("ReLU", {})), "'MyModel' is not a functional or sequential network"),
    "channels first": (network("ReLU", {"data_format": "channels_first"}), "has channels first"),
    "an unknown activation": (network("Activation", {"activation": "squash"}), "'squash' is not supported"),
    "a slope": (network("ReLU", {"negative_slope": 0.1}), "negative_slope 0.1"),
    "a threshold": (network("ReLU", {"threshold": 0.1}), "threshold 0.1"),
    "a softmax over two axes": (network("Softmax", {"axis": [1, 2]}), r"a Softmax over the axes \[1, 2\]"),
    "a norm over rows": (network("LayerNormalization", {"axis": 1, "epsilon": 1}), "Normalise over the last axis"),
    "a norm over two axes": (network("LayerNormalization", {"axis": [2, 3], "epsilon": 1}), "over the last axis"),
    "squares alone": (network("LayerNormalization", {"axis": -1, "epsilon": 1, "rms_scaling": True}), "rms_scaling"),
    "statistics of rows": (network("Normalization", {"axis": 1, "mean": [1], "variance": [1]}), "over the last axis"),
    "cubic pictures": (network("UpSampling2D", {"interpolation": "bicubic", "size": [2, 2]}), "nearest or bilinear"),
    "a norm of rows": (network("BatchNormalization", {"axis": 1, "epsilon": 1}), "over axis 1 is not supported"),
    "groups of rows": (network("GroupNormalization", {"axis": 1, "epsilon": 1}), "over the last axis"),
    "a layer that is not known": (network("Mine", {}), "is a Mine, which is not supported. Export the network as ONNX"),
    "a padded transposed convolution": (network("Conv2DTranspose", {"output_padding": [1, 1]}), "output_padding"),
    "a dilated transposed convolution": (network("Conv2DTranspose", {"dilation_rate": [2, 2]}), "dilation_rate"),
    "an array that is missing": (network("BatchNormalization", {"epsilon": 1}), "moving_mean"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    file, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        graph_of(file, {"batch": 1})


ELEMENTS = [(3, 24), (3, 4, 6), (3, 4, 3, 2), (3, 2, 2, 3, 2)]


@pytest.mark.parametrize("shape", ELEMENTS, ids=str)
def test_elements_stay_in_the_order_of_keras_whatever_the_axes_before_and_behind(shape):
    x = np.arange(72, dtype="f4").reshape(shape)
    for target in ([24], [4, 6], [-1, 6], [4, 3, 2], [2, -1, 3, 2]):
        found = computed(network("Reshape", {"target_shape": target}, shape=shape), x)
        np.testing.assert_array_equal(found, x.reshape(3, *target), strict=True)
    np.testing.assert_array_equal(computed(network("Flatten", {}, shape=shape), x), x.reshape(3, -1), strict=True)
    dims = [*range(2, x.ndim), 1]
    np.testing.assert_array_equal(computed(network("Permute", {"dims": dims}, shape=shape), x), x.transpose(0, *dims))


VOLUME = RNG.normal(size=(3, 2, 4, 3, 2)).astype("f4")
ON_VOLUMES: dict[str, tuple] = {
    "BatchNormalization": (
        {"epsilon": 0.5, "axis": -1}, {"moving_mean": MEAN, "moving_variance": VARIANCE},
        lambda x: (x - MEAN) / np.sqrt(VARIANCE + 0.5),
    ),
    "LayerNormalization": (
        {"axis": 4, "epsilon": 0.5}, {"gamma": MEAN, "beta": VARIANCE},
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5) * MEAN + VARIANCE,
    ),
    "GroupNormalization": (
        {"axis": -1, "groups": 1, "epsilon": 0.5}, {"gamma": MEAN, "beta": VARIANCE},
        lambda x: (x - x.mean((1, 2, 3, 4), keepdims=True)) / np.sqrt(x.var((1, 2, 3, 4), keepdims=True) + 0.5) * MEAN
        + VARIANCE,
    ),
    "UnitNormalization": (
        {"axis": [1, -1]}, {}, lambda x: x / np.sqrt((x * x).sum((1, 4), keepdims=True)),
    ),
    "Normalization": ({"axis": -1}, {"mean": MEAN, "variance": VARIANCE}, lambda x: (x - MEAN) / np.sqrt(VARIANCE)),
    "PReLU": (
        {}, {"alpha": np.arange(48, dtype="f4").reshape(2, 4, 3, 2)},
        lambda x: np.where(x > 0, x, x * np.arange(48).reshape(2, 4, 3, 2)),
    ),
    "PReLU of each channel": (
        {}, {"alpha": MEAN.reshape(1, 1, 1, 2)}, lambda x: np.where(x > 0, x, x * MEAN),
    ),
    "LayerScale": ({}, {"gamma": MEAN}, lambda x: x * MEAN),
    "Softmax": ({"axis": 1}, {}, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "Dense": ({}, {"kernel": np.eye(2, 3, dtype="f4"), "bias": np.arange(3, dtype="f4")},
              lambda x: x @ np.eye(2, 3) + np.arange(3)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ON_VOLUMES)
def test_a_layer_of_volumes_is_what_numpy_computes(kind):
    config, weights, want = ON_VOLUMES[kind]
    file = network(kind.split()[0], config, weights, shape=VOLUME.shape)
    assert_near(computed(file, VOLUME), want(VOLUME), "float32 sums near zero")


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("Add", np.add), ("Subtract", np.subtract), ("Multiply", np.multiply), ("Maximum", np.maximum),
     ("Minimum", np.minimum)],
)  # fmt: skip
def test_a_merge_may_have_a_number_behind_its_tensor(kind, rule):
    file = network(kind, {})
    tensor = {"class_name": "__keras_tensor__", "config": {"keras_history": ["0", 0, 0]}}
    file.config["config"]["layers"][1]["inbound_nodes"] = [{"args": [tensor, 0.25]}]
    np.testing.assert_array_equal(computed(file, X), rule(X, np.float32(0.25)))


@pytest.mark.parametrize("negative", [False, True])
def test_the_last_axis_has_two_numbers(negative):
    axis = -1 if negative else 3
    for kind, weights in (
        ("BatchNormalization", {"moving_mean": MEAN, "moving_variance": VARIANCE}), ("LayerNormalization", {}),
        ("GroupNormalization", {}), ("RMSNormalization", {"scale": MEAN}),
    ):  # fmt: skip
        for wrong in (0, 1, 2, -2, [1, 3], [-2, -1]):
            options = {"axis": wrong, "epsilon": 0.5, "groups": 1}
            with pytest.raises(FormatError, match="last"):
                graph_of(network(kind, options, weights), {"batch": 1})
        graph_of(network(kind, {"axis": axis, "epsilon": 0.5, "groups": 1}, weights), {"batch": 1})
        if kind != "GroupNormalization":
            graph_of(network(kind, {"axis": [axis], "epsilon": 0.5, "groups": 1}, weights), {"batch": 1})


RANKS = {
    "AveragePooling#D": "123", "Conv#D": "123", "Conv#DTranspose": "123", "ConvLSTM#D": "123", "Cropping#D": "123",
    "DepthwiseConv#D": "12", "GlobalAveragePooling#D": "123", "GlobalMaxPooling#D": "123", "MaxPooling#D": "123",
    "SeparableConv#D": "12", "SpatialDropout#D": "123", "UpSampling#D": "123", "ZeroPadding#D": "123",
}  # fmt: skip


def test_layers_of_windows_have_the_ranks_that_keras_has():
    """One for sequences, images and volumes; and none beside these ends with a number and a D."""
    expected = {name.replace("#", i) for name, ranks in RANKS.items() for i in ranks}
    found = {name for name in RULES if re.search(r"\dD(Transpose)?$", name)}
    assert found == expected
    for kind in ("UnknownLayer", "Conv4D", "conv2d", "DepthwiseConv3D"):
        with pytest.raises(FormatError, match=f"layer layer is a {kind}, which is not supported") as caught:
            graph_of(network(kind, {}), {"batch": 1})
        assert all(name in str(caught.value) for name in RULES)
