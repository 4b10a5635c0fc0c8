"""Layers of Keras that move windows over sequences, images and volumes, and those that change their size."""

from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.keras_rules import LayerRule, Options, Weights, constant, with_bias
from cgraph.ir.graph import OPS, Node
from cgraph.ops.pad import pad
from cgraph.ops.resize import resize
from cgraph.ops.shape import broadcast_to

MODES = {"nearest": "nearest", "bilinear": "linear"}


def channels_second(x: Node) -> Node:
    """Return a sequence as ``[n, c, t]``; images and volumes have this order already."""
    return x.transpose((0, 2, 1)) if x.ndim == 3 else x


from_channels_second = channels_second  # the same exchange


def each_axis(value: Any, x: Node) -> list[int]:
    """Return a setting for each axis that windows move along."""
    values = value if isinstance(value, list) else [value] * (x.ndim - 2)
    if len(values) != x.ndim - 2:
        raise FormatError(f"its setting {value!r:.40} does not fit {x.ndim - 2} axes. Save the network again")
    return values


def window_pad(options: Options, x: Node, window: list[int], dilation: list[int]) -> tuple[int, ...]:
    """Return the padding before the axes and after them; an odd element goes after."""
    kind = options["padding"]
    if kind not in ("valid", "same", "causal"):
        raise FormatError(f"padding {kind!r:.40} is not supported. Use 'valid', 'same' or 'causal'")
    before, behind = [], []
    for size, w, step, d in zip(x.shape[2:], window, each_axis(options["strides"], x), dilation):
        total = max((-(-size // step) - 1) * step + (w - 1) * d + 1 - size, 0)
        total = (w - 1) * d if kind == "causal" else total if kind == "same" else 0
        before.append(total if kind == "causal" else total // 2)
        behind.append(total - before[-1])
    return (*before, *behind)


def filters_of(kernel: Any) -> Node:
    """Return filters ``[*window, c, k]`` as ``[k, c, *window]``."""
    return constant(kernel.transpose(kernel.ndim - 1, kernel.ndim - 2, *range(kernel.ndim - 2)))


def convolved(options: Options, x: Node, filters: Node, window: list[int], groups: int) -> Node:
    dilation = each_axis(options.get("dilation_rate", 1), x)
    around = window_pad(options, x, window, dilation)
    stride = each_axis(options["strides"], x)
    return OPS[f"conv{x.ndim - 2}d"](x, filters, stride=stride, pad=around, dilation=dilation, groups=groups)


def conv(options: Options, weights: Weights, xs: list[Node]) -> Node:
    x = channels_second(xs[0])
    window = each_axis(options["kernel_size"], x)
    y = convolved(options, x, filters_of(weights["kernel"]), window, options.get("groups", 1))
    return with_bias(from_channels_second(y), weights)


def depthwise(options: Options, weights: Weights, xs: list[Node]) -> Node:
    x, kernel = channels_second(xs[0]), weights.get("depthwise_kernel", weights.get("kernel"))  # the latter in Keras 3
    if kernel is None:
        raise FormatError(f"a layer of depthwise filters has {sorted(weights)}, not a kernel")
    *window, c, m = kernel.shape  # [*window, c, multiplier]
    rank = len(window)
    filters = constant(kernel.transpose(rank, rank + 1, *range(rank))).reshape((c * m, 1, *window))
    return with_bias(from_channels_second(convolved(options, x, filters, window, c)), weights)


def separable(options: Options, weights: Weights, xs: list[Node]) -> Node:
    y = channels_second(depthwise(options, {"kernel": weights["depthwise_kernel"]}, xs))
    y = OPS[f"conv{y.ndim - 2}d"](y, filters_of(weights["pointwise_kernel"]))
    return with_bias(from_channels_second(y), weights)


def transposed_conv(options: Options, weights: Weights, xs: list[Node]) -> Node:
    """The result has stride times the size; with ``padding="valid"`` also what a larger window adds."""
    x = channels_second(xs[0])
    if options.get("output_padding") is not None or set(each_axis(options.get("dilation_rate", 1), x)) != {1}:
        raise FormatError("transposed filters with output_padding or dilation_rate are not supported. Leave them out")
    sizes = list(zip(each_axis(options["kernel_size"], x), each_axis(options["strides"], x)))
    cut = [max(w - s, 0) if options["padding"] == "same" else 0 for w, s in sizes]
    more = tuple(max(s - w, 0) for w, s in sizes)
    before = [n // 2 for n in cut]
    around = (*before, *(n - m for n, m in zip(cut, before)))
    kernel = weights["kernel"]  # [*window, k, c]
    rank = kernel.ndim - 2
    filters = constant(kernel.transpose(rank + 1, rank, *range(rank)))
    y = OPS[f"conv_transpose{rank}d"](x, filters, [s for _, s in sizes], around, output_pad=more)
    return with_bias(from_channels_second(y), weights)


def pool(name: str) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        x = channels_second(xs[0])
        window = each_axis(options["pool_size"], x)
        around = window_pad(options, x, window, [1] * len(window))
        y = OPS[f"{name}{len(window)}d"](x, window, stride=each_axis(options["strides"], x), pad=around)
        return from_channels_second(y)

    return LayerRule(build)


def whole(name: str) -> LayerRule:
    def build(options: Options, weights: Weights, xs: list[Node]) -> Node:
        axes = (1,) if xs[0].ndim == 3 else tuple(range(2, xs[0].ndim))
        return OPS[name](xs[0], axis=axes, keepdims=options.get("keepdims", False))

    return LayerRule(build)


def pairs(value: Any, x: Node) -> list[tuple[int, int]]:
    """Return the elements before and after each axis; one pair or number may stand for an axis of a sequence."""
    rows = [value] if x.ndim == 3 and not (isinstance(value, list) and isinstance(value[0], list)) else value
    return [(row, row) if isinstance(row, int) else tuple(row) for row in rows]


def crop(options: Options, weights: Weights, xs: list[Node]) -> Node:
    x = channels_second(xs[0])
    cuts = [slice(a, size - b) for size, (a, b) in zip(x.shape[2:], pairs(options["cropping"], x))]
    return from_channels_second(x[(slice(None), slice(None), *cuts)])


def zero_pad(options: Options, weights: Weights, xs: list[Node]) -> Node:
    x = channels_second(xs[0])
    return from_channels_second(pad(x, [(0, 0), (0, 0), *pairs(options["padding"], x)]))


def upsample(options: Options, weights: Weights, xs: list[Node]) -> Node:
    x = channels_second(xs[0])
    times = each_axis(options["size"], x)
    sizes = [n * k for n, k in zip(x.shape[2:], times)]
    mode = options.get("interpolation", "nearest")
    if mode != "nearest":
        return resized(x, sizes, mode)
    spread = [k for n in x.shape[2:] for k in (n, 1)]
    full = [k for pair in zip(x.shape[2:], times) for k in pair]
    y = broadcast_to(x.reshape((*x.shape[:2], *spread)), (*x.shape[:2], *full))
    return from_channels_second(y.reshape((*x.shape[:2], *sizes)))


def resize_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
    if options.get("crop_to_aspect_ratio") or options.get("pad_to_aspect_ratio") or options.get("antialias"):
        raise FormatError("a Resizing that keeps the aspect ratio, or with antialias, is not supported. Leave it out")
    return resized(xs[0], [options["height"], options["width"]], options.get("interpolation", "bilinear"))


def resized(x: Node, sizes: list[int], mode: str) -> Node:
    if mode not in MODES:
        raise FormatError(f"interpolation {mode!r:.40} is not supported. Use {' or '.join(MODES)}")
    return resize(x, tuple(sizes), MODES[mode], "half_pixel", "round_prefer_ceil")


RULES: dict[str, LayerRule] = {
    **{f"AveragePooling{i}D": pool("avg_pool") for i in (1, 2, 3)},
    **{f"Conv{i}D": LayerRule(conv, ("kernel", "bias")) for i in (1, 2, 3)},
    **{f"Conv{i}DTranspose": LayerRule(transposed_conv, ("kernel", "bias")) for i in (1, 2, 3)},
    **{f"Cropping{i}D": LayerRule(crop) for i in (1, 2, 3)},
    **{f"DepthwiseConv{i}D": LayerRule(depthwise, ("kernel", "bias")) for i in (1, 2)},
    **{f"GlobalAveragePooling{i}D": whole("mean") for i in (2, 3)},
    **{f"GlobalMaxPooling{i}D": whole("max") for i in (1, 2, 3)},
    **{f"MaxPooling{i}D": pool("max_pool") for i in (1, 2, 3)},
    "Resizing": LayerRule(resize_layer),
    **{f"SeparableConv{i}D": LayerRule(separable, ("depthwise_kernel", "pointwise_kernel", "bias")) for i in (1, 2)},
    **{f"UpSampling{i}D": LayerRule(upsample) for i in (1, 2, 3)},
    **{f"ZeroPadding{i}D": LayerRule(zero_pad) for i in (1, 2, 3)},
}
