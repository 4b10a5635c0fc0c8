"""The layers of a network as Keras describes them: functional or sequential, by Keras 2 or 3.

A network that is a layer of another one is replaced by its own layers, and a layer that is used several times by one
layer for each use, so the result is one list. Layers around layers (TimeDistributed, Bidirectional) are replaced by
several layers.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_calls import NETWORKS, SEQUENTIAL, Tensor, calls_of, entries, first_uses
from cgraph.record import Record

SHAPES = ("batch_input_shape", "batch_shape")
MOST_DEPTH = 16  # networks within one another
IDENTITY = "Identity"
NODES = 8  # per layer, besides one per operand: filters, a pad, the layer, a bias, its shape, an activation
FOLD, UNFOLD, MERGE = "steps as samples", "samples as steps", "two directions"
"""Kinds of layers that stand for parts of `TimeDistributed` and `Bidirectional`."""

Rows = list[dict[str, Any]]


Operands = tuple[str | float, ...]
Named = dict[str, Any]
"""Arguments by name: names of the values of tensors, tuples of them, or True."""


class KerasLayer(Record):
    """One use of a layer.

    Fields
        kind: name of its class, such as ``Conv2D``
        path: its name, after the names of the networks around it; ``dense#1`` is the second use of a layer
        options: its settings
        operands: names of the values that it reads; a number stands for itself
        store: its group in the weights of an archive, such as ``layers/conv2d_1``
        group: its group in the weights of an HDF5 file: the path without the numbers of uses
        named: further arguments
    """

    kind: str
    path: tuple[str, ...]
    options: dict[str, Any]
    operands: Operands
    store: str
    group: tuple[str, ...] = ()
    named: Named = {}  # noqa: RUF012 # nobody changes it

    @property
    def name(self) -> str:
        """Return the names of the path, separated by slashes."""
        return "/".join(self.path)

    @property
    def reads(self) -> list[str]:
        """Return the names of all values that it reads."""
        several = [x if isinstance(x, tuple) else (x,) for x in self.named.values()]
        return [x for x in (*self.operands, *(y for some in several for y in some)) if isinstance(x, str)]


class KerasNetwork(Record):
    """The layers of a network in any order, and the names of those that are its inputs and outputs."""

    layers: list[KerasLayer]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class LayerPlace(Record):
    """Where a layer is.

    Fields
        path, store, group: as in `KerasLayer`; of a network all are empty where it is the outermost one
        allowance: what the file may still spend; a small file may use a network many times
    """

    path: tuple[str, ...] = ()
    store: str = ""
    group: tuple[str, ...] = ()
    allowance: Allowance | None = None

    def within(self, name: str, store: str, use: int = 0) -> "LayerPlace":
        """Return the place of a use of an inner layer.

        Parameters
            store: its group in an archive, below that of this place
        """
        if len(self.path) > MOST_DEPTH:
            raise FormatError(f"it has more than {MOST_DEPTH} networks within one another. Take the inner ones out")
        group = (*self.group, name)
        return LayerPlace((*self.path, used(name, use)), f"{self.store}{store}", group, self.allowance)

    def layer(self, kind: str, options: dict[str, Any], operands: Operands, named: Named | None = None) -> KerasLayer:
        """Return a layer at this place."""
        if self.allowance is not None:
            self.allowance.spend(f"layer {'/'.join(self.path)!r:.80}", nodes=NODES + len(operands))
        return KerasLayer(kind, self.path, options, operands, self.store, self.group, named or {})


OUTERMOST = LayerPlace()


def network_of(description: dict[str, Any], place: LayerPlace = OUTERMOST) -> KerasNetwork:
    """Return the network of a description, as Keras writes it.

    Parameters
        place: of the layer which this network is
    Raises
        FormatError: the network is not functional or sequential, or uses a layer in a way that is not supported
    """
    rows, inputs, outputs = parts_of(description)
    calls = {row["name"]: calls_of(row) for row in rows}
    first = first_uses(rows, calls, outputs)
    layers: list[KerasLayer] = []
    counts: dict[str, int] = {}
    for row in rows:
        group = snake_case(row["class_name"])
        counts[group] = counts.get(group, -1) + 1
        store = f"layers/{group}{f'_{counts[group]}' if counts[group] else ''}"
        for use, call in enumerate(calls[row["name"]]):
            operands = tuple(x if isinstance(x, float) else name_of(x, first, place.path) for x in call.operands)
            named = {key: value_named(x, first, place.path) for key, x in call.named.items()}
            layers += expanded(row, place.within(row["name"], store, use), operands, named)
    ends = [tuple(name_of(x, first, place.path) for x in some) for some in (inputs, outputs)]
    return KerasNetwork(layers, *ends)


def expanded(row: dict[str, Any], place: LayerPlace, operands: Operands, named: Named) -> Iterable[KerasLayer]:
    """Return the layers that stand for one use of a layer: itself, or those inside it."""
    kind = row["class_name"]
    if kind in NETWORKS:
        return inlined(
            network_of(row, LayerPlace(place.path, f"{place.store}/", place.group, place.allowance)),
            place,
            operands,
        )
    if kind in WRAPPERS:
        return WRAPPERS[kind](row["config"], place, operands, named)
    return [place.layer(kind, row["config"], operands, named)]


def name_of(x: Tensor, first: dict[str, int], path: tuple[str, ...]) -> str:
    """Return the name of a value."""
    return "/".join((*path, numbered(used(x.layer, max(x.use - first.get(x.layer, 0), 0)), x.output)))


def value_named(x: Any, first: dict[str, int], path: tuple[str, ...]) -> Any:
    """Return an argument with names of values in place of tensors."""
    if isinstance(x, tuple):
        return tuple(name_of(y, first, path) for y in x)
    return name_of(x, first, path) if isinstance(x, Tensor) else x


def used(name: str, use: int) -> str:
    """Return the name of a use of a layer."""
    return f"{name}#{use}" if use else name


def parts_of(description: dict[str, Any]) -> tuple[Rows, list[Tensor], list[Tensor]]:
    """Return the layers of a description, each with its name, and the inputs and outputs."""
    kind = description.get("class_name")
    if kind is None:
        raise FormatError(
            "it holds weights without a network, as model.save_weights writes them. Save the whole network with "
            "model.save"
        )
    if kind not in NETWORKS:
        raise FormatError(f"{kind!r:.80} is not a functional or sequential network: save one of these")
    config = description["config"]
    rows = [{**row, "name": str(row.get("name", row["config"].get("name")))} for row in config["layers"]]
    if kind == SEQUENTIAL:
        rows = chained(config, rows)
        return rows, [Tensor(rows[0]["name"])], [Tensor(rows[-1]["name"])]
    return rows, entries(config["input_layers"]), entries(config["output_layers"])


def chained(config: dict[str, Any], rows: Rows) -> Rows:
    """Return the layers of a sequential network, an input layer first; each reads the one before it."""
    if not rows:
        raise FormatError("the sequential network has no layers. Add one before you save it")
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
    while row["class_name"] in NETWORKS and not config.get("build_input_shape"):
        row = config["layers"][0]
        config = row["config"]
    return next((config[x] for x in (*SHAPES, "build_input_shape") if config.get(x)), None)


def inlined(inner: KerasNetwork, place: LayerPlace, operands: Operands) -> Iterator[KerasLayer]:
    """Yield the layers of an inner network: its inputs pass the operands on, a last layer passes each output on."""
    if len(operands) != len(inner.inputs):
        raise FormatError(
            f"network {'/'.join(place.path):.80} has {len(inner.inputs)} inputs and reads {len(operands)} values"
        )
    values = dict(zip(inner.inputs, operands))
    for layer in inner.layers:
        if layer.kind == "InputLayer" and layer.name in values:
            yield LayerPlace(layer.path, allowance=place.allowance).layer(IDENTITY, {}, (values[layer.name],))
        else:
            yield layer
    for i, output in enumerate(inner.outputs):
        path = (*place.path[:-1], numbered(place.path[-1], i))
        yield LayerPlace(path, allowance=place.allowance).layer(IDENTITY, {}, (output,))


def each_step(options: dict[str, Any], place: LayerPlace, operands: Operands, named: Named) -> Iterator[KerasLayer]:
    """Yield the layers of a TimeDistributed: steps become samples, the inner layer sees them, they become steps."""
    inner = inner_row(options, "layer")
    before, inside = place.within("steps", ""), place.within(inner["name"], "/layer")
    yield before.layer(FOLD, {}, operands[:1])
    yield from expanded(inner, inside, ("/".join(before.path),), {})
    yield place.layer(UNFOLD, {}, ("/".join(inside.path), operands[0]), named)


def both_ways(options: dict[str, Any], place: LayerPlace, operands: Operands, named: Named) -> Iterator[KerasLayer]:
    """Yield the layers of a Bidirectional: one for each direction, and one that merges their outputs."""
    forward = inner_row(options, "layer")
    backward = inner_row(options, "backward_layer" if options.get("backward_layer") else "layer")
    if not options.get("backward_layer"):
        turned = not forward["config"].get("go_backwards", False)
        backward = {**backward, "config": {**backward["config"], "go_backwards": turned}}
    states = tuple(named.get("initial_state", operands[1:]))
    half = len(states) // 2
    others = {key: x for key, x in named.items() if key != "initial_state"}
    outputs: list[list[str]] = []
    for name, row, some in (("forward", forward, states[:half]), ("backward", backward, states[half:])):
        config = row["config"]
        zero = config.get("zero_output_for_mask") or config.get("return_sequences")
        inside = place.within(
            f"{name}_{row['name'].removeprefix('forward_').removeprefix('backward_')}", f"/{name}_layer"
        )
        start = {"initial_state": some} if some else {}
        yield inside.layer(
            row["class_name"], {**config, "zero_output_for_mask": zero}, operands[:1], {**others, **start}
        )
        count = STATES.get(row["class_name"], 0) if config.get("return_state") else 0
        outputs.append([numbered("/".join(inside.path), i) for i in range(count + 1)])
    (y, *after), (z, *later) = outputs
    merging = {
        "merge_mode": options.get("merge_mode", "concat"),
        "return_sequences": forward["config"].get("return_sequences"),
    }
    yield place.layer(MERGE, merging, (y, z, *after, *later))


def inner_row(options: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the description of a layer inside a layer, with its name."""
    row = options[name]
    return {**row, "name": str(row.get("name", row["config"].get("name")))}


WRAPPERS = {"TimeDistributed": each_step, "Bidirectional": both_ways}
STATES = {"GRU": 1, "LSTM": 2, "SimpleRNN": 1, "ConvLSTM1D": 2, "ConvLSTM2D": 2, "ConvLSTM3D": 2}


def numbered(name: str, output: Any) -> str:
    """Return the name of one output of a layer. The first output has the name of the layer."""
    return f"{name}:{output}" if output else str(name)


def snake_case(name: str) -> str:
    """Return the name of a class as Keras writes it in an archive: ``DepthwiseConv2D`` is ``depthwise_conv2d``."""
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
