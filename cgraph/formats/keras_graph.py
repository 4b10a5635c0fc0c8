"""Graphs of Keras networks, built layer by layer. Only the layers of `RULES` are supported; no code of a file is run.

Keras stores images as ``[n, h, w, c]``. The graph stores them as ``[n, c, h, w]`` and transposes them only where the
order of elements matters: at a Flatten or Reshape.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_apart import SECONDS, read_keras_apart
from cgraph.formats.keras_h5 import KerasFile, read_keras
from cgraph.formats.model import Model
from cgraph.ir.graph import OPS, Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops import activation, conv, norm
from cgraph.ops.arithmetic import minimum
from cgraph.ops.join import concat
from cgraph.ops.leaf import Const, Var
from cgraph.ops.pad import pad
from cgraph.ops.softmax import softmax
from cgraph.record import Record

Weights = dict[str, np.ndarray]
Rule = Callable[[dict, Weights, list[Node]], Node]
ACTIVATIONS = ("relu", "relu6", "sigmoid", "tanh", "softmax", "elu", "selu", "softplus", "softsign")
NODES = 8  # per layer, besides one per operand: filters, a pad, the layer, a bias, its shape, an activation
EXPECTED = (CgraphError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors of layers whose description has an entry of an unexpected type."""


class KerasGraph(Record):
    """The inputs (images as ``[n, c, h, w]``) and outputs of a network, with the names of the output layers."""

    inputs: list[Var]
    outputs: list[Node]
    names: tuple[str, ...] = ()


def load_keras(path: str | Path, n: int = 1, apart: bool = False, seconds: float = SECONDS) -> KerasGraph:
    """Read the graph of a Keras ``.h5`` file.

    Parameters
        n: batch size
        apart: read the file in a child process, for an untrusted file
        seconds: the longest time for this
    Raises
        FormatError: the network is not functional or sequential, or has an unsupported layer; as `read_keras`
    """
    return build_graph(read_keras_apart(path, seconds) if apart else read_keras(path), path, n)


def keras_model(file: KerasFile, path: str | Path, n: int) -> Model:
    """Return the network of a file, which messages call `path`, for batches of `n`. FormatError as in `load_keras`."""
    graph = build_graph(file, path, n)
    return Model(tuple(graph.inputs), tuple(graph.outputs), graph.names)


def build_graph(file: KerasFile, path: str | Path, n: int) -> KerasGraph:
    """Return the graph of a file. FormatError as in `load_keras`."""
    try:
        return graph_of(file, n)
    except EXPECTED as error:
        raise FormatError(f"{path}: {error or type(error).__name__}") from error


def graph_of(file: KerasFile, n: int) -> KerasGraph:
    """Build each layer after its operands."""
    config = file.config.get("config", {})
    if file.config.get("class_name") not in ("Functional", "Model"):
        raise FormatError(
            f"{file.config.get('class_name')!r} is not a functional or sequential network: save one of these"
        )
    allowance = Allowance(file.nbytes)
    nodes: dict[str, Node] = {}
    for layer, names in sort_layers(config["layers"]):
        allowance.spend(f"layer {layer['name']!r:.80}", nodes=NODES + len(names))
        nodes[layer["name"]] = build_layer(layer, file.weights, [nodes[name] for name in names], n)
    inputs = [nodes[name] for name, *_ in entries(config["input_layers"])]
    outputs = tuple(str(name) for name, *_ in entries(config["output_layers"]))
    return KerasGraph([x for x in inputs if isinstance(x, Var)], [nodes[name] for name in outputs], outputs)


def sort_layers(layers: list[dict]) -> Iterator[tuple[dict, list[str]]]:
    """Yield each layer after its operands, with their names, in linear time.

    FormatError if layers depend on each other in a cycle, or two have one name.
    """
    by_name = {layer["name"]: layer for layer in layers}
    if len(by_name) != len(layers):
        raise FormatError(f"two of {len(layers)} layers have one name: rename one")
    names_of = {name: operand_names(layer) for name, layer in by_name.items()}
    done: dict[str, bool] = {}
    waiting = list(reversed(by_name))
    while waiting:
        name = waiting[-1]
        if done.get(name):
            waiting.pop()
            continue
        missing = [x for x in dict.fromkeys(names_of[name]) if not done.get(x)]
        if not missing:
            yield by_name[name], names_of[name]
            done[waiting.pop()] = True
        elif name in done or any(x not in by_name for x in missing):
            raise FormatError(f"some of its {len(layers)} layers depend on each other in a cycle")
        else:
            done[name] = False
            waiting += missing


def entries(value: list) -> list:
    """Return ``["a", 0, 0]`` or ``[["a", 0, 0], …]`` in the latter form."""
    return [value] if value and isinstance(value[0], str) else value


def operand_names(layer: dict) -> list[str]:
    """Return the names of the layers that a layer reads, from ``[[["a", 0, 0, {}], …]]``."""
    nodes = layer.get("inbound_nodes", [])
    if len(nodes) > 1:
        raise FormatError(
            f"layer {layer['name']} is used {len(nodes)} times; only one use is supported. Copy the layer for each use"
        )
    rows = nodes[0] if nodes else []
    if not isinstance(rows, list) or not all(isinstance(x, list) and x and isinstance(x[0], str) for x in rows):
        raise FormatError(f"layer {layer['name']!r:.80} reads a {type(rows).__name__}, not a list of layers")
    return [name for name, *_ in rows]


def build_layer(layer: dict, weights: dict[str, Weights], xs: list[Node], n: int) -> Node:
    kind, config = layer["class_name"], layer["config"]
    if kind == "InputLayer":
        shape = config.get("batch_input_shape") or config["batch_shape"]
        return Var((n, *channels_first(shape[1:])), config.get("dtype", "float32"), layer["name"])
    if config.get("data_format", "channels_last") != "channels_last":
        raise FormatError(
            f"layer {layer['name']} has channels first. Save the network with data_format='channels_last'"
        )
    if kind not in RULES:
        raise FormatError(f"layer {layer['name']} is a {kind}, which is not supported. Use {', '.join(RULES)}")
    return activate(RULES[kind](config, weights.get(layer["name"], {}), xs), config.get("activation"))


def channels_first(shape: list[int]) -> tuple[int, ...]:
    return (shape[-1], *shape[:-1]) if len(shape) > 1 else tuple(shape)


def channels_last(x: Node) -> Node:
    """Return a value in Keras' order of axes."""
    return x.transpose((0, *range(2, x.ndim), 1)) if x.ndim > 2 else x


def activate(x: Node, name: str | None) -> Node:
    if name in (None, "linear"):
        return x
    if name not in ACTIVATIONS:
        raise FormatError(f"activation {name!r} is not supported. Use {', '.join(ACTIVATIONS)} or linear")
    return OPS[name](x) if name != "softmax" else softmax(x, axis=1)


def window_pad(config: dict, x: Node, window: list[int], dilation: list[int]) -> tuple[int, ...]:
    """Return the padding before and after the two axes; an odd element goes after."""
    if config["padding"] == "valid":
        return (0, 0, 0, 0)
    before, behind = [], []
    for size, w, step, d in zip(x.shape[2:], window, config["strides"], dilation):
        total = max((-(-size // step) - 1) * step + (w - 1) * d + 1 - size, 0)
        before.append(total // 2)
        behind.append(total - total // 2)
    return (*before, *behind)


def constant(x: np.ndarray) -> Node:
    """Return a Const of an array in a mapped file; an array in another order is copied piece by piece."""
    return Const(in_c_order(x), copy=False)


def with_bias(x: Node, weights: Weights) -> Node:
    bias = weights.get("bias")
    return x if bias is None else x + Const(bias.reshape(-1, *[1] * (x.ndim - 2)))


def conv2d(config: dict, weights: Weights, xs: list[Node]) -> Node:
    dilation = config.get("dilation_rate", [1, 1])
    pad = window_pad(config, xs[0], config["kernel_size"], dilation)
    filters = constant(weights["kernel"].transpose(3, 2, 0, 1))  # [r, s, c, k] -> [k, c, r, s]
    groups = config.get("groups", 1)
    y = conv.conv2d(xs[0], filters, stride=config["strides"], pad=pad, dilation=dilation, groups=groups)
    return with_bias(y, weights)


def depthwise(config: dict, weights: Weights, xs: list[Node]) -> Node:
    kernel = weights["depthwise_kernel"]  # [r, s, c, multiplier]
    r, s, c, m = kernel.shape
    dilation = config.get("dilation_rate", [1, 1])
    pad = window_pad(config, xs[0], [r, s], dilation)
    filters = constant(kernel.transpose(2, 3, 0, 1)).reshape((c * m, 1, r, s))
    y = conv.conv2d(xs[0], filters, stride=config["strides"], pad=pad, dilation=dilation, groups=c)
    return with_bias(y, weights)


def batch_norm(config: dict, weights: Weights, xs: list[Node]) -> Node:
    mean, variance = weights["moving_mean"], weights["moving_variance"]
    scale, shift = weights.get("gamma", np.ones_like(mean)), weights.get("beta", np.zeros_like(mean))
    parts = Const(scale), Const(shift), Const(mean), Const(variance)
    return norm.batch_norm(xs[0], *parts, config["epsilon"])


def dense(config: dict, weights: Weights, xs: list[Node]) -> Node:
    if xs[0].ndim != 2:
        raise FormatError(f"a Dense layer on {xs[0].spec} is not supported. Flatten its input to two axes")
    return with_bias(xs[0] @ constant(weights["kernel"]), weights)


def pool(name: str) -> Rule:
    def build(config: dict, weights: Weights, xs: list[Node]) -> Node:
        pad = window_pad(config, xs[0], config["pool_size"], [1, 1])
        return OPS[name](xs[0], config["pool_size"], stride=config["strides"], pad=pad)

    return build


def whole(name: str) -> Rule:
    def build(config: dict, weights: Weights, xs: list[Node]) -> Node:
        return OPS[name](xs[0], axis=tuple(range(2, xs[0].ndim)), keepdims=config.get("keepdims", False))

    return build


def flatten(config: dict, weights: Weights, xs: list[Node]) -> Node:
    return channels_last(xs[0]).reshape((xs[0].shape[0], xs[0].size // xs[0].shape[0]))


def reshape(config: dict, weights: Weights, xs: list[Node]) -> Node:
    y = channels_last(xs[0]).reshape((xs[0].shape[0], *config["target_shape"]))
    return y.transpose((0, y.ndim - 1, *range(1, y.ndim - 1))) if y.ndim > 2 else y


def concatenate(config: dict, weights: Weights, xs: list[Node]) -> Node:
    axis = config["axis"] % xs[0].ndim
    return concat(xs, axis=1 if axis == xs[0].ndim - 1 else axis + 1 if axis else 0)


def add(config: dict, weights: Weights, xs: list[Node]) -> Node:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def zero_pad(config: dict, weights: Weights, xs: list[Node]) -> Node:
    return pad(xs[0], [(0, 0), (0, 0), *map(tuple, config["padding"])])


def relu(config: dict, weights: Weights, xs: list[Node]) -> Node:
    for option in ("negative_slope", "threshold"):
        if config.get(option):
            raise FormatError(f"a ReLU with {option} {config[option]} is not supported. Use max_value only")
    y = activation.relu(xs[0])
    return y if config.get("max_value") is None else minimum(y, config["max_value"])


def pass_through(config: dict, weights: Weights, xs: list[Node]) -> Node:
    return xs[0]


RULES: dict[str, Rule] = {
    "Activation": pass_through,
    "Add": add,
    "AveragePooling2D": pool("avg_pool2d"),
    "BatchNormalization": batch_norm,
    "Concatenate": concatenate,
    "Conv2D": conv2d,
    "Dense": dense,
    "DepthwiseConv2D": depthwise,
    "Dropout": pass_through,
    "Flatten": flatten,
    "GlobalAveragePooling2D": whole("mean"),
    "GlobalMaxPooling2D": whole("max"),
    "MaxPooling2D": pool("max_pool2d"),
    "ReLU": relu,
    "Reshape": reshape,
    "ZeroPadding2D": zero_pad,
}
