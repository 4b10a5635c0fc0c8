"""Graphs of Keras networks, built layer by layer. No code of a file is run.

Keras stores images as ``[n, h, w, c]``. The graph stores them as ``[n, c, h, w]`` and transposes them only where the
order of elements matters: at a Flatten or Reshape.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_apart import SECONDS, read_keras_apart
from cgraph.formats.keras_archive import read_keras_model
from cgraph.formats.keras_config import MOST_DEPTH, KerasLayer, KerasNetwork, LayerPlace, network_of, numbered
from cgraph.formats.keras_h5 import KerasFile
from cgraph.formats.keras_layers import RULES
from cgraph.formats.keras_rules import KerasRule, LayerResults, LayerUse, Weights, channels_first
from cgraph.formats.model import Model
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin, origin_at
from cgraph.ops.leaf import Var
from cgraph.record import Record

Groups = dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], Weights]]
Shape = tuple[int | str, ...]
Sizes = Mapping[str, int | Sequence[int]]
"""Lengths of open axes, and whole shapes of inputs, by name."""
INPUT, BATCH = "InputLayer", "batch"
EXPECTED = (CgraphError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors of layers whose description has an entry of an unexpected type."""


class KerasGraph(Record):
    """The inputs (images as ``[n, c, h, w]``) and outputs of a network, with the names of the output layers."""

    inputs: list[Var]
    outputs: list[Node]
    names: tuple[str, ...] = ()


def load_keras(
    path: str | Path,
    n: int = 1,
    apart: bool = False,
    seconds: float = SECONDS,
    sizes: Sizes = MappingProxyType({}),
) -> KerasGraph:
    """Read the graph of a network that Keras saved, as an HDF5 file (``.h5``) or an archive (``.keras``).

    Parameters
        n: batch size
        apart: read the file in a child process, for an untrusted file
        seconds: the longest time for this
        sizes: lengths of the axes that the network leaves open, such as ``{"tokens.1": 20}`` for axis 1 of an input,
            and whole shapes of inputs by name
    Raises
        FormatError: the network is not functional or sequential, or has an unsupported layer; as `read_keras_model`
    """
    file = read_keras_apart(path, seconds) if apart else read_keras_model(path)
    return build_graph(file, path, {**sizes, BATCH: n})


def keras_model(file: KerasFile, path: str | Path, sizes: Sizes) -> Model:
    """Return the network of a file, which messages call `path`, for these sizes. FormatError as in `load_keras`."""
    graph = build_graph(file, path, sizes)
    return Model(tuple(graph.inputs), tuple(graph.outputs), graph.names)


def build_graph(file: KerasFile, path: str | Path, sizes: Sizes) -> KerasGraph:
    """Return the graph of a file. FormatError as in `load_keras`."""
    with named_errors(path):
        return graph_of(file, sizes, Path(path).name)


@contextmanager
def named_errors(path: str | Path) -> Iterator[None]:
    """Raise FormatError that names the file for what descriptions of unexpected types cause."""
    try:
        yield
    except EXPECTED as error:
        raise FormatError(f"{path}: {str(error) or type(error).__name__}") from error


def open_shapes(file: KerasFile, path: str | Path) -> tuple[dict[str, Shape], tuple[str, ...]]:
    """Return the shapes of the inputs, with names for sizes that a call decides, and the names of the outputs."""
    with named_errors(path):
        network = whole_network(file)
        inputs = {x.name: shape_of(x) for x in network.layers if x.kind == INPUT and x.name in network.inputs}
        return {name: inputs[name] for name in network.inputs}, network.outputs


def whole_network(file: KerasFile) -> KerasNetwork:
    """Return the layers of a file, which are charged to it."""
    return network_of(file.config, LayerPlace(allowance=Allowance(file.nbytes)))


def shape_of(layer: KerasLayer) -> Shape:
    """Return the shape of an input in the graph's order: ``("batch", "x.1", 5)`` where axis 1 of ``x`` is open."""
    options = layer.options
    shape = options.get("batch_input_shape") or options["batch_shape"]
    lengths = [f"{layer.name}.{axis}" if n is None else n for axis, n in enumerate(shape[1:], 1)]
    return (BATCH, *channels_first(lengths))


def fixed_shape(name: str, shape: Shape, sizes: Sizes) -> Shape:
    """Return the shape of an input with the sizes that are given by their names, or as a whole by that of the input.

    FormatError if a whole shape does not fit.
    """
    if name not in sizes:
        return tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)  # type: ignore[misc]
    size = sizes[name]
    whole = tuple(size) if isinstance(size, Sequence) else (size,)
    if len(whole) != len(shape) or any(isinstance(n, int) and n != m for n, m in zip(shape, whole)):
        raise FormatError(f"input {name!r:.80} has the shape {list(shape)}, not {list(whole)}. Give one that fits")
    return whole


def check_sizes(inputs: Mapping[str, Shape], sizes: Sizes, path: str | Path) -> None:
    """Raise FormatError for a size that no input has."""
    names = dict.fromkeys(n for shape in inputs.values() for n in shape if isinstance(n, str))
    for name in sizes:
        if name not in names and name not in inputs:
            raise FormatError(
                f"{path}: {name!r} is not a size of this network. Pass shapes={{{next(iter(names))!r}: 1}}; its sizes "
                f"are {', '.join(names)}"
            )


@keeps_origin
def graph_of(file: KerasFile, sizes: Sizes, name: str = "") -> KerasGraph:
    """Build each layer after its operands; its nodes have its number in the file `name`, and its name."""
    network = whole_network(file)
    groups = {} if file.numbered else arrays_by_group(file, network.layers)
    values, masks = dict[str, Node](), dict[str, Node]()
    for number, layer in enumerate(sort_layers(network.layers)):
        with origin_at(name, number, layer.name):
            results = build_layer(layer, file, groups, (values, masks), sizes)
        for i, value in enumerate(results.values):
            values[numbered(layer.name, i)] = value
        if results.mask is not None:
            masks[layer.name] = results.mask
    missing = [x for x in (*network.inputs, *network.outputs) if x not in values]
    if missing:
        raise FormatError(f"the network has no value {missing[0]!r:.80}. Save it again")
    variables = [x for x in (values[name] for name in network.inputs) if isinstance(x, Var)]
    return KerasGraph(variables, [values[name] for name in network.outputs], network.outputs)


def sort_layers(layers: list[KerasLayer]) -> Iterator[KerasLayer]:
    """Yield each layer after those that it reads, in linear time.

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
        sources = [layer_of(x, by_name) for x in dict.fromkeys(by_name[name].reads)]
        missing = [x for x in sources if not done.get(x)]
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


def layer_of(value: str, layers: Container[str]) -> str:
    """Return the name of the layer that computes a value: ``lstm`` of ``lstm:1``."""
    return value if value in layers else value.rpartition(":")[0] or value


def build_layer(
    layer: KerasLayer,
    file: KerasFile,
    groups: Groups,
    values_and_masks: tuple[dict[str, Node], dict[str, Node]],
    sizes: Sizes,
) -> LayerResults:
    """Return what a layer returns, from the values and masks before it, and the sizes of open axes."""
    kind, options = layer.kind, layer.options
    if kind == INPUT:
        shape = fixed_shape(layer.name, shape_of(layer), sizes)
        for x in shape:
            if isinstance(x, str):
                raise FormatError(f"input {layer.name!r:.80} has an open axis. Give its length: shapes={{{x!r}: 16}}")
        return LayerResults((Var(shape, options.get("dtype", "float32"), layer.name),))
    if options.get("data_format", "channels_last") != "channels_last":
        raise FormatError(f"layer {layer.name} has channels first. Save the network with data_format='channels_last'")
    if kind not in RULES:
        raise FormatError(
            f"layer {layer.name} is a {kind}, which is not supported. Export the network as ONNX, or use "
            f"{', '.join(sorted(RULES))}"
        )
    rule = RULES[kind]
    if not rule.takes_numbers and any(isinstance(x, float) for x in layer.operands):
        raise FormatError(f"layer {layer.name} is a {kind} of a number. Use a tensor")
    weights = numbered_arrays(layer, rule, file) if file.numbered else named_arrays(layer, rule, groups)
    try:
        return rule.results(use_of(layer, weights, *values_and_masks))
    except KeyError as error:
        raise FormatError(f"layer {layer.name!r:.80}, a {kind}, has no {error}. Save the network again") from None
    except FormatError as error:
        raise FormatError(f"layer {layer.name!r:.80}, a {kind}: {error}") from None


def use_of(layer: KerasLayer, weights: Weights, values: dict[str, Node], masks: dict[str, Node]) -> LayerUse:
    """Return what the rule of a layer reads."""

    def value(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(value, x))
        return values[x] if isinstance(x, str) else x

    xs = [value(x) for x in layer.operands]
    named = {key: value(x) for key, x in layer.named.items()}
    named_masks = {key: masks[x] for key, x in layer.named.items() if x in masks}
    return LayerUse(layer.options, weights, xs, named, [masks.get(str(x)) for x in layer.operands], named_masks)


def numbered_arrays(layer: KerasLayer, rule: KerasRule, file: KerasFile) -> Weights:
    """Return the arrays of a layer from an archive, where they have numbers in its group or those of inner layers."""
    names = rule.arrays_of(layer.options)
    weights: Weights = {}
    counts: dict[str, int] = {}
    for name in names:
        inner = name.rpartition("/")[0]
        store = f"{layer.store}/{inner}" if inner else layer.store
        if store not in file.weights and inner:
            store = f"{layer.store}/_{inner}"  # as Keras 2 names the layers in a MultiHeadAttention
        counts[store] = counts.get(store, -1) + 1
        array = file.weights.get(store, {}).get(str(counts[store]))
        if array is None:
            raise FormatError(
                f"layer {layer.name!r:.80} has {counts[store]} arrays in {store!r:.80}, not {', '.join(names)}"
            )
        weights[name] = array
    return weights


def arrays_by_group(file: KerasFile, layers: list[KerasLayer]) -> Groups:
    """Return the arrays of an HDF5 file by outermost layer, group within it, the group around that, and name.

    Keras writes the group of a layer in a network with all, some or none of the names of the networks around it, and
    Keras 3 with that of the outermost network.
    """
    names = {candidate for layer in layers for candidate in candidates(layer)}
    first = {candidate[0] for candidate in names if candidate}
    groups: Groups = {}
    for layer, arrays in file.weights.items():
        for path, x in arrays.items():
            parts = tuple(path.split("/"))
            if len(parts) == 1:
                groups.setdefault((layer, ()), {}).setdefault((), {})[path] = x
            for i in (i for i in range(len(parts) - 1) if parts[i] in first):
                for j in range(i + 1, min(len(parts), i + MOST_DEPTH + 3)):
                    if parts[i:j] in names:
                        inner = groups.setdefault((layer, parts[i:j]), {})
                        inner.setdefault(parts[:i], {})["/".join(parts[j:])] = x
    return groups


def candidates(layer: KerasLayer) -> list[tuple[str, ...]]:
    """Return the groups in which an HDF5 file may have a layer's arrays, the likeliest first.

    Keras 2 leaves out the name of a layer in a TimeDistributed, Keras 3 the prefix of a direction.
    """
    *around, name = layer.group or ("",)
    plain = name.removeprefix("forward_").removeprefix("backward_")
    groups = [(*around, name), (*around, plain), tuple(around)] if layer.group else [()]
    return [group[i:] for i in range(len(layer.group) + 1) for group in groups if i <= len(group)]


def named_arrays(layer: KerasLayer, rule: KerasRule, groups: Groups) -> Weights:
    """Return the arrays of a layer by name, from the group of the outermost network or layer around it."""
    if not layer.group:
        return {}
    for candidate in candidates(layer):
        arrays = groups.get((layer.group[0], candidate), {})
        weights = rule.named(arrays[min(arrays, key=len)]) if arrays else {}
        if weights:
            return weights
    return {}
