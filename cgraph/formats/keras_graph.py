"""Graphs of Keras networks, built layer by layer. No code of a file is run.

Keras stores images as ``[n, h, w, c]``. The graph stores them as ``[n, c, h, w]`` and transposes them only where the
order of elements matters: at a Flatten or Reshape.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_apart import SECONDS, read_keras_apart
from cgraph.formats.keras_archive import read_keras_model
from cgraph.formats.keras_config import KerasLayer, network_of
from cgraph.formats.keras_h5 import KerasFile
from cgraph.formats.keras_layers import RULES, LayerRule, Weights, activate, channels_first
from cgraph.formats.model import Model
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin, origin_at
from cgraph.ops.leaf import Var
from cgraph.record import Record

Groups = dict[tuple[str, str], Weights]
NODES = 8  # per layer, besides one per operand: filters, a pad, the layer, a bias, its shape, an activation
EXPECTED = (CgraphError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors of layers whose description has an entry of an unexpected type."""


class KerasGraph(Record):
    """The inputs (images as ``[n, c, h, w]``) and outputs of a network, with the names of the output layers."""

    inputs: list[Var]
    outputs: list[Node]
    names: tuple[str, ...] = ()


def load_keras(path: str | Path, n: int = 1, apart: bool = False, seconds: float = SECONDS) -> KerasGraph:
    """Read the graph of a network that Keras saved, as an HDF5 file (``.h5``) or an archive (``.keras``).

    Parameters
        n: batch size
        apart: read the file in a child process, for an untrusted file
        seconds: the longest time for this
    Raises
        FormatError: the network is not functional or sequential, or has an unsupported layer; as `read_keras_model`
    """
    return build_graph(read_keras_apart(path, seconds) if apart else read_keras_model(path), path, n)


def keras_model(file: KerasFile, path: str | Path, n: int) -> Model:
    """Return the network of a file, which messages call `path`, for batches of `n`. FormatError as in `load_keras`."""
    graph = build_graph(file, path, n)
    return Model(tuple(graph.inputs), tuple(graph.outputs), graph.names)


def build_graph(file: KerasFile, path: str | Path, n: int) -> KerasGraph:
    """Return the graph of a file. FormatError as in `load_keras`."""
    try:
        return graph_of(file, n, Path(path).name)
    except EXPECTED as error:
        raise FormatError(f"{path}: {error or type(error).__name__}") from error


@keeps_origin
def graph_of(file: KerasFile, n: int, name: str = "") -> KerasGraph:
    """Build each layer after its operands; its nodes have its number in the file `name`, and its name."""
    network = network_of(file.config)
    allowance = Allowance(file.nbytes)
    groups, nodes = {} if file.numbered else arrays_by_group(file), dict[str, Node]()
    for number, layer in enumerate(sort_layers(network.layers)):
        allowance.spend(f"layer {layer.name!r:.80}", nodes=NODES + len(layer.operands))
        xs = [nodes[x] if isinstance(x, str) else x for x in layer.operands]
        with origin_at(name, number, layer.name):
            nodes[layer.name] = build_layer(layer, file, groups, xs, n)
    variables = [x for x in (nodes[name] for name in network.inputs) if isinstance(x, Var)]
    return KerasGraph(variables, [nodes[name] for name in network.outputs], network.outputs)


def sort_layers(layers: list[KerasLayer]) -> Iterator[KerasLayer]:
    """Yield each layer after its operands, in linear time.

    FormatError if layers depend on each other in a cycle, an operand is missing, or two have one name.
    """
    by_name = {layer.name: layer for layer in layers}
    if len(by_name) != len(layers):
        raise FormatError(f"two of {len(layers)} layers have one name: rename one")
    done: dict[str, bool] = {}
    waiting = list(reversed(by_name))
    while waiting:
        name = waiting[-1]
        if done.get(name):
            waiting.pop()
            continue
        missing = [x for x in dict.fromkeys(by_name[name].operands) if isinstance(x, str) and not done.get(x)]
        for x in missing:
            if x not in by_name:
                raise FormatError(f"layer {name!r:.80} reads {x!r:.80}, which is not a layer of the network")
        if not missing:
            yield by_name[name]
            done[waiting.pop()] = True
        elif name in done:
            raise FormatError(f"some of its {len(layers)} layers depend on each other in a cycle")
        else:
            done[name] = False
            waiting += missing


def build_layer(layer: KerasLayer, file: KerasFile, groups: Groups, xs: list[Any], n: int) -> Node:
    kind, options = layer.kind, layer.options
    if kind == "InputLayer":
        shape = options.get("batch_input_shape") or options["batch_shape"]
        return Var((n, *channels_first(shape[1:])), options.get("dtype", "float32"), layer.name)
    if options.get("data_format", "channels_last") != "channels_last":
        raise FormatError(f"layer {layer.name} has channels first. Save the network with data_format='channels_last'")
    if kind not in RULES:
        raise FormatError(f"layer {layer.name} is a {kind}, which is not supported. Use {', '.join(RULES)}")
    rule = RULES[kind]
    if not rule.takes_numbers and any(isinstance(x, float) for x in layer.operands):
        raise FormatError(f"layer {layer.name} is a {kind} of a number. Use a tensor")
    weights = numbered_arrays(layer, rule, file) if file.numbered else named_arrays(layer, groups)
    try:
        return activate(rule.build(options, weights, xs), options.get("activation"))
    except KeyError as error:
        raise FormatError(f"layer {layer.name!r:.80}, a {kind}, has no {error}. Save the network again") from None


def numbered_arrays(layer: KerasLayer, rule: LayerRule, file: KerasFile) -> Weights:
    """Return the arrays of a layer from an archive, where they have numbers."""
    names = rule.arrays_of(layer.options)
    arrays = file.weights.get(layer.store, {})
    if len(arrays) < len(names):
        raise FormatError(
            f"layer {layer.name!r:.80} has {len(arrays)} arrays in {layer.store!r:.80}, not {', '.join(names)}"
        )
    return {name: arrays[str(i)] for i, name in enumerate(names)}


def arrays_by_group(file: KerasFile) -> Groups:
    """Return the arrays of an HDF5 file by layer, group in the layer, and name."""
    groups: Groups = {}
    for layer, arrays in file.weights.items():
        for path, x in arrays.items():
            group, _, name = path.rpartition("/")
            groups.setdefault((layer, group), {})[name] = x
    return groups


def named_arrays(layer: KerasLayer, groups: Groups) -> Weights:
    """Return the arrays of a layer by name. Those of a layer in a network are in the group of the outermost network.

    Keras writes their groups with all, some or none of the names of the networks around the layer.
    """
    paths = ["/".join(layer.path[i:]) for i in range(len(layer.path))]
    return next((groups[layer.path[0], x] for x in (*paths, "") if (layer.path[0], x) in groups), {})
