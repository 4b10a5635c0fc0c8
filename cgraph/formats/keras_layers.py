"""The layers of Keras as nodes. A layer is one row of `RULES`; layers that are not there are not supported."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.ir.graph import OPS, Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops import activation, arithmetic, conv, norm
from cgraph.ops.elementary import exp
from cgraph.ops.join import concat
from cgraph.ops.leaf import Const
from cgraph.ops.pad import pad
from cgraph.ops.shape import broadcast_to
from cgraph.ops.softmax import softmax
from cgraph.record import Record

Options = dict[str, Any]
Weights = dict[str, np.ndarray]
Build = Callable[[Options, Weights, list[Node]], Node]
ACTIVATIONS = {
    **{name: OPS[name] for name in ("relu", "relu6", "sigmoid", "tanh", "elu", "selu", "softplus", "softsign")},
    "exponential": exp,
    "gelu": activation.gelu,
    "hard_silu": activation.hard_swish,
    "hard_swish": activation.hard_swish,
    "leaky_relu": lambda x: activation.leaky_relu(x, 0.2),
    "mish": activation.mish,
    "silu": activation.swish,
    "softmax": lambda x: softmax(x, axis=1),
    "swish": activation.swish,
}
SWITCHES = {"gamma": "scale", "beta": "center", "bias": "use_bias"}
"""Options of a layer without which it lacks an array."""
STATISTICS = ("mean", "variance")
SMALLEST_DEVIATION = 1e-7  # of a Normalization; smaller ones are replaced by it


class LayerRule(Record):
    """How a layer becomes nodes.

    Fields
        build: returns the node, from the options, the arrays by name, and the operands
        arrays: names of its arrays, in the order of an archive
        takes_numbers: if operands may be numbers
    """

    build: Build
    arrays: tuple[str, ...] = ()
    takes_numbers: bool = False

    def arrays_of(self, options: Options) -> list[str]:
        """Return the names of the arrays that a layer with these options has."""
        if self.arrays == STATISTICS and options.get("mean") is not None:
            return []
        return [x for x in self.arrays if options.get(SWITCHES.get(x, ""), True)]


def channels_first(shape: list[int]) -> tuple[int, ...]:
    return (shape[-1], *shape[:-1]) if len(shape) > 1 else tuple(shape)


def channels_last(x: Node) -> Node:
    """Return a value in Keras' order of axes."""
    return x.transpose((0, *range(2, x.ndim), 1)) if x.ndim > 2 else x


def from_channels_last(x: Node) -> Node:
    """Return a value in Keras' order of axes in the graph's order."""
    return x.transpose((0, x.ndim - 1, *range(1, x.ndim - 1))) if x.ndim > 2 else x


def activate(x: Node, name: str | None) -> Node:
    if name in (None, "linear"):
        return x
    if name not in ACTIVATIONS:
        raise FormatError(f"activation {name!r} is not supported. Use {', '.join(ACTIVATIONS)} or linear")
    return ACTIVATIONS[name](x)


def window_pad(options: Options, x: Node, window: list[int], dilation: list[int]) -> tuple[int, ...]:
    """Return the padding before and after the two axes; an odd element goes after."""
    if options["padding"] == "valid":
        return (0, 0, 0, 0)
    before, behind = [], []
    for size, w, step, d in zip(x.shape[2:], window, options["strides"], dilation):
        total = max((-(-size // step) - 1) * step + (w - 1) * d + 1 - size, 0)
        before.append(total // 2)
        behind.append(total - total // 2)
    return (*before, *behind)


def constant(x: np.ndarray) -> Node:
    """Return a Const of an array in a mapped file; an array in another order is copied piece by piece."""
    return Const(in_c_order(x), copy=False)


def with_bias(x: Node, weights: Weights) -> Node:
    bias = weights.get("bias")
    return x if bias is None else x + per_channel(bias, x)


def conv2d(options: Options, weights: Weights, xs: list[Node]) -> Node:
    dilation = options.get("dilation_rate", [1, 1])
    pad = window_pad(options, xs[0], options["kernel_size"], dilation)
    filters = constant(weights["kernel"].transpose(3, 2, 0, 1))  # [r, s, c, k] -> [k, c, r, s]
    groups = options.get("groups", 1)
    y = conv.conv2d(xs[0], filters, stride=options["strides"], pad=pad, dilation=dilation, groups=groups)
    return with_bias(y, weights)


def depthwise(options: Options, weights: Weights, xs: list[Node]) -> Node:
    kernel = weights.get("depthwise_kernel", weights.get("kernel"))  # [r, s, c, multiplier]; the latter in Keras 3
    if kernel is None:
        raise FormatError(f"a DepthwiseConv2D has {sorted(weights)}, not a kernel")
    r, s, c, m = kernel.shape
    dilation = options.get("dilation_rate", [1, 1])
    pad = window_pad(options, xs[0], [r, s], dilation)
    filters = constant(kernel.transpose(2, 3, 0, 1)).reshape((c * m, 1, r, s))
    y = conv.conv2d(xs[0], filters, stride=options["strides"], pad=pad, dilation=dilation, groups=c)
    return with_bias(y, weights)


def batch_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    mean, variance = weights["moving_mean"], weights["moving_variance"]
    scale, shift = weights.get("gamma", np.ones_like(mean)), weights.get("beta", np.zeros_like(mean))
    parts = Const(scale), Const(shift), Const(mean), Const(variance)
    return norm.batch_norm(xs[0], *parts, options["epsilon"])


def layer_norm(options: Options, weights: Weights, xs: list[Node]) -> Node:
    check_last_axis("LayerNormalization", options["axis"], xs[0])
    if options.get("rms_scaling"):
        raise FormatError("a LayerNormalization with rms_scaling is not supported. Export the network as ONNX")
    channels = xs[0].shape[1]
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


def per_channel(array: np.ndarray, x: Node) -> Node:
    """Return one number for each channel, or one for all, in a shape that broadcasts with `x`."""
    return Const(array.reshape(-1, *[1] * (x.ndim - 2)))


def scale_channels(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0] * per_channel(weights["gamma"], xs[0])


def dense(options: Options, weights: Weights, xs: list[Node]) -> Node:
    y = channels_last(xs[0]) @ constant(weights["kernel"])
    return with_bias(from_channels_last(y), weights)


def pool(name: str) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        pad = window_pad(options, xs[0], options["pool_size"], [1, 1])
        return OPS[name](xs[0], options["pool_size"], stride=options["strides"], pad=pad)

    return LayerRule(build)


def whole(name: str) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        return OPS[name](xs[0], axis=tuple(range(2, xs[0].ndim)), keepdims=options.get("keepdims", False))

    return LayerRule(build)


def flatten(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return channels_last(xs[0]).reshape((xs[0].shape[0], xs[0].size // xs[0].shape[0]))


def reshape(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return from_channels_last(channels_last(xs[0]).reshape((xs[0].shape[0], *options["target_shape"])))


def permute(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return from_channels_last(channels_last(xs[0]).transpose((0, *options["dims"])))


def concatenate(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return concat(xs, axis=axis_of(options["axis"], xs[0]))


def axis_of(axis: int, x: Node) -> int:
    """Return an axis in the graph's order from one in Keras' order."""
    axis %= x.ndim
    return 1 if axis == x.ndim - 1 else axis + 1 if axis else 0


def merge(operation: Callable[[Node, Node], Node]) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        return reduce(operation, xs)

    return LayerRule(build, takes_numbers=True)


def softmax_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
    axis = options.get("axis", -1)
    if not isinstance(axis, int):
        raise FormatError(f"a Softmax over the axes {axis!r:.40} is not supported. Use one axis")
    return softmax(xs[0], axis=axis_of(axis, xs[0]))


def leaky_relu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return activation.leaky_relu(xs[0], options["negative_slope"] if "negative_slope" in options else options["alpha"])


def rescale(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0] * options["scale"] + options["offset"]


def separable(options: Options, weights: Weights, xs: list[Node]) -> Node:
    y = depthwise(options, {"kernel": weights["depthwise_kernel"]}, xs)
    filters = constant(weights["pointwise_kernel"].transpose(3, 2, 0, 1))
    return with_bias(conv.conv2d(y, filters), weights)


def upsample(options: Options, weights: Weights, xs: list[Node]) -> Node:
    if options.get("interpolation", "nearest") != "nearest":
        raise FormatError(f"an UpSampling2D by {options['interpolation']!r:.40} is not supported. Use 'nearest'")
    n, c, h, w = xs[0].shape
    r, s = options["size"]
    return broadcast_to(xs[0].reshape((n, c, h, 1, w, 1)), (n, c, h, r, w, s)).reshape((n, c, h * r, w * s))


def transposed_conv(options: Options, weights: Weights, xs: list[Node]) -> Node:
    """The result has stride times the size; with ``padding="valid"`` also what a larger window adds."""
    if options.get("output_padding") is not None or options.get("dilation_rate", [1, 1]) != [1, 1]:
        raise FormatError("a Conv2DTranspose with output_padding or dilation_rate is not supported. Leave them out")
    cut = [max(w - s, 0) if options["padding"] == "same" else 0 for w, s in windows_of(options)]
    more = tuple(max(s - w, 0) for w, s in windows_of(options))
    around = [x // 2 for x in cut]
    filters = constant(weights["kernel"].transpose(3, 2, 0, 1))  # [r, s, c, k] -> [k, c, r, s]
    pads = (*around, *(x - y for x, y in zip(cut, around)))
    return with_bias(conv.conv_transpose2d(xs[0], filters, options["strides"], pads, output_pad=more), weights)


def windows_of(options: Options) -> list[tuple[int, int]]:
    """Return the size of the window and the stride along each axis."""
    return list(zip(options["kernel_size"], options["strides"]))


def crop(options: Options, weights: Weights, xs: list[Node]) -> Node:
    rows, columns = (slice(before, size - after) for size, (before, after) in zip(xs[0].shape[2:], options["cropping"]))
    return xs[0][:, :, rows, columns]


def average(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return reduce(arithmetic.add, xs) / len(xs)


def elu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return activation.elu(xs[0], options.get("alpha", 1.0))


def prelu(options: Options, weights: Weights, xs: list[Node]) -> Node:
    slope = weights["alpha"]
    return activation.prelu(xs[0], Const(np.ascontiguousarray(np.moveaxis(slope, -1, 0))))


def zero_pad(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return pad(xs[0], [(0, 0), (0, 0), *map(tuple, options["padding"])])


def relu_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
    for option in ("negative_slope", "threshold"):
        if options.get(option):
            raise FormatError(f"a ReLU with {option} {options[option]} is not supported. Use max_value only")
    y = activation.relu(xs[0])
    return y if options.get("max_value") is None else arithmetic.minimum(y, options["max_value"])


def pass_through(options: Options, weights: Weights, xs: list[Node]) -> Node:
    return xs[0]


RULES: dict[str, LayerRule] = {
    "Activation": LayerRule(pass_through),
    "ActivityRegularization": LayerRule(pass_through),
    "Add": merge(arithmetic.add),
    "AlphaDropout": LayerRule(pass_through),
    "Average": LayerRule(average),
    "AveragePooling2D": pool("avg_pool2d"),
    "BatchNormalization": LayerRule(batch_norm, ("gamma", "beta", "moving_mean", "moving_variance")),
    "Concatenate": LayerRule(concatenate),
    "Conv2D": LayerRule(conv2d, ("kernel", "bias")),
    "Conv2DTranspose": LayerRule(transposed_conv, ("kernel", "bias")),
    "Cropping2D": LayerRule(crop),
    "Dense": LayerRule(dense, ("kernel", "bias")),
    "DepthwiseConv2D": LayerRule(depthwise, ("kernel", "bias")),
    "Dropout": LayerRule(pass_through),
    "ELU": LayerRule(elu),
    "Flatten": LayerRule(flatten),
    "GaussianDropout": LayerRule(pass_through),
    "GaussianNoise": LayerRule(pass_through),
    "GlobalAveragePooling2D": whole("mean"),
    "GlobalMaxPooling2D": whole("max"),
    "Identity": LayerRule(pass_through),
    "LayerNormalization": LayerRule(layer_norm, ("gamma", "beta")),
    "LayerScale": LayerRule(scale_channels, ("gamma",)),
    "LeakyReLU": LayerRule(leaky_relu),
    "MaxPooling2D": pool("max_pool2d"),
    "Maximum": merge(arithmetic.maximum),
    "Minimum": merge(arithmetic.minimum),
    "Multiply": merge(arithmetic.multiply),
    "Normalization": LayerRule(normalise, STATISTICS),
    "PReLU": LayerRule(prelu, ("alpha",)),
    "Permute": LayerRule(permute),
    "ReLU": LayerRule(relu_layer),
    "Rescaling": LayerRule(rescale),
    "Reshape": LayerRule(reshape),
    "SeparableConv2D": LayerRule(separable, ("depthwise_kernel", "pointwise_kernel", "bias")),
    "Softmax": LayerRule(softmax_layer),
    "SpatialDropout2D": LayerRule(pass_through),
    "StochasticDepth": LayerRule(pass_through),
    "Subtract": merge(arithmetic.subtract),
    "UpSampling2D": LayerRule(upsample),
    "ZeroPadding2D": LayerRule(zero_pad),
}
