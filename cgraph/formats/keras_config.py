"""The layers of a network as Keras describes them: functional or sequential, by Keras 2 or 3.

A network that is a layer of another one is replaced by its own layers, so the result is one list.
"""

import re
from collections.abc import Iterator
from typing import Any

from cgraph.errors import FormatError
from cgraph.record import Record

FUNCTIONAL, SEQUENTIAL = ("Functional", "Model"), "Sequential"
TENSOR = "__keras_tensor__"
SHAPES = ("batch_input_shape", "batch_shape")
MOST_DEPTH = 16  # networks within one another
IDENTITY = "Identity"

Rows = list[dict[str, Any]]


class KerasLayer(Record):
    """One layer.

    Fields
        kind: name of its class, such as ``Conv2D``
        path: its name, after the names of the networks around it
        options: its settings
        operands: names of the layers that it reads; a number stands for itself
        store: its group in the weights of an archive, such as ``layers/conv2d_1``
    """

    kind: str
    path: tuple[str, ...]
    options: dict[str, Any]
    operands: tuple[str | float, ...]
    store: str

    @property
    def name(self) -> str:
        """Return the names of the path, separated by slashes."""
        return "/".join(self.path)


class KerasNetwork(Record):
    """The layers of a network in any order, and the names of those that are its inputs and outputs."""

    layers: list[KerasLayer]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def network_of(description: dict[str, Any], path: tuple[str, ...] = (), store: str = "") -> KerasNetwork:
    """Return the network of a description, as Keras writes it.

    Parameters
        path, store: of the layer which this network is; empty for the outermost network
    Raises
        FormatError: the network is not functional or sequential, or uses a layer in a way that is not supported
    """
    if len(path) > MOST_DEPTH:
        raise FormatError(f"it has more than {MOST_DEPTH} networks within one another. Take the inner ones out")
    rows, inputs, outputs = parts_of(description)
    layers: list[KerasLayer] = []
    counts: dict[str, int] = {}
    for row in rows:
        kind, operands = row["class_name"], operands_of(row, path)
        group = snake_case(kind)
        counts[group] = counts.get(group, -1) + 1
        place = f"{store}layers/{group}{f'_{counts[group]}' if counts[group] else ''}"
        here = (*path, row["name"])
        if kind in (*FUNCTIONAL, SEQUENTIAL):
            layers += inlined(network_of(row, here, f"{place}/"), here, operands)
        else:
            layers.append(KerasLayer(kind, here, row["config"], operands, place))
    return KerasNetwork(layers, within(path, inputs), within(path, outputs))


def parts_of(description: dict[str, Any]) -> tuple[Rows, list[str], list[str]]:
    """Return the layers of a description, each with its name, and the names of the inputs and outputs."""
    kind = description.get("class_name")
    if kind not in (*FUNCTIONAL, SEQUENTIAL):
        raise FormatError(f"{kind!r:.80} is not a functional or sequential network: save one of these")
    config = description["config"]
    rows = [{**row, "name": str(row.get("name", row["config"].get("name")))} for row in config["layers"]]
    if kind == SEQUENTIAL:
        rows = chained(config, rows)
        return rows, [rows[0]["name"]], [rows[-1]["name"]]
    return rows, entries(config["input_layers"]), entries(config["output_layers"])


def chained(config: dict[str, Any], rows: Rows) -> Rows:
    """Return the layers of a sequential network, an input layer first; each reads the one before it."""
    if not rows:
        raise FormatError("the sequential network has no layers")
    if rows[0]["class_name"] != "InputLayer":
        shape = config.get("build_input_shape") or input_shape(rows[0])
        if not shape:
            raise FormatError("the sequential network has no input shape. Build the model before you save it")
        first = {"batch_input_shape": shape, "dtype": "float32"}
        rows = [{"class_name": "InputLayer", "name": "input", "config": first}, *rows]
    before = [None, *(x["name"] for x in rows)]
    return [{**x, "inbound_nodes": [[[name, 0, 0]]] if name else []} for x, name in zip(rows, before)]


def input_shape(row: dict[str, Any]) -> Any:
    """Return the shape that a layer declares for its input, or the first layer of a network; None if there is none."""
    config = row["config"]
    while row["class_name"] in (*FUNCTIONAL, SEQUENTIAL) and not config.get("build_input_shape"):
        row = config["layers"][0]
        config = row["config"]
    return next((config[x] for x in (*SHAPES, "build_input_shape") if config.get(x)), None)


def inlined(inner: KerasNetwork, path: tuple[str, ...], operands: tuple[str | float, ...]) -> Iterator[KerasLayer]:
    """Yield the layers of an inner network: its inputs pass the operands on, a last layer passes each output on."""
    if len(operands) != len(inner.inputs):
        raise FormatError(
            f"network {'/'.join(path):.80} has {len(inner.inputs)} inputs and reads {len(operands)} values"
        )
    values = dict(zip(inner.inputs, operands))
    for layer in inner.layers:
        if layer.kind == "InputLayer" and layer.name in values:
            yield KerasLayer(IDENTITY, layer.path, {}, (values[layer.name],), layer.store)
        else:
            yield layer
    for i, output in enumerate(inner.outputs):
        yield KerasLayer(IDENTITY, (*path[:-1], numbered(path[-1], i)), {}, (output,), "")


def within(path: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    return tuple("/".join((*path, name)) for name in names)


def numbered(name: str, output: Any) -> str:
    """Return the name of one output of a layer. The first output has the name of the layer."""
    return f"{name}:{output}" if output else str(name)


def entries(value: Any) -> list[str]:
    """Return the names of ``["a", 0, 0]`` or ``[["a", 0, 0], …]``: layer, use, number of the output."""
    if not isinstance(value, list):
        raise FormatError(f"its inputs or outputs are a {type(value).__name__}. Save a network with a list of them")
    rows = [value] if value and isinstance(value[0], str) else value
    return [numbered(row[0], row[2] if len(row) > 2 else 0) for row in rows]


def operands_of(row: dict[str, Any], path: tuple[str, ...]) -> tuple[str | float, ...]:
    """Return what a layer reads, as in `KerasLayer`.

    Keras 2 writes ``[[["a", 0, 0, {}], …]]``, Keras 3 ``[{"args": [tensor or [tensor, …]], "kwargs": {}}]``.
    """
    nodes = row.get("inbound_nodes", [])
    name = f"layer {row['name']!r:.80}"
    if len(nodes) > 1:
        raise FormatError(f"{name} is used {len(nodes)} times; only one use is supported. Copy the layer for each use")
    node = nodes[0] if nodes else []
    if isinstance(node, dict) and "args" in node:
        return tuple(x if isinstance(x, float) else within(path, [x])[0] for x in arguments(node, name))
    if not isinstance(node, list) or not all(isinstance(x, list) and x and isinstance(x[0], str) for x in node):
        raise FormatError(f"{name} reads a {type(node).__name__}, not a list of layers")
    return within(path, entries(node))


def arguments(node: dict[str, Any], name: str) -> Iterator[str | float]:
    """Yield the arguments of a call; a list of tensors may be one argument."""
    for option, value in node.get("kwargs", {}).items():
        if not all(x is None or isinstance(x, bool) for x in (value if isinstance(value, list) else [value])):
            raise FormatError(f"{name} is called with {option}={value!r:.40}; only arguments by position are supported")
    for value in (y for x in node["args"] for y in (x if isinstance(x, list) else [x])):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)
        elif isinstance(value, dict) and value.get("class_name") == TENSOR:
            layer, _, output = value["config"]["keras_history"]
            yield numbered(layer, output)
        else:
            raise FormatError(f"{name} is called with {value!r:.40}; only tensors and numbers are supported")


def snake_case(name: str) -> str:
    """Return the name of a class as Keras writes it in an archive: ``DepthwiseConv2D`` is ``depthwise_conv2d``."""
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
