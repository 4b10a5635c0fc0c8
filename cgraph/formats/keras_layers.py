"""The layers of Keras as nodes. A layer is one row of `RULES`; layers that are not there are not supported."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats import keras_sequences, keras_windows
from cgraph.formats.keras_rules import (
    KerasRule,
    LayerRule,
    Options,
    Weights,
    axis_of,
    channels_last,
    constant,
    from_channels_last,
    per_channel,
    unit_length,
    with_bias,
)
from cgraph.formats.keras_windows import channels_second, from_channels_second
from cgraph.ir.graph import Node
from cgraph.ops import activation, arithmetic, norm
from cgraph.ops.leaf import Const
from cgraph.ops.softmax import softmax

STATISTICS = ("mean", "variance")
SMALLEST_DEVIATION = 1e-7  # of a Normalization; smaller ones are replaced by it


class Statistics(LayerRule):
    """A layer whose arrays may be among its options."""

    def arrays_of(self, options: Options) -> list[str]:
        """Return the names of the arrays that a layer with these options has."""
        return [] if options.get("mean") is not None else list(self.arrays)


def batch_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    axes = options["axis"] if isinstance(options.get("axis"), list) else [options.get("axis", -1)]
    if [axis % xs[0].ndim for axis in axes] != [xs[0].ndim - 1]:
        raise FormatError(f"a BatchNormalization over axis {options['axis']!r:.40} is not supported. Use the last one")
    mean, variance = weights["moving_mean"], weights["moving_variance"]
    scale, shift = weights.get("gamma", np.ones_like(mean)), weights.get("beta", np.zeros_like(mean))
    parts = Const(scale), Const(shift), Const(mean), Const(variance)
    return from_channels_second(norm.batch_norm(channels_second(xs[0]), *parts, options["epsilon"]))


def layer_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    check_last_axis("LayerNormalization", options["axis"], xs[0])
    if options.get("rms_scaling"):
        raise FormatError("a LayerNormalization with rms_scaling is not supported. Export the network as ONNX")
    channels = xs[0].shape[axis_of(-1, xs[0])]
    scale = weights.get("gamma", np.ones(channels, np.float32))
    shift = weights.get("beta", np.zeros(channels, np.float32))
    y = norm.layer_norm(channels_last(xs[0]), Const(scale), Const(shift), options["epsilon"])
    return from_channels_last(y)


def normalise(options: Options, weights: Weights, xs: list[Node]) -> Node:
    """Subtract stored means and divide by stored deviations; or the reverse."""
    if options["axis"] not in (None, []):
        check_last_axis("Normalization", options["axis"], xs[0])
    mean, variance = (
        np.asarray(options[x] if options.get(x) is not None else weights[x], np.float32).reshape(-1) for x in STATISTICS
    )
    shift, scale = per_channel(mean, xs[0]), per_channel(np.maximum(np.sqrt(variance), SMALLEST_DEVIATION), xs[0])
    return xs[0] * scale + shift if options.get("invert") else (xs[0] - shift) / scale


def check_last_axis(kind: str, axis: Any, x: Node) -> None:
    """Raise FormatError unless `axis` is the last one in Keras' order, or a list of it."""
    axes = axis if isinstance(axis, list) else [axis]
    if [a % x.ndim for a in axes] != [x.ndim - 1]:
        raise FormatError(f"a {kind} over the axes {axis!r:.40} is not supported. Normalise over the last axis")


def rms_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    check_last_axis("RMSNormalization", options["axis"], xs[0])
    return from_channels_last(norm.rms_norm(channels_last(xs[0]), Const(weights["scale"]), options["epsilon"]))


def group_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    check_last_axis("GroupNormalization", options["axis"], xs[0])
    x = channels_second(xs[0])
    channels = x.shape[1]
    groups = channels if options["groups"] == -1 else options["groups"]
    scale = weights.get("gamma", np.ones(channels, np.float32))
    shift = weights.get("beta", np.zeros(channels, np.float32))
    return from_channels_second(norm.group_norm(x, Const(scale), Const(shift), groups, options["epsilon"]))


def unit_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    axes = options["axis"] if isinstance(options["axis"], list) else [options["axis"]]
    return unit_length(xs[0], tuple(axis_of(axis, xs[0]) for axis in axes))


def scale_channels(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0] * per_channel(weights["gamma"], xs[0])


def dense(options: Options, weights: Weights, xs: list[Node]) -> Node:
    y = channels_last(xs[0]) @ constant(weights["kernel"])
    return with_bias(from_channels_last(y), weights)


def flatten(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return channels_last(xs[0]).reshape((xs[0].shape[0], xs[0].size // xs[0].shape[0]))


def reshape(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return from_channels_last(channels_last(xs[0]).reshape((xs[0].shape[0], *options["target_shape"])))


def permute(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return from_channels_last(channels_last(xs[0]).transpose((0, *options["dims"])))


def merge(operation: Callable[[Node, Node], Node]) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        return reduce(operation, xs)

    return LayerRule(build, takes_numbers=True, keeps_mask=True)


def softmax_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
    axis = options.get("axis", -1)
    if not isinstance(axis, int):
        raise FormatError(f"a Softmax over the axes {axis!r:.40} is not supported. Use one axis")
    return softmax(xs[0], axis=axis_of(axis, xs[0]))


def leaky_relu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return activation.leaky_relu(xs[0], options["negative_slope"] if "negative_slope" in options else options["alpha"])


def rescale(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0] * options["scale"] + options["offset"]


def average(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return reduce(arithmetic.add, xs) / len(xs)


def elu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return activation.elu(xs[0], options.get("alpha", 1.0))


def prelu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    slope = weights["alpha"]
    return activation.prelu(xs[0], Const(np.ascontiguousarray(np.moveaxis(slope, -1, 0)) if slope.ndim > 2 else slope))


def relu_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
    for option in ("negative_slope", "threshold"):
        if options.get(option):
            raise FormatError(f"a ReLU with {option} {options[option]} is not supported. Use max_value only")
    y = activation.relu(xs[0])
    return y if options.get("max_value") is None else arithmetic.minimum(y, options["max_value"])


def pass_through(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0]


RULES: dict[str, KerasRule] = {
    "Activation": LayerRule(pass_through, keeps_mask=True),
    "ActivityRegularization": LayerRule(pass_through, keeps_mask=True),
    "Add": merge(arithmetic.add),
    "AlphaDropout": LayerRule(pass_through, keeps_mask=True),
    "Average": LayerRule(average, keeps_mask=True),
    "BatchNormalization": LayerRule(batch_norm, ("gamma", "beta", "moving_mean", "moving_variance"), keeps_mask=True),
    "Dense": LayerRule(dense, ("kernel", "bias"), keeps_mask=True),
    "Dropout": LayerRule(pass_through, keeps_mask=True),
    "ELU": LayerRule(elu, keeps_mask=True),
    "Flatten": LayerRule(flatten),
    "GaussianDropout": LayerRule(pass_through, keeps_mask=True),
    "GaussianNoise": LayerRule(pass_through, keeps_mask=True),
    "GroupNormalization": LayerRule(group_norm, ("gamma", "beta"), keeps_mask=True),
    "Identity": LayerRule(pass_through, keeps_mask=True),
    "LayerNormalization": LayerRule(layer_norm, ("gamma", "beta"), keeps_mask=True),
    "LayerScale": LayerRule(scale_channels, ("gamma",)),
    "LeakyReLU": LayerRule(leaky_relu, keeps_mask=True),
    "Maximum": merge(arithmetic.maximum),
    "Minimum": merge(arithmetic.minimum),
    "Multiply": merge(arithmetic.multiply),
    "Normalization": Statistics(normalise, STATISTICS, keeps_mask=True),
    "PReLU": LayerRule(prelu, ("alpha",), keeps_mask=True),
    "Permute": LayerRule(permute),
    "RMSNormalization": LayerRule(rms_norm, ("scale",)),
    "ReLU": LayerRule(relu_layer, keeps_mask=True),
    "Rescaling": LayerRule(rescale, keeps_mask=True),
    "Reshape": LayerRule(reshape),
    "Softmax": LayerRule(softmax_layer),
    **{f"SpatialDropout{i}D": LayerRule(pass_through, keeps_mask=True) for i in (1, 2, 3)},
    "StochasticDepth": LayerRule(pass_through),
    "Subtract": merge(arithmetic.subtract),
    "UnitNormalization": LayerRule(unit_norm, keeps_mask=True),
    **keras_windows.RULES,
    **keras_sequences.RULES,
}
